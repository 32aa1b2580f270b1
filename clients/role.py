"""The client, sans I/O: it holds records, a store and randomizers, takes a request and gives replies or refusals.

One role holds the clients start..start + len(records), each with its own record, ledger entry and stream of words. A client process holds one.
"""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from local_dp.clients.journal import Commit, Store
from local_dp.clients.refusals import FAILED, known, line
from local_dp.clients.verification_budget import Work
from local_dp.errors import InputError, RefusedError
from local_dp.ledger import Charge
from local_dp.noise import KeyedNoise, Noise
from local_dp.oracles.local.asked import Cohort, LocalQuery, Spoken, respond
from local_dp.randomizers.evidence import PROVEN
from local_dp.randomizers.randomizer import Evidence, Randomizer
from local_dp.randomizers.with_coin import WithCoin
from local_dp.records import Records, chunks
from local_dp.wire import MAX_LINES, Account, Ask, Receipt, Refusal, Reply, Request, Span, encode, per_message


@dataclass(frozen=True)
class Policy:
    """What a client accepts: the randomizers on its list (None: every installed one), and the evidence of their loss.

    Its ceilings: the `least` nano-nats for one answer, the `rounds` it answers in its life, and the bytes of reports `kept` for each client.
    """

    allowed: frozenset[str] | None = None
    evidence: frozenset[Evidence] = PROVEN
    least: int = 1_000
    rounds: int = 10_000
    kept: int = 1 << 20


DEFAULT_POLICY = Policy()


