"""The connections of a poll: bounded in all and by source, so that a flood from one address does
not stop a class.

Sources are counted in memory, and written nowhere.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address

from local_dp.server.members import Allowance

SPARE = 256  # connections beside two for each person
SOURCES = 4096  # that are remembered
REQUESTS, AT_ONCE, EACH = (
    200.0,
    5000,
    50,
    # of one source: a second, at once, and at once for each person, since a class may share an
    # address
)
# places that one source takes: a second, and at once, if that is more than half of all
JOINS, FIRST = (
    0.5,
    64,
)


@dataclass
class _Connection:
    source: str
    close: Callable[[], object]
    member: str = ""


@dataclass
class _Source:
    requests: Allowance
    joins: Allowance


@dataclass
class Crowd:
    """The open connections, the oldest first. If there are too many, the source with the most loses
    its oldest one without a member."""

    people: int
    _open: OrderedDict[Hashable, _Connection] = field(default_factory=OrderedDict)
    _by_source: Counter[str] = field(default_factory=Counter)
    _sources: OrderedDict[str, _Source] = field(default_factory=OrderedDict)

    @property
    def most(self) -> int:
        """How many connections may be open."""
        return 2 * self.people + SPARE

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, key: Hashable, address: str, close: Callable[[], object]) -> None:
        """A new connection; another one is closed for it if there are too many."""
        source = source_of(address)
        self._open[key] = _Connection(source, close)
        self._by_source[source] += 1
        if len(self._open) > self.most:
            self._make_room()

    def _make_room(self) -> None:
        fullest = max(self._by_source.values())
        candidates = [
            (key, each)
            for key, each in self._open.items()
            if self._by_source[each.source] == fullest
        ]
        key, victim = next(
            ((key, each) for key, each in candidates if not each.member), candidates[0]
        )
        self.leave(key)
        victim.close()

    def leave(self, key: Hashable) -> None:
        """The connection is closed."""
        connection = self._open.pop(key, None)
        if connection is not None:
            self._by_source[connection.source] -= 1
            if not self._by_source[connection.source]:
                del self._by_source[connection.source]

    def belongs(self, key: Hashable, member: str) -> None:
        """The connection is a member's, and is kept before others. One member has two at most."""
        mine = [each for each in self._open.values() if each.member == member]
        if key in self._open and len(mine) < 2:
            self._open[key].member = member

    def may_ask(self, address: str, now: float) -> bool:
        """True if this source may make one more request."""
        return self._source(address).requests.take(now)

    def may_join(self, address: str, now: float) -> bool:
        """True if this source may take one more place."""
        return self._source(address).joins.take(now)

    def _source(self, address: str) -> _Source:
        source = source_of(address)
        if source not in self._sources:
            self._sources[source] = _Source(
                Allowance(REQUESTS, AT_ONCE + EACH * self.people),
                Allowance(JOINS, max(FIRST, self.people // 2)),
            )
            if len(self._sources) > SOURCES:
                self._sources.popitem(last=False)
        self._sources.move_to_end(source)
        return self._sources[source]


def source_of(address: str) -> str:
    """The address, or the network of 64 bits of one of IPv6, which is one household's."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is None:
        return ip.exploded[:19]
    return str(getattr(ip, "ipv4_mapped", None) or ip)
