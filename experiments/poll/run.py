"""A poll from its start to its result: one process with the web server, the coordinator, the journal and, unless another is named, the broker."""

import asyncio
import io
import secrets
import socket
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local_dp.bus.address import Address
from local_dp.bus.broker import EmbeddedBroker
from local_dp.bus.children import allow_open_files
from local_dp.bus.mqtt import MqttBus
from local_dp.errors import InputError, LocalDPError
from local_dp.experiments.poll.crowd import Crowd
from local_dp.experiments.poll.gate import Gate
from local_dp.experiments.poll.places import Places
from local_dp.experiments.poll.questions import Questions
from local_dp.experiments.poll.scene import Standing, State, reports_of
from local_dp.experiments.poll.web import Refused, Site, Web
from local_dp.experiments.tiers.settings import EMBEDDED
from local_dp.sealing import Party, new_key, public
from local_dp.server.members import filters
from local_dp.server.poll import AnyTurnout, OpenCoordinator
from local_dp.server.remote import Journal, RemoteOracle
from local_dp.server.round import Reconciliation, Round

LOOPBACK = "127.0.0.1"
PARTING = 2.0  # seconds to wait for the accounts of those who are present at the end
PATIENCE = 10.0  # seconds to reach the broker at first
PROTOCOL = "poll"  # as its journal is named


