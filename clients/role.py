"""The client, sans I/O: it holds records, a store and randomizers, takes a request and gives
replies or refusals.

One role holds the clients start..start + len(records), each with its own record, place in the store
and stream of words. A client process holds one.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

import numpy as np

from local_dp.arrays import Counts
from local_dp.clients.journal import Commit, Store
from local_dp.clients.places import Places
from local_dp.domains import Parameter
from local_dp.errors import InputError, RefusedError
from local_dp.ledger import Charge
from local_dp.noise import KeyedNoise, Noise, StoreNoise, fresh
from local_dp.oracles.local.asked import Cohort, LocalQuery, respond
from local_dp.oracles.local.memory import Memoised, Memory, Session, repeat_of
from local_dp.queries.query import QUERIES, Query
from local_dp.randomizers.evidence import PROVEN, entries
from local_dp.randomizers.randomizer import Evidence, Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.with_coin import WithCoin
from local_dp.records import Records, chunks
from local_dp.verification.audit import is_built_in, verify
from local_dp.verification.sources import code_digest, plug_in_digest
from local_dp.wire import (
    FAILED,
    MAX_LINES,
    Account,
    Ask,
    Receipt,
    Refusal,
    Reply,
    Request,
    Span,
    encode,
    known,
    per_message,
    reason,
)

FOR_ONE = 1 << 28  # entries of channels in one request, each some 30 ns at the slowest
FOR_LIFE = 1 << 32
_BUILD = 1 << 20  # entries that building one counts as
_AUDIT = 1 << 26  # entries that auditing one of another package counts as
_ASKED = 1 << 17  # entries that reading an ask, building its query and storing its answer count as
_CLIENT = 1 << 6  # and answering for one client, beside its words and what it compares
_UNIT = 30e-9  # seconds
_KEPT = 16  # queries and randomizers that are not built again

Item = TypeVar("Item")


def _key(name: str, params: Mapping[str, Parameter]) -> str:
    return repr((name, sorted(params.items())))


def _recall(recent: dict[str, Item], key: str, make: Callable[[], Item]) -> Item:
    """The item of a key, made if it is not there; puts it last, and drops the first of too many."""
    item = recent.pop(key) if key in recent else make()
    recent[key] = item
    if len(recent) > _KEPT:
        del recent[next(iter(recent))]
    return item


class Work:
    """The queries and randomizers of one client. Their cost in entries of channels is counted
    before it is spent."""

    def __init__(self, evidence: frozenset[Evidence], schema: Records) -> None:
        self.evidence = evidence
        self.schema = schema
        self.done = 0
        self._start = self._end = self._answering = 0
        self._queries: dict[str, Query] = {}  # the last ones, by name and parameters
        self._randomizers: dict[str, Randomizer] = {}
        self._approvals = set[str]()  # names and parameters
        self._recent = deque[Randomizer](maxlen=_KEPT)  # the last ones that were verified

    def begin(self) -> None:
        self._start, self._answering = self.done, 0
        self._end = min(self.done + FOR_ONE, FOR_LIFE)

    def expect(self, queries: Iterable[LocalQuery]) -> None:
        """Counts the work of answering these, from the request and the types of the columns
        alone."""
        for query in queries:
            each = _CLIENT + query.query.breadth + query.randomizer.words
            self._answering += _ASKED + len(query.cohort) * each

    @property
    def seconds(self) -> float:
        """How long the request takes at most, on a machine that is not slow."""
        return _UNIT * (self.done - self._start + self._answering)

    def query(self, name: str, params: Mapping[str, Parameter]) -> Query:
        """The query, which fits the names and types of the columns. Raises RefusedError, or
        InputError if it does not fit."""

        def make() -> Query:
            query = QUERIES.build(name, params)
            query.values(self.schema)
            return query

        return _recall(self._queries, _key(name, params), make)

    def build(self, name: str, params: Mapping[str, Parameter]) -> Randomizer:
        """The randomizer, not verified. Raises RefusedError, "too-much" among others."""

        def make() -> Randomizer:
            self._spend(_BUILD)
            return RANDOMIZERS.build(name, params)

        return _recall(self._randomizers, _key(name, params), make)

    def verify(self, randomizers: Iterable[Randomizer]) -> None:
        """Raises RefusedError unless each passes `local_dp.verification.audit`, or "too-much"
        before it is tried."""
        for each in randomizers:
            if any(each is recent for recent in self._recent):
                continue
            key = _key(each.name, each.params())
            # else it costs nothing
            if key not in self._approvals and each.evidence in self.evidence:
                self._spend(entries(each) if is_built_in(each) else _AUDIT)
            verify(each, self.evidence)
            self._approvals.add(key)
            self._recent.append(each)

    def _spend(self, units: int) -> None:
        if self.done + units > self._end:
            raise RefusedError(
                "too-much",
                f"{units} entries on top of {self.done}, where a request may take {FOR_ONE} "
                f"and a life {FOR_LIFE}",
            )
        self.done += units


@dataclass(frozen=True)
class Policy:
    """What a client accepts: the randomizers on its list (None: every installed one), and the
    evidence of their loss.

    Its ceilings: the `least` nano-nats for one answer, the `rounds` it answers in its life, and the
    bytes of reports `kept` for each client.
    """

    allowed: frozenset[str] | None = None
    evidence: frozenset[Evidence] = PROVEN
    least: int = 1_000
    rounds: int = 10_000
    kept: int = 1 << 20


DEFAULT_POLICY = Policy()


class ClientRole:
    """Answers requests for the clients of one member.

    This client's own copy of a randomizer gives its cost, which is checked against the evidence.
    The costs of a round are added up for each client, and checked before anything is verified or
    sampled. Replies, charges and the request's digest are committed in one step before anything is
    sent. A refusal never depends on a record: only on the request, the names and types of the
    columns, the budget and earlier requests.
    """

    def __init__(
        self,
        member: str,
        start: int,
        records: Records,
        noise: Noise | StoreNoise,
        store: Store,
        policy: Policy = DEFAULT_POLICY,
        person: str = "",
    ) -> None:
        places = store.places(records, person)
        records = records.without(person) if person else records
        if places is not None:
            rows = np.argsort(places)
            records, places = records.take(rows), places[rows]
        self.places = Places(places, len(records))
        self._digest_of_rows: tuple[Records | None, bytes] = (None, b"")
        self._whose = self.places.digest()
        self.member = member
        self.start, self.stop = start, start + len(records)  # one past the last
        self.records = records if isinstance(noise, KeyedNoise) else records.at_length()
        self.schema = records.schema()
        self.noise = noise
        self.store = store
        self.policy = policy
        self.work = Work(policy.evidence, self.schema)
        self.confirmations: set[tuple[str, int]] = set()
        if isinstance(noise, StoreNoise):
            self._rows()  # now, since it takes longer for long texts
            code_digest(())

    @property
    def private(self) -> bool:
        """True if nobody else can compute its noise."""
        return not isinstance(self.noise, KeyedNoise)

    def handle(self, request: Request) -> tuple[Reply | Refusal, ...]:
        """The replies to a request, the same ones each time it comes; or one refusal. Nothing when
        no client of this member is asked."""
        ends = [(max(ask.start, self.start), min(ask.stop, self.stop)) for ask in request.asks]
        spans = [(start, stop) if start < stop else None for start, stop in ends]
        if not any(spans):
            return ()
        self.work.begin()
        plain = encode(request.model_copy(update={"missing": ()}) if request.missing else request)
        plain += f"{self.member} {self.start} {self.stop}".encode()
        digest = blake2b(plain, digest_size=16).digest()
        try:
            commit = self.store.get(request.run, request.round)
            if commit is None:
                commit = self._answer(request, spans, plain, digest)
                self.store.commit(commit)
            elif commit.request != digest:
                raise RefusedError(
                    "equivocation",
                    f"round {request.round} of run {request.run} was already asked with "
                    "another request",
                )
        except RefusedError as refusal:
            return (self._refusal(request, known(refusal.code)),)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - no request ends a client
            return (self._refusal(request, FAILED, "" if self.private else f": {error}"),)
        return tuple(reply for reply in commit.replies if _is_missing(reply, request.missing))

    def _answer(
        self, request: Request, spans: list[Span | None], plain: bytes, digest: bytes
    ) -> Commit:
        queries, charges = self._plan(request, spans)
        asks = [query for _, query in queries]
        memory = self.store.memory.copy(query.repeat for query in asks)
        noise, history = self.noise, b""
        if isinstance(noise, StoreNoise):
            noise = noise.bound(*self._inputs(plain, asks))
            history = noise.history
        replies = []
        for place, query in queries:
            replies += self._replies(request, place, query, noise, memory)
        sessions = dict.fromkeys(query.label for query in asks if isinstance(query.repeat, Session))
        speakers = tuple((session, memory.speakers.bits(session)) for session in sessions)
        return Commit(
            request.run,
            request.round,
            digest,
            charges,
            tuple(replies),
            speakers,
            tuple(memory.memo.additions or ()),
            history or fresh(),
        )

    def _inputs(self, request: bytes, asks: list[LocalQuery]) -> tuple[bytes, ...]:
        """All that the reports depend on beside the secret: the code, the records, whose they are,
        the request, and the earlier rounds under its labels.

        Earlier rounds are known by the inputs of the last one, not by what they left: who
        answered in a session depends on records, and must not show in whether two copies of a store
        answer alike.
        """
        kinds = set[type]()
        for ask in asks:
            kinds |= ask.kinds
        labels = dict.fromkeys(ask.label for ask in asks if ask.label)
        histories = [self.store.histories.get(label, bytes(32)) for label in labels]
        return (
            code_digest(kinds) or fresh(),
            self._rows(),
            self._whose,
            request,
            b"".join(histories),
        )

    def _rows(self) -> bytes:
        """A digest of its records, made again for other records."""
        if self._digest_of_rows[0] is not self.records:
            self._digest_of_rows = self.records, self.records.digest()
        return self._digest_of_rows[1]

    def _plan(
        self, request: Request, spans: list[Span | None]
    ) -> tuple[list[tuple[int, LocalQuery]], tuple[Charge, ...]]:
        """The queries to its clients, and their cost; it reads no record. Every failure is a
        RefusedError."""
        try:
            places = {place: span for place, span in enumerate(spans) if span}
            asks = [(place, request.asks[place]) for place in places]
            queries = [self._local_query(ask, places[place]) for place, ask in asks]
            costs = list[Charge]()
            for (_, ask), query in zip(asks, queries, strict=True):
                costs += self._own(query.charge(ask.coins))
            charges = tuple(costs)
            self._check_ceilings(queries, charges)
            self._check_numbers(query for query in queries if isinstance(query.repeat, Memoised))
            self.store.ledger.check(request.run, charges)
            self.work.verify(query.randomizer for query in queries)
            self.work.expect(queries)
        except RefusedError:
            raise
        except (Exception, SystemExit) as error:
            raise RefusedError(FAILED, str(error)) from error
        return [*zip(places, queries, strict=True)], charges

    def _own(self, charge: Charge) -> Iterator[Charge]:
        """The charge by places in the store, since a client keeps its budget under another number
        in another run."""
        start, stop = charge.start - self.start, charge.stop - self.start
        for first, last, place in self.places.spans(start, stop):
            yield Charge(place, place + last - first, charge.nano, charge.label, charge.what)

    def _check_ceilings(self, queries: list[LocalQuery], charges: tuple[Charge, ...]) -> None:
        """Raises RefusedError("ceiling"): cheap requests could come without end, and each answer is
        kept for life."""
        size = 0
        for query in queries:
            parts = len(query.cohort) + self._unkept(query)
            size += parts * query.randomizer.report_dtype.itemsize
        policy, many = self.policy, self.store.rounds >= self.policy.rounds
        large = self.store.size + size > policy.kept * self.places.stop
        if many or large or min(charge.nano for charge in charges) < policy.least:
            raise RefusedError(
                "ceiling",
                f"{self.store.rounds} rounds and {self.store.size} bytes are kept, and {size} "
                "more are asked for",
            )

    def _unkept(self, query: LocalQuery) -> int:
        """How many clients have an outcome to keep."""
        if not isinstance(query.repeat, Memoised):
            return 0
        return int(np.count_nonzero(self._numbers(query) < 0))

    def _check_numbers(self, queries: Iterable[LocalQuery]) -> None:
        """Raises RefusedError where a label cannot be answered from what it keeps: the server would
        decode outcomes by the coins of other numbers."""
        for query in queries:
            if query.randomizer.has_second_step and not is_built_in(query.randomizer):
                raise RefusedError(
                    "evidence",
                    f"the outcomes of {query.randomizer.name} under a label are of another "
                    "loss than its reports: it is not built in",
                )
            then = self._numbers(query)
            if query.randomizer.uses_coins and bool(
                ((then >= 0) & (then != np.arange(query.cohort.start, query.cohort.stop))).any()
            ):
                raise RefusedError(
                    "equivocation",
                    f"under the label {query.label!r} a client had another number, and another "
                    "public coin",
                )

    def _numbers(self, query: LocalQuery) -> Counts:
        """The numbers that its clients had when their outcomes were kept, or -1."""
        cohort = query.cohort
        places = self.places.of(cohort.start - self.start, cohort.stop - self.start)
        return self.store.memory.memo.numbers(query.label, places)

    def account(self, run: str) -> Account:
        lines = tuple(self.store.lines(run).values())
        return Account(run=run, member=self.member, rounds=lines[-MAX_LINES:])

    def confirm(self, receipt: Receipt) -> None:
        """Notes a round that the server confirms to have stored."""
        line = self.store.lines(receipt.run).get(receipt.round)
        if line is not None and (self.start, self.stop, line[2]) in receipt.accepted:
            self.confirmations.add((receipt.run, receipt.round))

    def _local_query(self, ask: Ask, span: Span) -> LocalQuery:
        try:
            query = self.work.query(ask.query, ask.query_params)
            randomizer = self._randomizer(ask)
            repeat = repeat_of(ask.once, randomizer)
            local_query = LocalQuery(query, randomizer, Cohort(*span), repeat)
        except InputError as error:
            raise RefusedError("bad-query", str(error)) from error
        if ask.source and ask.source != plug_in_digest(local_query.kinds):
            raise RefusedError("other-code", "the source of the server's plug-in is another")
        return local_query

    def _randomizer(self, ask: Ask) -> Randomizer:
        name = ask.randomizer
        if name == WithCoin.name:
            name = str(ask.randomizer_params.get("inner", WithCoin.inner))
        allowed = self.policy.allowed
        if allowed is not None and name not in allowed:
            raise RefusedError(
                "not-allowed",
                f"randomizer {name!r} is not on this client's list: {', '.join(sorted(allowed))}",
            )
        randomizer = self.work.build(ask.randomizer, ask.randomizer_params)
        real = randomizer.evidence == "density" or _in_floats(randomizer.report_dtype)
        if self.private and real:
            raise RefusedError(
                "evidence",
                f"{randomizer.name} is defined on real numbers: its floats reveal more than "
                "its density says, and this client answers in private",
            )
        return randomizer

    def _replies(
        self,
        request: Request,
        place: int,
        query: LocalQuery,
        noise: Noise,
        memory: Memory,
    ) -> list[Reply]:
        dtype, coins = query.randomizer.report_dtype, request.asks[place].coins
        replies = []
        draw, most = query.draw(request.round, place), per_message(dtype.itemsize)
        for start, stop in chunks(query.cohort.start, query.cohort.stop, most):
            low, high = start - self.start, stop - self.start
            records, places = self.records.take(slice(low, high)), self.places.of(low, high)
            reports = respond(query, records, start, noise, draw, coins, memory, places)
            data = np.ascontiguousarray(reports, dtype=dtype.base).tobytes()
            replies.append(
                Reply(
                    run=request.run,
                    round=request.round,
                    member=self.member,
                    ask=place,
                    start=start,
                    width=dtype.itemsize,
                    reports=data,
                )
            )
        return replies

    def _refusal(self, request: Request, code: str, cause: str = "") -> Refusal:
        text = reason(code, request) + cause
        return Refusal(
            run=request.run,
            round=request.round,
            member=self.member,
            start=self.start,
            stop=self.stop,
            code=code,
            text=text[:1000],
        )


def _in_floats(dtype: "np.dtype[np.generic]") -> bool:
    """True if reports hold floating-point numbers, whose last bits may show the value (limits
    10)."""
    parts = [dtype] if dtype.fields is None else [part for part, *_ in dtype.fields.values()]
    return any(part.base.kind in "fc" for part in parts)


def _is_missing(reply: Reply, missing: tuple[Span, ...]) -> bool:
    stop = reply.start + len(reply.reports) // reply.width
    return not missing or any(start < stop and reply.start < end for start, end in missing)
