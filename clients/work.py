"""What a client computes for whoever asks is bounded: randomizers are built and verified once, and only so many for one request and in a life."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping

from local_dp.domains import Parameter
from local_dp.errors import RefusedError
from local_dp.randomizers.base import Evidence, Randomizer
from local_dp.randomizers.evidence import entries
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.testing.gate import is_built_in, verify

FOR_ONE = 1 << 28  # entries of channels in one request, each some 30 ns at the slowest
FOR_LIFE = 1 << 32
_BUILD = 1 << 20  # entries that building one counts as
_AUDIT = 1 << 26  # entries that auditing one of another package counts as
_KEPT = 16  # randomizers that are not built again


class Work:
    """The randomizers of one client, and what making sure of them has cost so far, in entries of channels, which are counted before they are computed."""

    def __init__(self, evidence: frozenset[Evidence]) -> None:
        self.evidence = evidence
        self.done = 0
        self._end = 0
        self._built: OrderedDict[str, Randomizer] = OrderedDict()
        self._sure: set[str] = set()

    def begin(self) -> None:
        """Another request."""
        self._end = min(self.done + FOR_ONE, FOR_LIFE)

    def build(self, name: str, params: Mapping[str, Parameter]) -> Randomizer:
        """The randomizer, not verified. Raises RefusedError, "too-much" among others."""
        key = repr((name, sorted(params.items())))
        if key not in self._built:
            self._spend(_BUILD)
            self._built[key] = RANDOMIZERS.build(name, params)
        self._built.move_to_end(key)
        if len(self._built) > _KEPT:
            self._built.popitem(last=False)
        return self._built[key]

    def verify(self, randomizers: Iterable[Randomizer]) -> None:
        """Raises RefusedError unless each is what it says, as `local_dp.testing.gate` finds out, or "too-much" before it begins to."""
        for each in {id(each): each for each in randomizers}.values():
            key = repr((each.name, sorted(each.params().items())))
            if key not in self._sure and each.evidence in self.evidence:  # else the verdict costs nothing
                self._spend(entries(each) if is_built_in(each) else _AUDIT)
            verify(each, self.evidence)
            self._sure.add(key)

    def _spend(self, units: int) -> None:
        if self.done + units > self._end:
            raise RefusedError("too-much", f"{units} entries on top of {self.done}, where a request may take {FOR_ONE} and a life {FOR_LIFE}")
        self.done += units
