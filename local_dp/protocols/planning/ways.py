"""How many clients an accuracy takes, or how accurate so many clients are: in closed form, for
every way to answer a protocol's question.

The accuracy is what the largest error of all stays within, except with probability BETA. Behind a
shuffler epsilon is what all reports together lose.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.best import Aim, Reports
from local_dp.bounds.curator import noisy_means_failure
from local_dp.bounds.frequencies import unfavourable_laws
from local_dp.bounds.quantiles import one_round_error, search_error, search_failure
from local_dp.bounds.response import response_gain
from local_dp.bounds.tails import Errors, widest_reach
from local_dp.errors import InputError, LocalDPError, RefusedError
from local_dp.interaction import Nonadaptive
from local_dp.loss import Pure, exp_epsilon, nano_epsilon
from local_dp.optimise import crossing, least_clients
from local_dp.oracles.local.asked import LocalQuery
from local_dp.populations.finite import Population
from local_dp.protocols.local_protocol import BETA, LocalProtocol
from local_dp.protocols.search.quantiles import Quantiles
from local_dp.randomizers.evidence import exact_ratio
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.shuffle.accountant import MAX_CLIENTS, check_clients, holds, largest_local
from local_dp.shuffle.histogram import Target, multi_message

Model: TypeAlias = Literal["local", "shuffled", "curator", "open"]
CURATOR, OPEN = "trusted curator", "no privacy"
_LEAST = 1e-6  # the finest accuracy that is looked for
_MAX_SHARES = 1024  # coordinates, for a plan that looks at them one by one


@dataclass(frozen=True)
class Way(ABC):
    """One way to answer: a randomizer's name or who answers, in which model, in how many bits a
    client; `chosen` says that a run would take it."""

    name: str
    model: Model
    bits: int | None
    chosen: bool

    @abstractmethod
    def clients(self, accuracy: float) -> int:
        """The least number of clients for which the accuracy is kept, in the units of the
        protocol's tolerance."""

    @abstractmethod
    def accuracy(self, clients: int) -> float:
        """What so many clients keep."""


@dataclass(frozen=True)
class Direct(Way):
    """Estimates that are means over reports: normal errors of size `reach` / sqrt n."""

    reach: float

    def clients(self, accuracy: float) -> int:
        return max(1, math.ceil((self.reach / accuracy) ** 2))

    def accuracy(self, clients: int) -> float:
        return self.reach / math.sqrt(clients)


@dataclass(frozen=True)
class Failing(Way):
    """A way of which it is known how probably it fails."""

    def clients(self, accuracy: float) -> int:
        return least_clients(lambda n: self.failure(n, accuracy) <= BETA)

    def accuracy(self, clients: int) -> float:
        return _crossing(lambda accuracy: self.failure(clients, accuracy) <= BETA)

    @abstractmethod
    def failure(self, n: int, accuracy: float) -> float:
        """The probability that the largest error is beyond the accuracy."""


@dataclass(frozen=True)
class Searched(Failing):
    """A search for quantiles among cells whose ends have the ranks `ends`: for each share, the
    standard error of one of its questions, times sqrt n."""

    ends: Floats
    errors: dict[float, float]

    def failure(self, n: int, accuracy: float) -> float:
        return 1 - math.prod(
            1 - self._miss(share, error / math.sqrt(n), accuracy)
            for share, error in self.errors.items()
        )

    def _miss(self, share: float, error: float, accuracy: float) -> float:
        """A cell that is found has no error where it holds the quantile: so the place may be as far
        off as the last cells that are near enough reach."""
        ends, slack = self.ends, 1e-12
        own = int(np.searchsorted(ends[:-1], share - slack, side="right"))
        last = int(np.searchsorted(ends[:-1], share + (accuracy + slack), side="right"))
        first = int(np.searchsorted(ends[1:], share - accuracy - slack))
        above = ends[last] - share if last < len(ends) - 1 else math.inf
        below = share - ends[first] if first else math.inf
        coarseness = (ends[own] - ends[own - 1]) / error
        return float(sum(search_failure(away / error, coarseness) for away in (above, below))) / 2


@dataclass(frozen=True)
class Curated(Failing):
    """Means over all records, released with Laplace noise of scale `noise` / n: for the least
    favourable of `variances`, those of one record."""

    variances: tuple[Floats, ...]
    noise: float

    def failure(self, n: int, accuracy: float) -> float:
        return max(
            noisy_means_failure(n, variance, self.noise, accuracy) for variance in self.variances
        )


@dataclass(frozen=True)
class Bounded(Way):
    """What the protocol's own bound says, for any population."""

    protocol: LocalProtocol[Any]
    epsilon: float

    def clients(self, accuracy: float) -> int:
        return with_tolerance(self.protocol, accuracy).clients(self.epsilon)

    def accuracy(self, clients: int) -> float:
        return _crossing(lambda accuracy: self.clients(accuracy) <= clients)


