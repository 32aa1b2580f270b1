"""The terms of a round: when it ends, how many must answer, and why too few did."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from local_dp.errors import InputError, QuorumError, RefusedError
from local_dp.foreign import brief

if TYPE_CHECKING:  # runs in memory do not import the wire
    from local_dp.server.round import Part, Round


# seconds that a member on this machine must have been gone before a round stops waiting for it
GRACE = 2.0
_NAMED, _TEXT = 3, 500  # members in a message, and characters of a client's text
_SIZE = (
    "read the broker's log, and raise its max_packet_size and message_size_limit to more than 1 MiB"
)
# of clients without an answer: what so many did, and what to do; in the order of a message
CAUSES = {
    "absent": ("never joined", "start them, or read their messages"),
    "gone": ("left", "start them again"),
    "silenced": ("sent a flood of messages", "correct their program"),
    "cut": ("cut off by the broker", _SIZE),
    "unasked": ("not asked, as the broker cuts the server off", _SIZE),
    "unheard": ("present, but no reply arrives", f"{_SIZE}, or correct its access rules"),
    "silent": ("present but silent", "give it a longer --deadline"),
    "away": ("out of reach", "start the clients' broker"),  # or what the bus gives as its reason
    "": ("missing behind a relay", "give it a longer --deadline"),
}


@dataclass(frozen=True)
class Lack:
    """The clients start..stop may owe reports at the end of a round: the cause, and the name of
    their member."""

    cause: str
    name: str
    start: int
    stop: int


@dataclass(frozen=True)
class Terms:
    """A round ends after `deadline` seconds at the latest, and counts if at least the share
    `quorum` of each cohort has answered.

    Without a deadline, it follows from the number of members and the round trip. A member whose
    connection fell is waited for `grace` seconds; if that is infinite, until the end of the round
    in which it fell. Each cohort counts by itself, since a cohort without a reply has no estimate.
    Raises InputError for terms on which no round can end.
    """

    deadline: float | None = None
    quorum: float = 0.9
    grace: float = GRACE

    def __post_init__(self) -> None:
        if not 0 < self.quorum <= 1:
            raise InputError(f"the quorum is {self.quorum}; give a fraction above 0 and at most 1")
        if self.deadline is not None and not 0 < self.deadline <= 86_400:
            raise InputError(
                f"the deadline is {self.deadline} seconds; give a number above 0 and at most 86400"
            )
        if not self.grace >= 0:
            raise InputError(f"the grace is {self.grace} seconds; give a number from 0 on")

    def idle_from(self, gone_since: float, began: float) -> float:
        """When a round that `began` then stops waiting for a member that is gone."""
        return gone_since + (
            GRACE if math.isinf(self.grace) and gone_since + GRACE <= began else self.grace
        )

    def judge(self, round: "Round") -> None:
        """Raises RefusedError or QuorumError for the first cohort of a closed round without its
        quorum."""
        parts = round.parts
        short = [
            ask
            for ask, part in enumerate(parts)
            if part.answers < self.quorum * len(part.query.cohort)
        ]
        if not short:
            return
        for ask in short:
            if count := parts[ask].held_back:
                crowd = f"{count} of {len(parts[ask].query.cohort)} clients{_which(ask, round)}"
                raise QuorumError(
                    f"round {round.number}: the shuffler holds back the reports of {crowd}, fewer "
                    "than its minimum crowd; ask more clients, or allow a smaller --crowd"
                )
        refusal = next((ask for ask in short if parts[ask].refusers), None)
        ask = short[0] if refusal is None else refusal
        part = parts[ask]
        size = len(part.query.cohort)
        others = f"; {len(short)} of {len(parts)} cohorts fell short" if len(parts) > 1 else ""
        why = _why(part, round)
        if refusal is not None:
            code, text = next(iter(part.refusals.items()))
            text = brief(text if text.strip() else round.reason(code), _TEXT)
            clients = f"{part.refusers} of {size} clients refused round {round.number}"
            also = f"; and {why}" if why else ""
            raise RefusedError(code, f"{clients}{_which(ask, round)}{others}: {text}{also}")
        lower = ", or lower --quorum" if part.answers else ""
        replies = f"{part.answers} of {size} replies{_which(ask, round)}"
        raise QuorumError(
            f"round {round.number} closed with {replies}, below the quorum of {self.quorum:g}"
            f"{others}: {why}{lower}"
        )


def _why(part: "Part", round: "Round") -> str:
    """How many clients of a cohort gave no answer, by cause, with their first members; and what to
    do."""
    counts, names = Counter(part.elsewhere), dict[str, list[str]]()
    for lack, owing in round.lacking(part):
        counts[lack.cause] += owing
        names.setdefault(lack.cause, []).append(lack.name)
    causes = [cause for cause in CAUSES if counts[cause]]
    numbers = [
        f"{counts[cause]:,} {CAUSES[cause][0]}{named(names.get(cause, ()))}" for cause in causes
    ]
    advice = dict.fromkeys(
        (cause == "away" and round.trouble) or CAUSES[cause][1] for cause in causes
    )
    return "; ".join(filter(None, (", ".join(numbers), round.rejections, "; ".join(advice))))


def named(members: Sequence[str]) -> str:
    """The first of these members in parentheses, and how many more there are."""
    more = f" and {len(members) - _NAMED:,} more" if len(members) > _NAMED else ""
    return f" ({', '.join(members[:_NAMED])}{more})" if members else ""


def _which(ask: int, round: "Round") -> str:
    """Which cohort is meant, where there are several."""
    if len(round.parts) == 1:
        return ""
    cohort = round.parts[ask].query.cohort
    return f" to ask {ask} from the clients {cohort.start} to {cohort.stop - 1}"
