"""How fast a run is asked: the round trip that was measured, the members that may owe replies at
once, and how long a round may take by default."""

import asyncio
import math

# members whose replies may be outstanding: what every broker survives in its default configuration
WINDOW = 750
MOST = 20_000  # the same, however long the round trip is
# replies a second that a server reads with ease: on a long way more are outstanding, and no more
# wait in the broker
RATE = 7_500
ASK_AGAIN, LATEST = 1.0, 5.0  # seconds without anything new, or two round trips
LEAST_DEADLINE = 30.0  # seconds
_WORK = 0.001  # seconds that a server works for one member in a round
_SLACK = 3  # times the seconds that all members should take
_TRIES = 6  # times that a member is asked within the deadline, as some messages are lost


def clock() -> float:
    """The time of the event loop, in seconds."""
    return asyncio.get_running_loop().time()


class Pace:
    """Follows from the round trip: the least time from a request to a reply in this run. A busy
    server does not lengthen it."""

    def __init__(self) -> None:
        self.trip = 0.0  # seconds; 0 before a reply came
        self._least = math.inf

    def heard(self, seconds: float) -> None:
        """A reply came so long after its first request."""
        self.trip = self._least = min(self._least, seconds)

    @property
    def window(self) -> int:
        """How many members may owe replies."""
        return max(WINDOW, min(MOST, math.ceil(RATE * self.trip)))

    @property
    def again(self) -> float:
        """Seconds without anything new until what is missing is asked for again."""
        return max(ASK_AGAIN, min(LATEST, 2 * self.trip))

    def deadline(self, members: int) -> float:
        """Seconds that a round of so many members may take, if nobody says otherwise."""
        tries = _TRIES * (self.again + self.trip)
        work = members * (_WORK + self.trip / self.window)
        return max(LEAST_DEADLINE, tries + _SLACK * work)
