"""A client does bounded work for its server: it builds and verifies a randomizer once, and only so many for one request and in its life."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from local_dp.domains import Parameter
from local_dp.errors import RefusedError
from local_dp.queries.query import Query
from local_dp.queries.registry import QUERIES
from local_dp.randomizers.evidence import entries
from local_dp.randomizers.randomizer import Evidence, Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.records import Records
from local_dp.verification.audit import is_built_in, verify

FOR_ONE = 1 << 28  # entries of channels in one request, each some 30 ns at the slowest
FOR_LIFE = 1 << 32
_BUILD = 1 << 20  # entries that building one counts as
_AUDIT = 1 << 26  # entries that auditing one of another package counts as
_KEPT = 16  # queries and randomizers that are not built again

Made = TypeVar("Made")


class _Recent(Generic[Made]):
    """The last ones that were asked for, by name and parameters."""

    def __init__(self) -> None:
        self._made = OrderedDict[str, Made]()

    def of(self, key: str, make: Callable[[], Made]) -> Made:
        """The one under this key, made if it is not there."""
        if key not in self._made:
            self._made[key] = make()
            if len(self._made) > _KEPT:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        return self._made[key]


def _key(name: str, params: Mapping[str, Parameter]) -> str:
    return repr((name, sorted(params.items())))


class Work:
    """The queries and randomizers of one client. Their cost in entries of channels is counted before it is spent."""

    def __init__(self, evidence: frozenset[Evidence], schema: Records) -> None:
        self.evidence = evidence
        self.schema = schema
        self.done = 0
        self._end = 0
        self._queries = _Recent[Query]()
        self._randomizers = _Recent[Randomizer]()
        self._verified: dict[str, Randomizer] = {}

    def begin(self) -> None:
        self._end = min(self.done + FOR_ONE, FOR_LIFE)

    def query(self, name: str, params: Mapping[str, Parameter]) -> Query:
        """The query, which fits the names and types of the columns. Raises RefusedError, or InputError if it does not fit."""

        def make() -> Query:
            query = QUERIES.build(name, params)
            query.values(self.schema)
            return query

        return self._queries.of(_key(name, params), make)

    def build(self, name: str, params: Mapping[str, Parameter]) -> Randomizer:
        """The randomizer, not verified. Raises RefusedError, "too-much" among others."""

        def make() -> Randomizer:
            self._spend(_BUILD)
            return RANDOMIZERS.build(name, params)

        return self._randomizers.of(_key(name, params), make)

    def verify(self, randomizers: Iterable[Randomizer]) -> None:
        """Raises RefusedError unless each passes `local_dp.verification.audit`, or "too-much" before it is tried."""
        for each in randomizers:
            key = _key(each.name, each.params())
            before = self._verified.get(key)
            if before is each:
                continue
            if before is None and each.evidence in self.evidence:  # else the verdict costs nothing
                self._spend(entries(each) if is_built_in(each) else _AUDIT)
            verify(each, self.evidence)
            self._verified[key] = each

    def _spend(self, units: int) -> None:
        if self.done + units > self._end:
            raise RefusedError("too-much", f"{units} entries on top of {self.done}, where a request may take {FOR_ONE} and a life {FOR_LIFE}")
        self.done += units
