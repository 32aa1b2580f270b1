"""One round, sans I/O: its queries, the answers, the missing ones; and at the end the accepted
reports beside the members' own accounts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from operator import attrgetter

import numpy as np

from local_dp.arrays import Bools, Words
from local_dp.bounds.attacks import irregularity, ones_seen
from local_dp.errors import InputError, WireError
from local_dp.noise import COINS
from local_dp.oracles.local.asked import CHUNK, LocalQuery, cells_of, chunk_digest, round_digest
from local_dp.randomizers.frequencies.unary import UnaryEncoding
from local_dp.records import chunks
from local_dp.server.archive import Missed, Sum
from local_dp.server.losses import Unanswered, replies_of
from local_dp.server.progress import Turnout
from local_dp.server.quorum import CAUSES, Lack
from local_dp.tallies import Tally
from local_dp.verification.sources import plug_in_digest
from local_dp.wire import (
    CLIENT,
    TEXTS,
    Absent,
    Account,
    Ask,
    Line,
    Refusal,
    Reply,
    Request,
    Span,
    checksum,
    decode,
    encode,
    reason,
)


@dataclass(frozen=True)
class Balance:
    """One round over the members that gave their account: reports accepted and charged, the joint
    checksum of those accepted, whether all of it agrees."""

    round: int
    accepted: int
    charged: int
    checksum: int
    agree: bool
    accepted_not_charged: int
    charged_not_accepted: int


@dataclass(frozen=True)
class Reconciliation:
    """The balance of each round. A member without an account is silent: its accepted reports are
    not reconciled."""

    members: int
    silent: int
    rounds: tuple[Balance, ...]

    @property
    def accepted_not_charged(self) -> int:
        """Counted reports that their member did not charge, or did not send in this form: 0 if
        nobody lies."""
        return sum(map(attrgetter("accepted_not_charged"), self.rounds))

    @property
    def charged_not_accepted(self) -> int:
        """Charged reports that were not counted: lost or late ones."""
        return sum(map(attrgetter("charged_not_accepted"), self.rounds))


def reconcile(
    sums: Mapping[int, Mapping[str, Sum]],
    accounts: Mapping[str, Account],
    members: Iterable[str],
) -> Reconciliation:
    """The accepted reports of each round by member, beside the members' own accounts."""
    names = {*members, *(name for by_name in sums.values() for name in by_name)}
    lines: dict[int, dict[str, Line]] = {}
    for name, account in accounts.items():
        for line in account.rounds:
            lines.setdefault(line[0], {})[name] = line
    rounds = sorted({*sums, *lines})
    balances = (
        _balance(number, sums.get(number, {}), lines.get(number, {}), accounts.keys())
        for number in rounds
    )
    return Reconciliation(len(names), len(names - accounts.keys()), tuple(balances))


def _balance(
    number: int, sums: Mapping[str, Sum], lines: Mapping[str, Line], names: Iterable[str]
) -> Balance:
    reports, charges, joint, too_many, too_few = 0, 0, 0, 0, 0
    for name in names:
        took, (_, charge, checksum) = sums.get(name, Sum()), lines.get(name, (number, 0, 0))
        reports, charges, joint = reports + took.reports, charges + charge, joint ^ took.checksum
        too_few += max(0, charge - took.reports)
        if took.reports == charge and took.checksum != checksum:
            too_many += took.reports
        else:
            too_many += max(0, took.reports - charge)
    return Balance(number, reports, charges, joint, too_few == too_many == 0, too_many, too_few)


@dataclass(frozen=True)
class Closing:
    """The counts of a finished round, its seconds, and who has not answered."""

    counts: Turnout
    seconds: float
    shortfall: Unanswered = field(default_factory=Unanswered)


@dataclass(frozen=True)
class Past:
    """The stored part of a round: the digest of its request, the accepted replies in order, and its
    closing, if it was closed."""

    request: bytes
    replies: tuple[Reply, ...]
    closing: Closing | None