def _crossing(holds: Callable[[float], bool]) -> float:
    """The least accuracy that holds, by halving its logarithm; infinite where none below 1 does."""
    low = math.log(_LEAST)
    high = math.log(1 - 1e-9)
    if not holds(math.exp(high)):
        return math.inf
    return math.exp(crossing(low, high, lambda level: not holds(math.exp(level)), 28)[1])


def tolerance_of(protocol: LocalProtocol[Any]) -> float | None:
    """The parameter for which the protocol has its default number of clients; None where it has
    none, as a learner of a concept, right or wrong."""
    return vars(protocol).get("tolerance")


def with_tolerance(protocol: LocalProtocol[Any], accuracy: float) -> LocalProtocol[Any]:
    settings: dict[str, Any] = {"tolerance": accuracy}
    return replace(protocol, **settings)


def ways(
    protocol: LocalProtocol[Any], epsilon: float, population: Population | None = None
) -> list[Way]:
    """Every way to answer the protocol's question at this epsilon: the local ones, best first, then
    the trusted curator and no privacy at all.

    For clients drawn from `population`, or, where there is none, from whatever law is least
    favourable to each. Where the protocol's answer is no mean over clients (`LocalProtocol.aim`),
    only its own bound, which holds for any population. Raises InputError.
    """
    nano_epsilon(epsilon)
    if isinstance(protocol, Quantiles):
        return _of_quantiles(protocol, epsilon, population)
    aim = aim_of(protocol)
    if aim is None:
        return [Bounded(protocol.name, "local", None, True, protocol, epsilon)]
    query = asked_of(protocol, epsilon)
    law = None if population is None else law_of(population, query)
    local = []
    for reports in _reports(epsilon, aim, query):
        name, bits = reports.randomizer.name, reports.randomizer.bits
        own = name == query.randomizer.name
        local.append(Direct(name, "local", bits, own, reach_of(reports, law)))
    # by reach, to five digits; of equal ones the chosen one comes first
    local.sort(key=lambda way: (float(f"{way.reach:.5g}"), not way.chosen))
    return [
        *local,
        _by_curator(aim, law, epsilon),
        Direct(OPEN, "open", None, False, widest_reach(sampled(aim, law), BETA)),
    ]


def aim_of(protocol: LocalProtocol[Any]) -> Aim | None:
    """The mean over clients that several randomizers estimate; None if there is no answer, or
    has too many numbers to look at each."""
    aim = protocol.aim()
    return None if aim is None or aim.target.shape[1] > _MAX_SHARES else aim


def estimators(protocol: LocalProtocol[Any], epsilon: float) -> list[Reports]:
    """The randomizers that estimate what the protocol is about, the one that a run takes first.
    Raises InputError where its answer is no mean over clients."""
    aim = aim_of(protocol)
    if aim is None:
        raise InputError(
            f"{protocol.name}, with these parameters, is no mean over clients that several "
            f"randomizers estimate, or has more than {_MAX_SHARES} shares: there is nothing to "
            "compare"
        )
    return list(_reports(epsilon, aim, asked_of(protocol, epsilon)))


def law_of(population: Population, query: LocalQuery) -> Floats:
    law = population.law(query.query)
    return np.asarray(law / law.sum())


def plan_of(
    protocol: LocalProtocol[Any], epsilon: float, population: Population | None = None
) -> Way:
    """The way that a run of the protocol takes."""
    return next(way for way in ways(protocol, epsilon, population) if way.chosen)


def asked_of(protocol: LocalProtocol[Any], epsilon: float) -> LocalQuery:
    """The one question that is put to everybody, of a protocol that has an aim."""
    algorithm = protocol.algorithm(epsilon, 1)
    assert isinstance(algorithm, Nonadaptive)
    (query,) = algorithm.queries  # a mean over clients is asked for once
    return query


def _reports(epsilon: float, aim: Aim, query: LocalQuery) -> Iterator[Reports]:
    """The randomizers that estimate the aim without bias, the one that a run takes among them."""
    own = query.randomizer.name
    for name in dict.fromkeys((own, *RANDOMIZERS)):
        try:
            randomizer = query.randomizer if name == own else _build(name, epsilon, aim)
            reports = _reports_of(name, randomizer, aim)
        except LocalDPError:
            continue  # it takes other parameters, or not this epsilon
        if reports is not None:
            yield reports


