"""The shuffler, sans I/O: replies in, and when enough clients have replied, their reports in random order and without senders out."""

from dataclasses import dataclass, field

from local_dp.checks import check_whole
from local_dp.draws import Draws
from local_dp.errors import InputError, QuorumError, RefusedError
from local_dp.randomizers.base import Randomizer


@dataclass(frozen=True)
class Batch:
    """Reports of `width` bytes each, one after the other, in an order that says nothing."""

    width: int
    reports: bytes


@dataclass
class Shuffler:
    """Collects the reports of one batch, one a client, and passes them on together: no names, no indices, in a uniform order.

    `crowd` is the least number of clients in a batch: below it nothing is passed on, ever. What is promised: the server sees the multiset of the reports and
    how many they are, no more. What is NOT promised: that the shuffler does not look; it sees who sent what unless clients encrypt for the server, and it is
    trusted not to tell, to draw its order at random, and not to let one client's report through beside its own inventions. From the shuffler a client is
    protected by its local randomizer alone.
    """

    draws: Draws
    crowd: int
    width: int = 0
    conflicting: int = 0
    duplicate: int = 0
    _reports: dict[int, bytes] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        check_whole("the crowd", self.crowd, 2, 1 << 40)

    @property
    def clients(self) -> int:
        """How many have replied."""
        return len(self._reports)

    def take(self, start: int, batch: Batch) -> None:
        """Keeps the reports of consecutive clients from `start`; a client counts once, by its first. Raises RefusedError for another width."""
        width = self.width or batch.width
        if batch.width != width or width < 1 or len(batch.reports) % width:
            raise RefusedError("bad-report", f"reports of {batch.width} bytes do not fit a batch of {width} bytes each")
        self.width = width
        for place in range(len(batch.reports) // width):
            report = batch.reports[place * width : (place + 1) * width]
            if start + place not in self._reports:
                self._reports[start + place] = report
            elif self._reports[start + place] == report:
                self.duplicate += 1
            else:
                self.conflicting += 1

    def release(self) -> Batch:
        """All reports, which it forgets with whose they were. Raises QuorumError, and keeps everything to itself, while there is no crowd."""
        if self.clients < self.crowd:
            raise QuorumError(f"{self.clients} of the {self.crowd} clients that make a crowd have replied; nothing is passed on")
        reports = list(self._reports.values())
        released = Batch(self.width, b"".join(reports[place] for place in self.draws.order(len(reports)).tolist()))
        self._reports, self.width = {}, 0
        return released


def check_shufflable(randomizer: Randomizer) -> None:
    """Raises InputError for a randomizer whose reports mean something only beside their client's public coin."""
    if randomizer.uses_coins:
        raise InputError(f"{randomizer.name} uses a public coin for each client, and shuffled reports have no client; take grr, oue or binary-rr")