@dataclass
class Part:
    """One ask of the round and its cohort's reports, as bytes: the first report of a client counts.

    `refusals` maps each code of a refusal by a client without an answer to its first reason.
    """

    query: LocalQuery
    coins: bytes
    reports: Words = field(init=False)
    answered: Bools = field(init=False)
    refused: Bools = field(init=False)
    absent: Bools = field(init=False)  # a shuffler reports that none will come
    late: Bools = field(init=False)
    held_back: int = field(init=False, default=0)
    refusals: dict[str, str] = field(init=False, default_factory=dict)
    # without an answer behind a relay, by the cause that it gives
    elsewhere: Counter[str] = field(init=False, default_factory=Counter)

    def __post_init__(self) -> None:
        size = len(self.query.cohort)
        self.reports = np.zeros((size, self.query.randomizer.report_dtype.itemsize), dtype=np.uint8)
        flags = np.zeros((4, size), dtype=np.bool_)
        self.answered, self.refused, self.absent, self.late = flags

    @property
    def answers(self) -> int:
        return int(self.answered.sum())

    @property
    def refusers(self) -> int:
        """How many refused and have not answered."""
        return int((self.refused & ~self.answered).sum())

    def window(self, start: int, stop: int) -> slice | None:
        """The clients start..stop as positions in this cohort, or None if none of them is in it."""
        first = self.query.cohort.start
        low, high = max(start, first), min(stop, self.query.cohort.stop)
        return slice(low - first, high - first) if low < high else None

    def waiting(self, window: slice) -> Bools:
        """The positions that may still answer."""
        waiting: Bools = ~(self.answered[window] | self.refused[window] | self.absent[window])
        return waiting

    def decoded(self, window: slice) -> Words:
        reports: Words = np.frombuffer(
            self.reports[window].tobytes(), dtype=self.query.randomizer.report_dtype
        )
        return reports

    def chunks(self) -> list[tuple[int, int, slice]]:
        """The cohort in the chunks that digests are made of: first client, one past the last,
        positions."""
        first = self.query.cohort.start
        return [
            (start, stop, slice(start - first, stop - first))
            for start, stop in chunks(first, self.query.cohort.stop, CHUNK)
        ]

    def tally(self) -> Tally:
        randomizer, tally = self.query.randomizer, self.query.randomizer.empty()
        for start, stop, window in self.chunks():
            window_answers = self.answered[window]
            cells = cells_of(randomizer, self.coins, start, stop)
            tally += randomizer.tally(
                self.decoded(window)[window_answers],
                cells[window_answers] if randomizer.uses_coins else cells,
            )
        return tally