def _reports_of(name: str, randomizer: Randomizer | None, aim: Aim) -> Reports | None:
    """The reports of a randomizer, if it estimates the aim and keeps its epsilon."""
    if not isinstance(randomizer, FiniteChannel) or randomizer.domain.kind != aim.kind:
        return None
    if not _keeps_epsilon(name, randomizer):
        return None
    if aim.kind == "levels":
        aim = Aim.mean(randomizer.domain.size - 1, aim.of)
    return Reports.of(randomizer, aim) if randomizer.domain.size == len(aim.target) else None


def _build(name: str, epsilon: float, aim: Aim) -> Randomizer | None:
    """The randomizer of this name for the aim's domain; None for one of other work."""
    kind = RANDOMIZERS[name]
    if kind.work != "one question":
        return None
    settings: dict[str, Any] = {"epsilon": epsilon}
    if aim.kind == "symbols" and "k" in kind.__dataclass_fields__:  # levels: on its own lattice
        settings["k"] = len(aim.target)
    return RANDOMIZERS.build(name, settings)


def _keeps_epsilon(name: str, randomizer: FiniteChannel) -> bool:
    """True if its loss is pure and, if it is of another package, what it states."""
    try:
        return isinstance(randomizer.loss, Pure) and (
            name in RANDOMIZERS.built_in or exact_ratio(randomizer) <= exp_epsilon(randomizer.nano)
        )
    except RefusedError:
        return False


def reach_of(reports: Reports, law: Floats | None) -> float:
    """What the largest error of all is within, times sqrt n, of clients of this law or of the least
    favourable."""
    return widest_reach(reports.unfavourable() if law is None else [reports.errors(law)], BETA)


def _of_quantiles(protocol: Quantiles, epsilon: float, population: Population | None) -> list[Way]:
    """Rank errors: of both local ways, of the exponential mechanism (whose rank error is Laplace of
    scale 2 Q / eps) and of the sample's own quantiles."""
    count = len(protocol.shares)
    local = [_search(protocol, epsilon, population)]
    reach = one_round_error(epsilon, protocol.excess, count, 1, BETA)
    if math.isfinite(reach):
        default = not protocol.searches(epsilon=epsilon)
        local.append(Direct("one round of prefix signs", "local", 1, default, reach))
    local.sort(key=lambda way: way.clients(protocol.tolerance))
    shares = np.sort(protocol.shares)
    # of a distribution function at its own quantiles
    covariance = np.minimum.outer(shares, shares) - np.outer(shares, shares)
    errors = Errors.of_covariance(covariance)
    return [
        *local,
        Curated(CURATOR, "curator", None, False, (errors.variance,), 2 * count / epsilon),
        Direct(OPEN, "open", None, False, errors.reach(BETA)),
    ]


def _search(protocol: Quantiles, epsilon: float, population: Population | None) -> Way:
    """The search; of any population, as on the finest grid and at the median, where everything is
    hardest."""
    name, default = "a search over several rounds", protocol.searches(epsilon=epsilon)
    times = protocol.times(epsilon) if default else 1.0
    if population is None:
        reach = times * search_error(epsilon, len(protocol.shares), 1, BETA)
        return Direct(name, "local", 1, default, reach)
    gain = times * response_gain(epsilon)
    ends, present = protocol.ranks(population)
    errors = {
        share: math.sqrt((gain**2 / 4 - (share - 0.5) ** 2) * len(protocol.shares)) / present
        for share in protocol.shares
    }
    return Searched(name, "local", 1, default, ends, errors)


def sample_laws(aim: Aim, law: Floats | None) -> list[Floats]:
    """The law of a record's value; where it is not known, those among which is the one that is
    least favourable to a sample."""
    if law is not None:
        return [law]
    if aim.target.shape[1] > 1:
        return unfavourable_laws(len(aim.target))
    ends = [int(np.argmin(aim.target)), int(np.argmax(aim.target))]
    return [np.bincount(ends, [0.5, 0.5], len(aim.target)).astype(np.float64)]


def sampled(aim: Aim, law: Floats | None) -> list[Errors]:
    """The errors of one record's own value; of the mean of these records there are none."""
    if aim.of == "records":
        return [Errors.of_covariance(np.zeros((1, 1)))]
    return [Errors.of_reports(aim.target[law > 0], law[law > 0]) for law in sample_laws(aim, law)]


def _by_curator(aim: Aim, law: Floats | None, epsilon: float) -> Curated:
    """Discrete Laplace noise on the counts, of ratio e^(-eps / s): one record replaced moves them
    by s in all, 2 for shares and 1 for a number."""
    coordinates = aim.target.shape[1]
    change = 2.0 if coordinates > 1 else float(np.ptp(aim.target))
    variances = tuple(
        np.pad(each.variance, (0, coordinates - len(each.variance))) for each in sampled(aim, law)
    )
    return Curated(CURATOR, "curator", None, False, variances, change / epsilon)


