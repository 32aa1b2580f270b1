"""The end of a run: the accepted reports beside the members' own accounts of charged ones."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter

from local_dp.wire import Account, Line


@dataclass
class Sum:
    """How many of a member's reports to one round were accepted, and the checksum of the replies they came in."""

    reports: int = 0
    checksum: int = 0


@dataclass(frozen=True)
class Balance:
    """One round over the members that gave their account: reports accepted and charged, the joint checksum of those accepted, whether all of it agrees."""

    round: int
    accepted: int
    charged: int
    checksum: int
    agree: bool
    accepted_not_charged: int
    charged_not_accepted: int


@dataclass(frozen=True)
class Reconciliation:
    """The balance of each round. A member without an account is silent: its accepted reports are not reconciled."""

    members: int
    silent: int
    rounds: tuple[Balance, ...]

    @property
    def accepted_not_charged(self) -> int:
        """Counted reports that their member did not charge, or did not send in this form: 0 if nobody lies."""
        return sum(map(attrgetter("accepted_not_charged"), self.rounds))

    @property
    def charged_not_accepted(self) -> int:
        """Charged reports that were not counted: lost or late ones."""
        return sum(map(attrgetter("charged_not_accepted"), self.rounds))


def reconcile(accepted: Mapping[int, Mapping[str, Sum]], accounts: Mapping[str, Account], members: Iterable[str]) -> Reconciliation:
    """The accepted reports of each round by member, beside the members' own accounts."""
    names = {*members, *(name for sums in accepted.values() for name in sums)}
    charged: dict[int, dict[str, Line]] = {}
    for name, account in accounts.items():
        for line in account.rounds:
            charged.setdefault(line[0], {})[name] = line
    rounds = sorted({*accepted, *charged})
    balances = (_balance(number, accepted.get(number, {}), charged.get(number, {}), accounts.keys()) for number in rounds)
    return Reconciliation(len(names), len(names - accounts.keys()), tuple(balances))


def _balance(number: int, accepted: Mapping[str, Sum], charged: Mapping[str, Line], names: Iterable[str]) -> Balance:
    reports, paid, joint, too_many, too_few = 0, 0, 0, 0, 0
    for name in names:
        took, (_, reported, checksum) = accepted.get(name, Sum()), charged.get(name, (number, 0, 0))
        reports, paid, joint = reports + took.reports, paid + reported, joint ^ took.checksum
        too_few += max(0, reported - took.reports)
        if took.reports == reported and took.checksum != checksum:
            too_many += took.reports
        else:
            too_many += max(0, took.reports - reported)
    return Balance(number, reports, paid, joint, too_few == too_many == 0, too_many, too_few)