class Round:
    """Collects the replies of one round until everybody has answered, refused or gone, or the
    deadline passes."""

    def __init__(
        self, run: str, number: int, queries: tuple[LocalQuery, ...], coin_seed: int
    ) -> None:
        self.run = run
        self.number = number
        self.parts = [
            Part(query, query.draw(number, ask).key(COINS, coin_seed))
            for ask, query in enumerate(queries)
        ]
        self.counts = Turnout(asked=sum(len(query.cohort) for query in queries))
        self.closed = False
        self.outstanding = self.counts.asked  # reports that have neither come nor been refused
        self.sums: dict[str, Sum] = {}  # what was accepted, by member
        self.shortfall: Unanswered | None = None  # at its end
        self.lacks: tuple[Lack, ...] = ()  # at its end; why reports are missing
        self.trouble = self.rejections = ""  # the same: of the broker, and of messages
        self.is_resumed = False  # it had ended before the server's restart
        self.past_spans: list[Span] = []  # clients with reports from before the server's restart

    def request(self, missing: tuple[Span, ...] = ()) -> Request:
        """The round's one request, as data; with `missing`, addressed once more to the clients that
        have not answered."""
        return Request(
            run=self.run,
            round=self.number,
            asks=tuple(
                Ask.of(part.query, part.coins, plug_in_digest(part.query.kinds))
                for part in self.parts
            ),
            missing=missing,
        )

    def check_size(self) -> None:
        """Raises InputError for a request that no member can read."""
        try:
            decode(encode(self.request()), CLIENT)
        except WireError as error:
            raise InputError(
                f"no member can read the request of round {self.number} ({error}); list fewer "
                "labels, with other=category for the rest, or use --tier population"
            ) from None

    def request_digest(self) -> bytes:
        """The digest that every request of this round must have: clients answer only one."""
        return blake2b(encode(self.request()), digest_size=16).digest()

    def restore(self, past: Past) -> None:
        """Accepts what was accepted before. Raises InputError where the round is another now."""
        if past.request != self.request_digest():
            raise InputError(
                f"round {self.number} of run {self.run!r} is not what it was when it was asked; "
                "resume it with the version that began it"
            )
        for reply in past.replies:
            self.accept(reply)
            self.past_spans.append((reply.start, reply.start + len(reply.reports) // reply.width))
        if past.closing is not None:
            self.close()
            self.counts = replace(past.closing.counts)
            self.shortfall, self.is_resumed = past.closing.shortfall, True

    def _part(self, ask: int, start: int, stop: int) -> Part | None:
        """The ask, if the clients start..stop are of its cohort."""
        part = self.parts[ask] if ask < len(self.parts) else None
        is_within = part and part.query.cohort.start <= start < stop <= part.query.cohort.stop
        return part if is_within else None

    def accept(self, reply: Reply) -> None:
        """Counts a reply's reports: the new ones, the repeated ones, the late ones. Raises
        WireError if it does not fit the round."""
        count, rest = divmod(len(reply.reports), reply.width)
        start, stop = reply.start, reply.start + count
        part = self._part(reply.ask, start, stop)
        if part is None or rest:
            raise WireError(
                f"{len(reply.reports)} bytes of {reply.width}-byte reports to ask {reply.ask} by "
                f"the clients {start}..{stop}, who owe none"
            )
        randomizer = part.query.randomizer
        if reply.width != randomizer.report_dtype.itemsize:
            raise WireError(
                f"reports of {reply.width} bytes where {randomizer.name} makes "
                f"{randomizer.report_dtype.itemsize}"
            )
        if not bool(
            randomizer.possible(np.frombuffer(reply.reports, dtype=randomizer.report_dtype)).all()
        ):
            raise WireError(f"a report that no client of {randomizer.name} could have made")
        before = self.counts.answered
        self._count(
            part,
            start,
            stop,
            np.frombuffer(reply.reports, dtype=np.uint8).reshape(count, reply.width),
        )
        if self.counts.answered > before:
            total = self.sums.setdefault(reply.member, Sum())
            total.reports += self.counts.answered - before
            total.checksum ^= checksum(reply)

    def _count(self, part: Part, start: int, stop: int, reports: Words) -> None:
        window = part.window(start, stop)
        assert window is not None
        before = part.answered[window]
        again = int(np.count_nonzero(before))
        if again:
            self.counts.duplicate += again
            self.counts.conflicting += int(
                (part.reports[window][before] != reports[before]).any(axis=1).sum()
            )
        if self.closed:
            late = ~before & ~part.late[window]
            self.counts.late += int(np.count_nonzero(late))
            self.counts.duplicate += len(reports) - again - int(np.count_nonzero(late))
            part.late[window] |= late
            return
        some = again or part.refusals or bool(part.absent[window].any())
        self.outstanding -= int(np.count_nonzero(part.waiting(window))) if some else len(reports)
        part.reports[window] = (
            np.where(before[:, None], part.reports[window], reports) if again else reports
        )
        self.counts.answered += len(reports) - again
        part.answered[window] = True

    def _windows(self, start: int, stop: int) -> Iterator[tuple[Part, slice]]:
        """The parts with clients among start..stop, and their positions there."""
        for part in self.parts:
            window = part.window(start, stop)
            if window is not None:
                yield part, window

    def refuse(self, refusal: Refusal) -> None:
        """Counts all asks of the clients of a refusal as refused."""
        if self.closed:
            return
        for part, window in self._windows(refusal.start, refusal.stop):
            waiting = int(part.waiting(window).sum())
            self.outstanding -= waiting
            part.refused[window] = True
            if waiting:
                part.refusals.setdefault(refusal.code, refusal.text)

    def miss(self, absent: Absent) -> None:
        """Counts the places of an ask without a report from the shuffler. Raises WireError if they
        are not the ask's."""
        part = self._part(absent.ask, absent.start, absent.stop)
        if part is None:
            raise WireError(
                f"no reports to ask {absent.ask} for {absent.start}..{absent.stop}, which are not "
                "its places"
            )
        if self.closed:
            return
        window = part.window(absent.start, absent.stop)
        assert window is not None
        waiting = int(part.waiting(window).sum())
        self.outstanding -= waiting
        (part.refused if absent.why == "refused" else part.absent)[window] = True
        if absent.why == "refused":
            part.refusals.setdefault(absent.code, "")
        elif absent.why == "missing":
            part.elsewhere[absent.code if absent.code in CAUSES else ""] += waiting
        part.held_back += waiting * (absent.why == "crowd")

    def lacking(self, part: Part) -> Iterator[tuple[Lack, int]]:
        """Who owes reports to an ask, and how many."""
        for lack in self.lacks:
            window = part.window(lack.start, lack.stop)
            if window is not None and (owing := int(part.waiting(window).sum())):
                yield lack, owing

    def reason(self, code: str) -> str:
        """Our own text of a refusal's code."""
        return (
            f"{code}: {reason(code, self.request())}"
            if code in TEXTS
            else f"code {code}"
            if code
            else "they gave no reason"
        )

    def awaited(self, start: int, stop: int) -> list[Span]:
        """The spans of clients among start..stop that owe a report, ascending and apart."""
        spans = []
        for part, window in self._windows(start, stop):
            offset = part.query.cohort.start + int(window.start)
            spans += [(offset + low, offset + high) for low, high in runs(part.waiting(window))]
        return joined(spans)

    def close(self) -> None:
        """No report counts any more."""
        self.closed = True
        self.counts.refused = sum(part.refusers for part in self.parts if part.refusals)
        self.counts.held_back = sum(part.held_back for part in self.parts)
        self.counts.missing = (
            self.counts.asked - self.counts.answered - self.counts.refused - self.counts.held_back
        )

    def tallies(self) -> tuple[Tally, ...]:
        """The tally of each ask over the reports that came."""
        return tuple(part.tally() for part in self.parts)

    def missed(self, spans: Mapping[str, Span]) -> Missed | None:
        """The members that have not answered, if there are any. Of a resumed server's earlier
        rounds nobody knows who was late."""
        if self.shortfall is None or not self.shortfall.owing:
            return None
        late = {
            name
            for name in self.shortfall.owing
            if self.is_resumed or name not in spans or self._late(*spans[name])
        }
        widths = [
            (len(part.query.cohort), part.query.randomizer.report_dtype.itemsize)
            for part in self.parts
        ]
        replies = sum(
            replies_of(clients, width, self.shortfall.members) for clients, width in widths
        )
        return Missed(self.number, self.shortfall, late, replies)

    def _late(self, start: int, stop: int) -> bool:
        return any(bool(part.late[window].any()) for part, window in self._windows(start, stop))

    def irregularity(self) -> float | None:
        """The least p-value of its asks whose honest reports have a law that no record changes,
        times the number of these asks."""
        p_values = []
        for part in self.parts:
            if isinstance(randomizer := part.query.randomizer, UnaryEncoding):
                ones = [
                    ones_seen(randomizer, part.decoded(window)[part.answered[window]])
                    for _, _, window in part.chunks()
                ]
                p_values.append(irregularity(randomizer, np.sum(ones, axis=0)))
        values = [value for value in p_values if value is not None]
        return min(1.0, len(values) * min(values)) if values else None

    def digest(self) -> str:
        """The digest of the round's reports, equal to the population tier's when all came and every
        report agrees."""
        windows = ((part, window) for part in self.parts for _, _, window in part.chunks())
        return round_digest(
            [
                chunk_digest(part.query.randomizer, part.decoded(window), part.answered[window])
                for part, window in windows
            ]
        )


def joined(spans: list[Span]) -> list[Span]:
    """The spans sorted, those that meet or overlap made one."""
    union: list[Span] = []
    for start, stop in sorted(spans):
        if union and start <= union[-1][1]:
            union[-1] = (union[-1][0], max(stop, union[-1][1]))
        else:
            union.append((start, stop))
    return union


def runs(flags: Bools) -> list[Span]:
    """The maximal spans where `flags` is true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(low), int(high)) for low, high in edges.reshape(-1, 2)]
