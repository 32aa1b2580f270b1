"""A poll as it is asked, and as its journal has it."""

import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from local_dp.sealing import new_key
from local_dp.server.poll.questions import Questions
from local_dp.simulation.settings import EMBEDDED, SECRET_BITS

PROTOCOL = "poll"  # as its journal is named


@dataclass(frozen=True)
class Plan:
    """A poll as it is asked, and as its journal has it: `resume` needs nothing else.

    `key` is the server's private key, and `coins` the seed of the public coins. The tokens are the
    secret paths of the two pages. `until` is in seconds of the system's clock. A `seed` is for
    made-up people alone.
    """

    run: str
    questions: Questions
    people: int
    host: str
    port: int
    token: str
    host_token: str
    key: bytes = field(repr=False)
    broker: str = EMBEDDED
    coins: int = 0
    seed: int | None = None
    until: float | None = None
    demo: int = 0
    slow: bool = False
    ask_again: bool = False
    game: float = 0.0  # its epsilon; 0: a poll
    certificate: str = field(default="", repr=False)
    name: str = ""
    began: float = 0.0

    @classmethod
    def new(cls, questions: Questions, **options: Any) -> "Plan":
        """With a name, tokens and a key of its own."""
        own: dict[str, Any] = {
            "run": f"poll-{secrets.token_hex(6)}",
            "token": secrets.token_urlsafe(16),
            "host_token": secrets.token_urlsafe(16),
        }
        seed = options.get("seed")
        own["coins"] = secrets.randbits(SECRET_BITS) if seed is None else seed
        return cls(**own, questions=questions, key=new_key(), began=time.time(), **options)

    def to_dict(self) -> dict[str, Any]:
        return {
            **vars(self),
            "key": self.key.hex(),
            "questions": self.questions.to_dict(),
            "protocol": PROTOCOL,
            "at": _date(self.began),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Plan":
        data = {name: value for name, value in data.items() if name in cls.__dataclass_fields__}
        return cls(
            **{
                **data,
                "key": bytes.fromhex(data["key"]),
                "questions": Questions.from_dict(data["questions"]),
            }
        )


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(seconds))
