"""The client, sans I/O: records, ledger, randomizers; a request in, replies or refusals out.

One role holds the clients start..start + len(records), each with its own record, ledger entry and stream of words. A client process holds one.
"""

from hashlib import blake2b

import numpy as np

from clients.journal import Entry, Journal
from local_dp.errors import InputError, RefusedError
from local_dp.ledger import Ledger
from local_dp.noise import Noise
from local_dp.oracles.local.asked import CHUNK, Cohort, LocalQuery, charges_of, check_disjoint, respond
from local_dp.queries.registry import QUERIES
from local_dp.randomizers.base import Randomizer
from local_dp.randomizers.evidence import check_epsilon
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.records import Records, chunks
from local_dp.wire import Ask, Refusal, Reply, Request, Span, encode

_REMEMBERED = 64  # randomizers whose channel need not be enumerated again


class ClientRole:
    """Answers requests for the clients of one member.

    `allowed` names the randomizers it will run (None: every installed one). What a randomizer costs is computed by this client's own copy of it and checked
    by enumerating its channel; the budget is charged before anything is sampled.
    """

    def __init__(
        self,
        member: str,
        start: int,
        records: Records,
        noise: Noise,
        ledger: Ledger,
        journal: Journal,
        allowed: frozenset[str] | None = None,
    ) -> None:
        self.member = member
        self.start = start
        self.records = records
        self.noise = noise
        self.ledger = ledger
        self.journal = journal
        self.allowed = allowed
        self._verified: dict[Randomizer, None] = {}

    @property
    def stop(self) -> int:
        """One past the last client."""
        return self.start + len(self.records)

    def handle(self, request: Request) -> tuple[Reply | Refusal, ...]:
        """The replies to a request, the same ones each time it comes; or one refusal. Nothing when no client of this member is asked."""
        if not any(self._overlap(ask) for ask in request.asks):
            return ()
        digest = blake2b(encode(request.model_copy(update={"missing": ()})), digest_size=16).digest()
        try:
            entry = self.journal.get(request.run, request.round)
            if entry is None:
                entry = Entry(digest, self._answer(request))
                self.journal.put(request.run, request.round, entry)
            elif entry.request != digest:
                raise RefusedError("equivocation", f"round {request.round} of run {request.run} was already asked with another request")
        except RefusedError as refused:
            return (self._refusal(request, refused),)
        return tuple(reply for reply in entry.replies if _is_missing(reply, request.missing))

    def _answer(self, request: Request) -> tuple[Reply, ...]:
        queries = [self._local_query(ask, span) for ask in request.asks if (span := self._overlap(ask))]
        try:
            check_disjoint(tuple(queries))
        except InputError as error:
            raise RefusedError("bad-request", str(error)) from error
        self.ledger.charge_all(request.run, charges_of(queries))
        return tuple(self._reply(request, query, start, stop) for query in queries for start, stop in chunks(query.cohort.start, query.cohort.stop, CHUNK))

    def _overlap(self, ask: Ask) -> Span | None:
        start, stop = max(ask.start, self.start), min(ask.stop, self.stop)
        return (start, stop) if start < stop else None

    def _local_query(self, ask: Ask, span: Span) -> LocalQuery:
        query = QUERIES.build(ask.query, ask.query_params)
        try:
            query(self.records.take(slice(0, 0)))  # refuses on the schema alone, whatever the record holds
            local = LocalQuery(query, self._randomizer(ask), Cohort(*span))
        except InputError as error:
            raise RefusedError("bad-query", str(error)) from error
        return local

    def _randomizer(self, ask: Ask) -> Randomizer:
        if self.allowed is not None and ask.randomizer not in self.allowed:
            raise RefusedError("not-allowed", f"randomizer {ask.randomizer!r} is not on this client's list: {', '.join(sorted(self.allowed))}")
        randomizer = RANDOMIZERS.build(ask.randomizer, ask.randomizer_params)
        if randomizer not in self._verified:
            if len(self._verified) >= _REMEMBERED:
                self._verified.clear()
            check_epsilon(randomizer)
            self._verified[randomizer] = None
        return randomizer

    def _reply(self, request: Request, query: LocalQuery, start: int, stop: int) -> Reply:
        records = self.records.take(slice(start - self.start, stop - self.start))
        reports = respond(query, records, start, self.noise, request.round, request.coins)
        dtype = query.randomizer.report_dtype
        packed = np.ascontiguousarray(reports, dtype=dtype).tobytes()
        width: int = dtype.itemsize
        return Reply.model_validate({"run": request.run, "round": request.round, "member": self.member, "start": start, "width": width, "reports": packed})

    def _refusal(self, request: Request, refused: RefusedError) -> Refusal:
        return Refusal(run=request.run, round=request.round, member=self.member, start=self.start, stop=self.stop, code=refused.code, text=str(refused)[:1000])


def _is_missing(reply: Reply, missing: tuple[Span, ...]) -> bool:
    stop = reply.start + len(reply.reports) // reply.width
    return not missing or any(start < stop and reply.start < end for start, end in missing)