def check_accuracy(accuracy: float) -> None:
    if not _LEAST <= accuracy < 1:
        raise InputError(
            f"the accuracy is {accuracy}; give a number from {_LEAST:g} to below 1, in units of "
            "the tolerance, a share for a share"
        )


# by the domain's kind, the first that applies
ONE_REPORT = {
    "symbols": ("binary-rr", "grr"),
    "levels": ("one-bit-mean",),
}
MOST_LOCAL = 20.0  # nats
_CLOSE = 1e-3  # of a local epsilon
MOST = 10**6  # clients that blanket messages are planned for


@dataclass(frozen=True)
class Together:
    """What all reports together may lose: epsilon in nats, and delta."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class OneReport(Way):
    """One report from each client, at the largest local epsilon at which so many shuffled ones keep
    to the target."""

    together: Together
    make: Callable[[float], FiniteChannel]
    reach: Callable[[float], float]  # of a local epsilon: the largest error is within this / sqrt n

    def clients(self, accuracy: float) -> int:
        """A larger local epsilon takes fewer clients for the accuracy, and more for the privacy:
        the largest at which the former are enough for both."""
        low, high = self.together.epsilon, MOST_LOCAL
        while high - low > _CLOSE * low:
            middle = math.sqrt(low * high)
            if self._keeps(middle, self._enough(middle, accuracy)):
                low = middle
            else:
                high = middle
        return self._enough(low, accuracy)

    def accuracy(self, clients: int) -> float:
        return self.reach(self.local(clients)) / math.sqrt(clients)

    def local(self, clients: int) -> float:
        """What each report of so many clients may lose, in nats."""
        if clients < 2:
            return self.together.epsilon
        return largest_local(
            self.make, min(clients, MAX_CLIENTS), self.together.epsilon, self.together.delta
        )

    def _enough(self, local: float, accuracy: float) -> int:
        return max(2, math.ceil((self.reach(local) / accuracy) ** 2))

    def _keeps(self, local: float, clients: int) -> bool:
        return holds(
            self.make(local), min(clients, MAX_CLIENTS), self.together.epsilon, self.together.delta
        )


@dataclass(frozen=True)
class Blankets(Way):
    """Each client's symbol as it is, among blanket messages: sampling errors and, of each share,
    one that falls as 1 / n."""

    together: Together
    laws: tuple[Floats, ...]
    sampling: float  # the reach without blanket messages

    def clients(self, accuracy: float) -> int:
        return least_clients(
            lambda n: self.accuracy(n) <= accuracy,
            max(2, math.ceil((self.sampling / accuracy) ** 2)),
        )

    def accuracy(self, clients: int) -> float:
        try:
            target = Target(min(clients, MOST), self.together.epsilon, self.together.delta)
            # of one record
            noise = (
                multi_message(len(self.laws[0]), target).variance(target.clients)
                * target.clients**2
                / clients
            )
        except InputError:  # they are too few
            return math.inf
        return widest_reach(
            [Errors.of_covariance(np.diag(law + noise) - np.outer(law, law)) for law in self.laws],
            BETA,
        ) / math.sqrt(clients)


def shuffled_ways(
    protocol: LocalProtocol[Any], together: Together, population: Population | None = None
) -> list[Way]:
    """The ways behind a shuffler: one report each, and of shares blanket messages. Raises
    InputError for no mean, or no report that is shuffled."""
    check_clients(2, together.delta)
    by_name = {
        reports.randomizer.name: reports for reports in estimators(protocol, together.epsilon)
    }
    aim = protocol.aim()
    assert aim is not None  # there are estimators
    law = None if population is None else law_of(population, asked_of(protocol, together.epsilon))
    first = next((name for name in ONE_REPORT.get(aim.kind, ()) if name in by_name), None)
    shuffled: list[Way] = [] if first is None else [_one_report(together, by_name[first], law)]
    if aim.target.shape[1] > 1:
        laws = tuple(sample_laws(aim, law))
        reach = widest_reach(sampled(aim, law), BETA)
        shuffled.append(
            Blankets("blanket messages", "shuffled", None, False, together, laws, reach)
        )
    if not shuffled:
        raise InputError(
            f"{protocol.name} has no randomizer without public coins that is planned for behind a "
            "shuffler"
        )
    return shuffled


def _one_report(together: Together, reports: Reports, law: Floats | None) -> OneReport:
    def make(local: float) -> FiniteChannel:
        return replace(reports.randomizer, epsilon=local, word_bits=0)

    def reach(local: float) -> float:
        shuffled = Reports.of(make(local), reports.aim)
        assert shuffled is not None
        return reach_of(shuffled, law)

    return OneReport(
        f"one report, {reports.randomizer.name}",
        "shuffled",
        reports.randomizer.bits,
        False,
        together,
        make,
        reach,
    )