@dataclass(frozen=True)
class Plan:
    """A poll as it is asked, and as its journal has it: `resume` needs nothing else.

    `key` is the server's private key; the tokens are the secret paths of the two pages; `until` is in seconds of the system's clock.
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
    seed: int | None = None
    until: float | None = None
    demo: int = 0
    began: float = 0.0

    @classmethod
    def new(cls, questions: Questions, **options: Any) -> "Plan":
        """With a name, tokens and a key of its own."""
        own: dict[str, Any] = {"run": f"poll-{secrets.token_hex(6)}", "token": secrets.token_urlsafe(16), "host_token": secrets.token_urlsafe(16)}
        return cls(**own, questions=questions, key=new_key(), began=time.time(), **options)

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "key": self.key.hex(), "questions": self.questions.to_dict(), "protocol": PROTOCOL, "at": _written(self.began)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Plan":
        data = {name: value for name, value in data.items() if name in cls.__dataclass_fields__}
        return cls(**{**data, "key": bytes.fromhex(data["key"]), "questions": Questions.from_dict(data["questions"])})


def _written(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(seconds))


@dataclass(frozen=True)
class Result:
    """A poll that is over: its round, the number of places taken, and the accounts of those who were present."""

    plan: Plan
    round: Round
    joined: int
    accounts: Reconciliation
    ended: float


class Poll:
    """One poll. `play` serves it until it is closed; the presenter's page asks for `state`."""

    def __init__(self, plan: Plan, journal: Journal, site: Site, listener: socket.socket) -> None:
        self.plan, self.journal, self.site = plan, journal, site
        self._listener = listener
        self.places = Places(journal, plan.people)
        seed = secrets.randbits(128) if plan.seed is None else plan.seed
        self.coordinator = OpenCoordinator(plan.run, plan.people, seed, plan.questions.epsilon, AnyTurnout(), self.places.roster)
        self._standing = [Standing(question, plan.people) for question in plan.questions.questions]
        self._phase, self._words = "open", "The poll is open."
        self._state: State = {}
        self._seen: object = None
        self._closing = asyncio.Event()

    async def play(self, announce: Callable[[], object] = lambda: None) -> Result:
        """Serves pages and collects answers until the poll is closed. `announce` is called once it can be joined. Raises BusError."""
        async with AsyncExitStack() as stack:
            address, watches = await self._broker(stack)
            allow_open_files(2 * Crowd(self.plan.people).most)
            envelopes = Party.server(self.plan.run, self.plan.key, self.places.roster.speaker)
            bus = MqttBus(address, f"{self.plan.run}-server", filters(self.plan.run))
            oracle = RemoteOracle(bus, self.coordinator, journal=self.journal, envelopes=envelopes)
            web = Web(self.site, self._listener, self, Gate(self.plan.run, self.places.holds, address), Crowd(self.plan.people))
            playing = asyncio.create_task(self._collect(oracle))
            serving = asyncio.create_task(web.serve())
            tasks = {playing, serving, *(asyncio.create_task(watch) for watch in (oracle.serve(PATIENCE), self._until(), *watches))}
            announce()
            try:
                while not playing.done():
                    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                    tasks -= done
                    for task in done - {playing}:
                        task.result()
                return await playing
            except BaseException as error:
                self._phase, self._words = "failed", str(error) if isinstance(error, LocalDPError) else "The poll was interrupted."
                raise
            finally:
                web.close()
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(serving), PARTING + 2)
                for task in (*tasks, serving, playing):
                    task.cancel()
                await asyncio.gather(*tasks, serving, playing, return_exceptions=True)

    async def _broker(self, stack: AsyncExitStack) -> tuple[Address, list[Any]]:
        """The broker's address, and what to watch."""
        if self.plan.broker != EMBEDDED:
            return Address.parse(self.plan.broker), []
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="local-dp-"))
        broker = EmbeddedBroker(Path(folder))
        stack.push_async_callback(broker.stop)
        await broker.start()
        return Address.parse(broker.url), [broker.watch()]

    async def _collect(self, oracle: RemoteOracle) -> Result:
        await oracle.answer(self.plan.questions.asks(self.plan.people))
        round = self.coordinator.last
        assert round is not None
        self._phase, self._words, self.places.open = "closed", "The poll is closed.", False
        await oracle.end(PARTING)
        return Result(self.plan, round, len(self.places), self.coordinator.reconciliation(), time.time())

    async def _until(self) -> None:
        """Closes the poll at its time."""
        if self.plan.until is not None:
            while (left := self.plan.until - time.time()) > 0:
                await asyncio.sleep(min(left, 1.0))
            self.close()

    def public(self) -> dict[str, Any]:
        plan, asks = self.plan, self.plan.questions.asks(self.plan.people)
        questions = [
            {
                **question.to_dict(),
                "query": ask.query.name,
                "query_params": ask.query.params(),
                "randomizer": ask.randomizer.name,
                "randomizer_params": ask.randomizer.params(),
            }
            for question, ask in zip(plan.questions.questions, asks, strict=True)
        ]
        return {
            "version": 1,
            "run": plan.run,
            "server": public(plan.key).hex(),
            "title": plan.questions.title,
            "questions": questions,
            "epsilon": plan.questions.epsilon,
            "rounds": 1,
            "people": plan.people,
            "private": plan.seed is None,
            "open": self._phase == "open",
        }

    def join(self, key: bytes, fresh: Callable[[], bool]) -> dict[str, Any]:
        return self.places.join(key, fresh)

    def state(self) -> State:
        round = self.coordinator.last
        here = sum(member.gone_since is None for member in self.coordinator.members)
        seen = (self._phase, len(self.places), here, None if round is None else round.counts.answered)
        if seen != self._seen:
            self._seen, self._state = seen, self._looked(round, here)
        return self._state

    def _looked(self, round: Round | None, here: int) -> State:
        plan = self.plan
        questions = [] if round is None else [standing.look(part) for standing, part in zip(self._standing, round.parts, strict=True)]
        return {
            "title": plan.questions.title,
            "phase": self._phase,
            "status": self._words,
            "link": self.site.link,
            "joined": len(self.places),
            "here": here,
            "people": plan.people,
            "epsilon": plan.questions.epsilon,
            "until": plan.until,
            "private": plan.seed is None,
            "demo": plan.demo,
            "questions": questions,
        }

    def reports(self, question: int) -> dict[str, Any]:
        round = self.coordinator.last
        if round is None or not 0 <= question < len(round.parts):
            raise Refused(404, "there is no such question")
        return reports_of(round.parts[question])

    def close(self) -> None:
        self.coordinator.shut_open()
        self._closing.set()

    def again(self) -> None:
        raise Refused(409, "this poll has no second round")

    def picture(self) -> bytes:
        import segno

        drawn = io.BytesIO()
        segno.make(self.site.link, error="m", micro=False).save(drawn, kind="svg", scale=8, border=4, dark="#000", light="#fff", xmldecl=False)
        return drawn.getvalue()


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises InputError."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=1024)
    except OSError as error:
        raise InputError(f"cannot listen on {host}, port {port}: {error.strerror or error}; give another --port") from None
