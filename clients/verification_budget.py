"""What a client computes for whoever asks is bounded: randomizers are built and verified once, and only so many for one request and in a life.

What is of no client is made once for all that a process has, or forks: queries and randomizers of this library, which hold what was asked and nothing else.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

from local_dp.domains import Parameter
from local_dp.errors import RefusedError
from local_dp.queries.query import Query
from local_dp.queries.registry import QUERIES
from local_dp.randomizers.evidence import entries
from local_dp.randomizers.randomizer import Evidence, Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.with_coin import WithCoin
from local_dp.records import Records
from local_dp.verification.gate import is_built_in, verify

FOR_ONE = 1 << 28  # entries of channels in one request, each some 30 ns at the slowest
FOR_LIFE = 1 << 32
_BUILD = 1 << 20  # entries that building one counts as
_AUDIT = 1 << 26  # entries that auditing one of another package counts as
_KEPT = 16  # of what was made that are not made again

Made = TypeVar("Made")


class _Kept(Generic[Made]):
    """What was asked for last, by name and parameters."""

    def __init__(self) -> None:
        self._made = OrderedDict[str, Made]()

    def get(self, key: str) -> Made | None:
        """What is kept under it."""
        made = self._made.get(key)
        if made is not None:
            self._made.move_to_end(key)
        return made

    def put(self, key: str, made: Made) -> Made:
        """Keeps it, and forgets what nobody has asked for the longest."""
        self._made[key] = made
        if len(self._made) > _KEPT:
            self._made.popitem(last=False)
        return made


class _Verified(NamedTuple):
    randomizer: Randomizer
    entries: int


_FITTING = _Kept[Query]()  # by the types of the columns too, which they fit
_VERIFIED = _Kept[_Verified]()


def _key(name: str, params: Mapping[str, Parameter]) -> str:
    return repr((name, sorted(params.items())))


class Work:
    """The randomizers of one client, and what making sure of them has cost so far, in entries of channels, which are counted before they are computed."""

    def __init__(self, evidence: frozenset[Evidence]) -> None:
        self.evidence = evidence
        self.done = 0
        self._end = 0
        self._built = _Kept[Randomizer]()
        self._sure: set[str] = set()

    def begin(self) -> None:
        """Another request."""
        self._end = min(self.done + FOR_ONE, FOR_LIFE)

    def query(self, name: str, params: Mapping[str, Parameter], schema: Records) -> Query:
        """The query, which can be asked of columns of these names and types. Raises RefusedError, or InputError if it cannot."""
        key = f"{_key(name, params)} {schema.types}"
        if (known := _FITTING.get(key)) is not None:
            return known
        query = QUERIES.build(name, params)
        query.values(schema)
        return _FITTING.put(key, query) if name in QUERIES.built_in else query

    def build(self, name: str, params: Mapping[str, Parameter]) -> Randomizer:
        """The randomizer, not verified. Raises RefusedError, "too-much" among others."""
        key = _key(name, params)
        if (built := self._built.get(key)) is not None:
            return built
        self._spend(_BUILD)
        known = _VERIFIED.get(key)
        return self._built.put(key, RANDOMIZERS.build(name, params) if known is None else known.randomizer)

    def verify(self, randomizers: Iterable[Randomizer]) -> None:
        """Raises RefusedError unless each is what it says, as `local_dp.verification.gate` finds out, or "too-much" before it begins to."""
        for each in {id(each): each for each in randomizers}.values():
            key = _key(each.name, each.params())
            known = _VERIFIED.get(key)
            if known and (known.randomizer is not each or each.evidence not in self.evidence):
                known = None
            if key not in self._sure and each.evidence in self.evidence:  # else the verdict costs nothing
                self._spend(known.entries if known else entries(each) if is_built_in(each) else _AUDIT)
            if known is None:
                verify(each, self.evidence)
                if is_built_in(each) and not isinstance(each, WithCoin):  # the randomizer in that may be anybody's
                    _VERIFIED.put(key, _Verified(each, entries(each)))
            self._sure.add(key)

    def _spend(self, units: int) -> None:
        if self.done + units > self._end:
            raise RefusedError("too-much", f"{units} entries on top of {self.done}, where a request may take {FOR_ONE} and a life {FOR_LIFE}")
        self.done += units
