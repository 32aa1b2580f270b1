"""Whether a round lost more reports than chance explains: the rule that marks a result as degraded.
Sans I/O."""

from collections.abc import Mapping
from dataclasses import dataclass

from local_dp.bounds.tails import mean_tail
from local_dp.wire import Account, per_message

LOSS = 0.05  # an honest network loses a message with this probability at most, whatever is in it
# an honest member leaves the run or is too slow, with this probability at most: half the share that
# the default quorum allows
LEAVES = 0.05
# an honest run is marked with this probability at most: all its rounds and all tests of each
ALPHA = 1e-6
TESTS = 3  # of a round: two of the members that stayed, one of the others
GOODBYES = 3  # that every member is sent at least, 0.4 seconds apart
NAMED = 3  # members in a message


@dataclass(frozen=True)
class Unanswered:
    """The end of a round: `owing` of its `members` had not answered all, and each of them had been
    asked at least `asks` times."""

    members: int = 0
    asks: int = 0
    owing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Loss:
    """Members whose reports to a round are missing, and the probability of so many on the honest
    model, at most.

    `present`: they gave their account at the end, and `charges` of them had charged the round. The
    others gave none, or answered late.
    """

    round: int
    names: tuple[str, ...]
    members: int
    asks: int
    present: bool
    charges: int
    chance: float

    def __str__(self) -> str:
        names = ", ".join(self.names[:NAMED]) + (", ..." if len(self.names) > NAMED else "")
        how = (
            f"{self.charges} of them had charged their reports"
            if self.present
            else "they gave no account, or answered late"
        )
        members = f"{len(self.names)} of {self.members} members are missing ({names})"
        return (
            f"round {self.round}: after {self.asks} requests {members}, and {how}; chance explains "
            f"this with probability {self.chance:.1g} at most"
        )


def losses_of(
    number: int,
    end: Unanswered,
    late: frozenset[str],
    accounts: Mapping[str, Account],
    replies: int,
) -> list[Loss]:
    """All tests of a round whose members send at most `replies` messages of reports.

    A member that stayed to the end is missing only if the network lost each of `asks` requests or a
    reply to it: q^asks for one message, q = 1 - (1 - LOSS)^2, and Markov's inequality for x
    members, since a request is lost for many at once. Those that had charged the round had got a
    request: the replies to one are lost independently, and Hoeffding's bound holds too. The others
    may have left on their own; or where nobody gave an account, the network lost all requests and
    goodbyes.
    """
    if not end.owing:
        return []
    present = tuple(name for name in end.owing if name in accounts and name not in late)
    away = tuple(name for name in end.owing if name not in accounts or name in late)
    charges = sum(any(line[0] == number for line in accounts[name].rounds) for name in present)
    again, each = 1 - (1 - LOSS) ** 2, min(1.0, LOSS * replies / end.members)
    losses = []
    if present:
        chance = min(
            1.0,
            replies * again**end.asks / len(present),
            float(mean_tail(charges / end.members, end.members, each)),
        )
        losses.append(Loss(number, present, end.members, end.asks, True, charges, chance))
    if away:
        by_network = 0.0 if accounts else LOSS ** (end.asks + GOODBYES)
        by_leaving = float(mean_tail(len(away) / end.members, end.members, LEAVES))
        chance = min(1.0, by_leaving + by_network)
        losses.append(Loss(number, away, end.members, end.asks, False, 0, chance))
    return losses


def replies_of(clients: int, width: int, members: int) -> int:
    """The most messages in which so many members send one report of each client."""
    return members + clients // per_message(width)