class ClientRole:
    """Answers requests for the clients of one member.

    This client's own copy of a randomizer gives its cost, which is checked against the evidence. The costs of a round are added up for each client, and checked
    before anything is verified or sampled. Replies, charges and the request's digest are committed in one step before anything is sent.
    A refusal never depends on a record: only on the request, the names and types of the columns, the budget and earlier requests.
    """

    def __init__(self, member: str, start: int, records: Records, noise: Noise, store: Store, policy: Policy = DEFAULT_POLICY) -> None:
        self.member = member
        self.start, self.stop = start, start + len(records)  # one past the last
        self.records = records
        self.schema = records.schema()
        self.noise = noise
        self.store = store
        self.policy = policy
        self.work = Work(policy.evidence, self.schema)
        self.confirmed: set[tuple[str, int]] = set()

    @property
    def private(self) -> bool:
        """Whether nobody else can compute its noise."""
        return not isinstance(self.noise, KeyedNoise)

    def handle(self, request: Request) -> tuple[Reply | Refusal, ...]:
        """The replies to a request, the same ones each time it comes; or one refusal. Nothing when no client of this member is asked."""
        spans = [self._overlap(ask) for ask in request.asks]
        if not any(spans):
            return ()
        plain = encode(request.model_copy(update={"missing": ()}) if request.missing else request)
        digest = blake2b(plain + f"{self.member} {self.start} {self.stop}".encode(), digest_size=16).digest()
        try:
            commit = self.store.get(request.run, request.round)
            if commit is None:
                commit = self._answer(request, spans, digest)
                self.store.commit(commit)
            elif commit.request != digest:
                raise RefusedError("equivocation", f"round {request.round} of run {request.run} was already asked with another request")
        except RefusedError as refused:
            return (self._refusal(request, known(refused.code)),)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - no request ends a client
            return (self._refusal(request, FAILED, "" if self.private else f": {error}"),)
        return tuple(reply for reply in commit.replies if _is_missing(reply, request.missing))

    def _answer(self, request: Request, spans: list[Span | None], digest: bytes) -> Commit:
        queries, charges = self._planned(request, spans)
        sessions = dict.fromkeys(query.session for _, query in queries if query.session)
        spoken = self.store.spoken.copy(sessions)
        replies = [reply for place, query in queries for reply in self._replies(request, place, query, spoken)]
        return Commit(request.run, request.round, digest, charges, tuple(replies), tuple((session, spoken.bits(session)) for session in sessions))

    def _planned(self, request: Request, spans: list[Span | None]) -> tuple[list[tuple[int, LocalQuery]], tuple[Charge, ...]]:
        """The queries to its clients, and their cost; it reads no record. Every failure is a RefusedError."""
        try:
            self.work.begin()
            queries = [(place, self._local_query(request.asks[place], span)) for place, span in enumerate(spans) if span]
            charges = tuple(self._own(query.charge(request.asks[place].coins)) for place, query in queries)
            self._check_ceilings([query for _, query in queries], charges)
            self.store.ledger.check(request.run, charges)
            self.work.verify(query.randomizer for _, query in queries)
        except RefusedError:
            raise
        except (Exception, SystemExit) as error:
            raise RefusedError(FAILED, str(error)) from error
        return queries, charges

    def _own(self, charge: Charge) -> Charge:
        """The charge by the place of a record among its own, since a client keeps its budget under another number in another run."""
        what = blake2b(charge.what + f"{self.start}".encode(), digest_size=16).digest() if charge.memo else b""
        return Charge(charge.start - self.start, charge.stop - self.start, charge.nano, charge.memo, what)

    def _check_ceilings(self, queries: list[LocalQuery], charges: tuple[Charge, ...]) -> None:
        """Raises RefusedError("ceiling"): cheap requests could come without end, and each answer is kept for life."""
        size = sum(len(query.cohort) * query.randomizer.report_dtype.itemsize for query in queries)
        policy, many = self.policy, self.store.rounds >= self.policy.rounds
        if many or self.store.size + size > policy.kept * len(self.records) or min(charge.nano for charge in charges) < policy.least:
            raise RefusedError("ceiling", f"{self.store.rounds} rounds and {self.store.size} bytes are kept, and {size} more are asked for")

    def account(self, run: str) -> Account:
        return Account(run=run, member=self.member, rounds=tuple(self.store.lines(run).values())[-MAX_LINES:])

    def confirm(self, receipt: Receipt) -> None:
        """Notes a round that the server confirms to have stored."""
        line = self.store.lines(receipt.run).get(receipt.round)
        if line is not None and (self.start, self.stop, line[2]) in receipt.accepted:
            self.confirmed.add((receipt.run, receipt.round))

    def _overlap(self, ask: Ask) -> Span | None:
        start, stop = max(ask.start, self.start), min(ask.stop, self.stop)
        return (start, stop) if start < stop else None

    def _local_query(self, ask: Ask, span: Span) -> LocalQuery:
        try:
            query = self.work.query(ask.query, ask.query_params)
            return LocalQuery(query, self._randomizer(ask), Cohort(*span), ask.once)
        except InputError as error:
            raise RefusedError("bad-query", str(error)) from error

    def _randomizer(self, ask: Ask) -> Randomizer:
        name = ask.randomizer if ask.randomizer != WithCoin.name else str(ask.randomizer_params.get("inner", WithCoin.inner))
        allowed = self.policy.allowed
        if allowed is not None and name not in allowed:
            raise RefusedError("not-allowed", f"randomizer {name!r} is not on this client's list: {', '.join(sorted(allowed))}")
        randomizer = self.work.build(ask.randomizer, ask.randomizer_params)
        if self.private and (randomizer.evidence == "density" or _in_floats(randomizer.report_dtype)):
            raise RefusedError(
                "evidence", f"{randomizer.name} is defined on real numbers: its floats reveal more than its density says, and this client answers in private"
            )
        return randomizer

    def _replies(self, request: Request, place: int, query: LocalQuery, spoken: Spoken) -> list[Reply]:
        dtype, coins = query.randomizer.report_dtype, request.asks[place].coins
        replies = []
        for start, stop in chunks(query.cohort.start, query.cohort.stop, per_message(dtype.itemsize)):
            records = self.records.take(slice(start - self.start, stop - self.start))
            reports = respond(query, records, start, self.noise, query.draw(request.round, place), coins, spoken, start - self.start)
            packed = np.ascontiguousarray(reports, dtype=dtype.base).tobytes()
            replies.append(Reply(run=request.run, round=request.round, member=self.member, ask=place, start=start, width=dtype.itemsize, reports=packed))
        return replies

    def _refusal(self, request: Request, code: str, cause: str = "") -> Refusal:
        text = line(code, request) + cause
        return Refusal(run=request.run, round=request.round, member=self.member, start=self.start, stop=self.stop, code=code, text=text[:1000])


def _in_floats(dtype: "np.dtype[np.generic]") -> bool:
    """Whether reports hold floating-point numbers, whose last bits may show the value (limits 10)."""
    parts = [dtype] if dtype.fields is None else [part[0] for part in dtype.fields.values()]
    return any(part.base.kind in "fc" for part in parts)


def _is_missing(reply: Reply, missing: tuple[Span, ...]) -> bool:
    stop = reply.start + len(reply.reports) // reply.width
    return not missing or any(start < stop and reply.start < end for start, end in missing)
