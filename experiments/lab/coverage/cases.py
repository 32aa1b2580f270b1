"""Which stated intervals are measured: of every protocol that states one, some with few clients and with many, and of the searches for least counts."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, get_args, get_type_hints

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.tails import normal_quantile, normal_tail
from local_dp.errors import InputError, RefusedError
from local_dp.experiments.lab.catalogue import ALL, chosen, load
from local_dp.experiments.lab.claim import Experiment, Scale
from local_dp.experiments.lab.coverage.listed import LISTED
from local_dp.experiments.lab.coverage.repetition import AT_LEAST, BAND, COUNTED, Case, binomial_coverage, exact_range, holds_from
from local_dp.experiments.lab.coverage.runs import FEW, Crowd, Drawn, Estimator, Placed, Played, Setting, Simulated, of_settings, report_law
from local_dp.experiments.lab.coverage.stated import Stated
from local_dp.experiments.lab.minimal_clients import minimal_clients
from local_dp.experiments.lab.store import plain
from local_dp.learners.tabular import unit_of
from local_dp.populations.finite import Finite, Population
from local_dp.protocols.learning.learn import Learn, Lesson
from local_dp.protocols.local_protocol import PROTOCOLS, LocalProtocol
from local_dp.protocols.search.quantiles import Located, Quantiles
from local_dp.protocols.surveys.frequency import Crosstab, Frequency, Histogram, frequency_randomizer
from local_dp.protocols.surveys.longitudinal import Longitudinal
from local_dp.protocols.surveys.survey import StatisticalQueries, Survey
from local_dp.protocols.vectors.mean_found import FoundMean, MeanFound, finding_clients
from local_dp.protocols.vectors.mean_vector import Mean
from local_dp.protocols.vectors.workload import PrefixSums
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.numbers.noise import DiscreteLaplace
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.randomizers.table import MEASURED
from local_dp.records import Records
from local_dp.tallies import Estimate, Tally

DECISIONS, SLOPES = (1, 5, 20, 65), (3.0, 10.0)  # success curves from flat to steep: masked parity at d = 64 takes 65 decisions
SEARCHES: dict[Scale, tuple[int, ...]] = {"quick": (300, 3000), "full": (1000, 12_000)}  # runs of a search, about the fewest and the most that there are
TARGET = 0.9
SCALE, COUNT = 500.0, 12_345.0  # of the curves: where they lie does not matter


@dataclass(frozen=True)
class SuccessCurve:
    """A success probability that grows with n from flat (few decisions) to steep, and `truth`, where it reaches 90 %."""

    what: str
    truth: float
    chance: Callable[[int], float]

    def drawn(self, generator: np.random.Generator) -> Callable[[int, int], int]:
        """For `minimal_clients`: successes among fresh runs."""
        return lambda n, runs: int(generator.binomial(runs, self.chance(n)))


def all_right(decisions: int) -> SuccessCurve:
    """Success when so many threshold decisions are all right, each with probability Phi(sqrt(n / 500))."""
    truth = SCALE * normal_quantile(1 - TARGET ** (1 / decisions)) ** 2
    return SuccessCurve(f"{decisions} decision{'s' if decisions > 1 else ''}", truth, lambda n: (1 - normal_tail(math.sqrt(n / SCALE))) ** decisions)


def steep(slope: float) -> SuccessCurve:
    """A probit curve that rises through 90 % at 12,345: with slope 30 from .5 to .99 within 8 % of the clients."""
    start = normal_quantile(1 - TARGET)
    return SuccessCurve(f"slope {slope:g}", COUNT, lambda n: 1 - normal_tail(start + slope * 2 * (math.sqrt(n / COUNT) - 1)))


def least_count_cases(scale: Scale) -> list[Stated]:
    """Searches for a least number of clients, on curves from flat to steep, with the fewest and the most runs at this scale."""
    curves = [*map(all_right, DECISIONS), *map(steep, SLOPES)]
    return [Stated("least-counts", curve.what, trials, curve.truth, _search(curve, trials), dear=2) for curve in curves for trials in SEARCHES[scale]]


def _search(curve: SuccessCurve, trials: int) -> Callable[[np.random.Generator], tuple[float, float]]:
    def make(generator: np.random.Generator) -> tuple[float, float]:
        found = minimal_clients(curve.drawn(generator), round(0.7 * curve.truth), target=TARGET, trials=trials)
        return found.low, found.high

    return make


POINTS = 2000
UNIFORM: Floats = (np.arange(POINTS) + 0.5) / POINTS
BELL: Floats = np.array([-normal_quantile(share) for share in UNIFORM])
CAUCHY: Floats = np.tan(np.pi * (UNIFORM - 0.5))


def weighted(*parts: tuple[Any, float]) -> Floats:
    """A column of POINTS numbers: each part, a number or a column, on its share of them."""
    return np.concatenate([np.resize(np.asarray(values, dtype=np.float64), round(share * POINTS)) for values, share in parts])


SHAPES: dict[str, Floats] = {
    "yes and no, 12 % yes": weighted((0, 0.8765), (1, 0.1235)),
    "yes and no, 1 % yes": weighted((0, 0.99), (1, 0.01)),
    "yes and no, 97 % yes": weighted((0, 0.03), (1, 0.97)),
    "yes and no, half missing": weighted((0, 0.4), (1, 0.1), (np.nan, 0.5)),
    "answers 1 to 5": weighted((1, 0.1), (2, 0.2), (3, 0.3), (4, 0.25), (5, 0.15)),
    "counts with many zeros": weighted((0, 0.75), (1, 0.06), (2, 0.03), (3, 0.03), (7, 0.07), (12, 0.06)),
    "geometric counts": np.asarray(np.floor(np.log(UNIFORM) / math.log(0.7)), dtype=np.float64),
    "0 for all": np.zeros(POINTS),
    "5 for all": np.full(POINTS, 5.0),
    "-1,000 for all": np.full(POINTS, -1000.0),
    "years": np.resize(np.arange(1970.0, 1983.0), POINTS),
    "bell": BELL,
    "bell far from 0": 1000 + 20 * BELL,
    "tiny bell": 0.001 + 0.0004 * BELL,
    "Cauchy": CAUCHY,
    "lognormal, sigma 1.5": np.exp(1.5 * BELL),
    "incomes": np.exp(10 + BELL),
    "Pareto, index 1.5": UNIFORM ** (-1 / 1.5),
    "two far modes": weighted((1, 0.9), (1e6, 0.1)),
    "exponential, 80 % zeros": weighted((0, 0.8), (-50 * np.log(UNIFORM[::5]), 0.2)),
}


def found_means(epsilon: float, columns: dict[str, Floats] | None = None) -> Iterator[Case]:
    """Two coordinates: the mean of the values clipped to the bounds found, less its truth, and the share outside, less its own."""
    protocol = MeanFound()
    n = protocol.clients(epsilon)
    for name, column in (SHAPES if columns is None else columns).items():
        population = Finite(Records({protocol.column: column}), [1.0] * len(column), n, 0)
        draw = Played(protocol, population, epsilon, partial(_away, protocol, population))
        yield Case("mean-found", name, epsilon, n, np.zeros(2), draw, binomial=False, band=AT_LEAST, default=True, dear=100)


def _away(protocol: MeanFound, population: Population, found: FoundMean) -> tuple[Estimate, ...]:
    truths = protocol.truth_of(found, population), protocol.beyond(found.bounds).truth(population)
    return tuple(each.on_scale(-truth, 1 - truth) for each, truth in zip((found.estimate, found.outside), truths, strict=True))


def learned(epsilon: float) -> Iterator[Case]:
    """The stated score, less the true one, where no bounds are given: of a rule for yes and no, and of a line through a label with many zeros."""
    shapes = [SHAPES[name] for name in ("counts with many zeros", "years", "yes and no, 12 % yes")]
    label, *features = (np.random.default_rng(place).permutation(column) for place, column in enumerate(shapes))
    records = Records({"label": label, "x": features[0] + label, "z": features[1]})
    n = max(LEARNERS, 8 * finding_clients(epsilon))  # at a small epsilon twice those who find the bounds of two columns
    for learner, text in (("logistic-regression", "label > 0"), ("linear-regression", "label")):
        protocol = Learn(learner=learner, label=text, features=("x", "z"))
        population = Finite(records, [1.0] * POINTS, n, 0)
        draw = Played(protocol, population, epsilon, partial(_score_away, protocol, population))
        yield Case("learn", f"{learner}, no bounds", epsilon, n, np.zeros(1), draw, binomial=False, band=AT_LEAST, dear=200)


LEARNERS = 300_000


def _score_away(protocol: Learn, population: Population, lesson: Lesson) -> tuple[Estimate, ...]:
    score, unit = lesson.score, unit_of(lesson.hypothesis, lesson.encoding)
    value, low, high = ((end - protocol.true_score(lesson, population)) * unit for end in (score.value, score.low, score.high))
    return (Placed(np.array([value]), np.array([score.standard_error * unit]), score.n, None, (np.array([low]), np.array([high]))),)


PRESENT = 0.7  # the share of those who have a value
NUMBERS = np.array([0.0, 1.0, np.nan])


def _present() -> Iterator[Setting]:
    """Quotients of two estimates, where three of ten have nothing to tell."""
    for share in (0.1, 0.5):
        law, told = [PRESENT * (1 - share), PRESENT * share, 1 - PRESENT], f"share {share:g} among those present"
        numbers = partial(Setting, few=(), binomial=False, what=told, shares=law)
        yield numbers("survey", protocol=Survey(question="value > 0", missing="exclude"), kinds=Records({"value": NUMBERS}))
        yield numbers("mean", protocol=Mean(missing="exclude"), kinds=Records({"value": NUMBERS}))
    letters = Records({"letter": np.array(["a", "b", "c", "d", ""])})
    frequency = Frequency(column="letter", labels=("a", "b", "c", "d"), missing="exclude")
    yield Setting("frequency", "four labels among those present", frequency, letters, [0.35, 0.2, 0.1, 0.05, 0.3], few=(), binomial=False)


def _histogram() -> Iterator[Setting]:
    for missing in ("category", "exclude"):
        kinds = Records({"value": np.append(np.arange(-1, 11) / 10 + 0.05, np.nan)})
        law = [0.02, 0.05, 0.1, 0.2, 0.2, 0.15, 0.08, 0.05, 0.03, 0.02, 0.01, 0.01, 0.08]
        yield Setting("histogram", f"a bell, missing {missing}", Histogram(missing=missing), kinds, law, few=(), binomial=False)


def _crosstab() -> Iterator[Setting]:
    kinds = Records({"first": np.repeat(["a", "b"], 3), "second": np.tile(["x", "y", ""], 2)})
    for missing in ("category", "exclude"):
        protocol = Crosstab(columns=("first", "second"), labels=("a|b", "x|y"), missing=missing)
        law = [0.3, 0.1, 0.1, 0.05, 0.35, 0.1]
        yield Setting("crosstab", f"two by two, missing {missing}", protocol, kinds, law, few=(), binomial=False, dear=2)


def _quantiles(epsilon: float) -> Iterator[Case]:
    """Three quantiles of a bell on a grid: the intervals hold every place that no test excludes, and assume no law, so they are wider than they need be."""
    for rounds, dear in (("one", 5), ("several", 50)):
        protocol = Quantiles(low=0.0, high=1.0, bins=126, at=("0.25", "0.5", "0.75"), rounds=rounds)
        population = protocol.synthetic(protocol.clients(epsilon), 0)
        truth = np.searchsorted(protocol.grid.edges, protocol.truth(population), side="right").astype(np.float64)
        draw = Played(protocol, population, epsilon, _placed)
        yield Case("quantiles", f"a bell, rounds {rounds}", epsilon, population.size, truth, draw, binomial=False, band=AT_LEAST, default=True, dear=dear)


def _placed(found: Located) -> tuple[Placed]:
    place, low, high = np.array(found.places, dtype=np.float64).T
    return (Placed(place, np.full(len(place), np.nan), found.n, None, (low, high)),)


def of_itself(kind: type[LocalProtocol[Any]], epsilon: float, **parameters: Any) -> Iterator[Case]:
    """A protocol of several rounds, or without cases of its own, with these parameters: its default clients and population."""
    protocol = kind(**parameters)
    population = protocol.synthetic(protocol.clients(epsilon), 0)
    stated = protocol.truth(population)
    truth = np.zeros(1) if stated is None else np.atleast_1d(np.asarray(stated, dtype=np.float64))
    what = ", ".join(["its synthetic population", *(f"{name}={value}" for name, value in parameters.items())])
    case = partial(Case, kind.name, what, epsilon, population.size, truth, binomial=False, default=True)

    def estimates(result: Any) -> tuple[Estimate, ...]:
        estimate: Estimate = getattr(result, "estimate", result)
        if stated is not None:
            return tuple(getattr(result, "estimates", (estimate,)))
        if (truth := protocol.truth_of(result, population)) is None:  # else the run decides the question: the distance from its truth
            raise InputError(f"{kind.name} states no truth; give it `truth`, of one number `truth_of`, or a reason in `uncovered`")
        return (estimate.on_scale(-truth, 1 - truth),)

    drawn = Played(protocol, population, epsilon, estimates)
    try:
        next(iter(drawn(np.random.default_rng(0), 1)))
    except RefusedError:  # a tally has no closed law: every client is simulated, each time with a record of its own drawn afresh
        size = population.size
        yield case(draw=Simulated(protocol.algorithm(epsilon, size), partial(protocol.synthetic, size), epsilon, estimates), dear=100)
    else:
        yield case(draw=drawn, dear=10)


def _waves(epsilon: float) -> Iterator[Case]:
    for method in ("split", "tracked"):
        yield from (replace(each, dear=2) for each in of_itself(Longitudinal, epsilon, times=8, changes=1, method=method))


SHARES = (0.01, 0.5, 0.99)
GROUPS = ("a", "b", "c")
SCALES: tuple[Scale, Scale] = ("quick", "full")
SHARES_SEEN = 4001  # over which the coverage is averaged
MANY = 1000  # where a randomizer belongs to no protocol that would know how many
RATES = np.linspace(0.8, 0.99, 191)  # success rates, as experiments look for them


def measurable(kind: type[LocalProtocol[Any]]) -> bool:
    """Whether the result of a protocol is an estimate or has some, by its type, and no reason is given to leave its intervals out."""
    result = get_args(get_type_hints(kind.algorithm)["return"])[-1]
    has = {"estimate", "estimates"} & set(getattr(result, "__dataclass_fields__", ()))
    return not kind.uncovered and isinstance(result, type) and (issubclass(result, Estimate) or bool(has))


def uncovered(name: str) -> str:
    """Why the intervals of `name` are not measured."""
    reason = PROTOCOLS[name].uncovered if name in PROTOCOLS else ""
    return f"{name} is left out: {reason}" if reason else "others state no interval, or only success rates"


def _survey() -> Iterator[Setting]:
    for share in SHARES:
        yield Setting("survey", f"share {share:g}", Survey(), Records({"yes": np.array([0, 1], dtype=np.uint8)}), [1 - share, share])

    yield by_group("survey", Survey(by="group", labels=GROUPS), "yes")


def by_group(name: str, protocol: Estimator, column: str) -> Setting:
    """A quotient of two estimates: the share of ones in each of three groups, .1, .5 and .9."""
    kinds = Records({"group": np.repeat(GROUPS, 2), column: np.tile(np.array([0, 1], dtype=np.uint8), len(GROUPS))})
    law = [0.36, 0.04, 0.175, 0.175, 0.025, 0.225]
    return Setting(name, "by group, shares 0.1, 0.5, 0.9", protocol, kinds, law, few=(), binomial=False)


def _mean() -> Iterator[Setting]:
    for share in SHARES:
        yield Setting("mean", f"mean {share:g}, of 0 and 1", Mean(), Records({"value": np.array([0.0, 1.0])}), [1 - share, share])
    yield by_group("mean", Mean(by="group", labels=GROUPS), "value")
    yield Setting("mean", "mean 0.3, of 0.1 to 0.5", Mean(), Records({"value": np.arange(1, 6) / 10}), [0.1, 0.2, 0.4, 0.2, 0.1])


def _frequency() -> Iterator[Setting]:
    for k in (8, 64):
        kinds = Records({"symbol": np.arange(k)})
        yield Setting("frequency", f"k = {k}, shares as 1/rank", Frequency(k=k), kinds, [1 / rank for rank in range(1, k + 1)])
        yield Setting("frequency", f"k = {k}, one label 0.99", Frequency(k=k), kinds, _heavy(k))


def _queries() -> Iterator[Setting]:
    t = len(SHARES)
    kinds = list(product((0, 1), repeat=t))
    law = [float(np.prod([p if bit else 1 - p for p, bit in zip(SHARES, kind, strict=True)])) for kind in kinds]
    columns = Records({f"q{place}": np.array([kind[place] for kind in kinds], dtype=np.uint8) for place in range(t)})
    yield Setting("sq", f"shares {', '.join(f'{p:g}' for p in SHARES)}", StatisticalQueries(t=t), columns, law, tuple(t * n for n in FEW))


def _prefix_sums() -> Iterator[Setting]:
    for k in (16, 256):
        place = np.arange(k)
        bell = np.exp(-(((place / k - 0.4) / 0.15) ** 2) / 2).tolist()
        yield Setting("prefix-sums", f"k = {k}, bell", PrefixSums(k=k), Records({"value": place}), bell, FEW if k == 16 else (), binomial=False)
    yield Setting("prefix-sums", "k = 16, one value 0.99", PrefixSums(k=16), Records({"value": np.arange(16)}), _heavy(16), binomial=False)


def _heavy(k: int) -> list[float]:
    return [0.99] + [0.01 / (k - 1)] * (k - 1)


def _discrete_laplace(epsilon: float) -> Iterator[Case]:
    """The one randomizer of a number that no protocol above uses."""
    randomizer, ends = DiscreteLaplace(epsilon), [0, -1]
    for share in SHARES:
        law = np.zeros(randomizer.domain.size)
        law[ends] = 1 - share, share
        for n in (*FEW, MANY):
            draw = Drawn([Crowd(randomizer, [(n, report_law(randomizer, law))])], lambda tallies: randomizer.estimate(tallies[0]))
            band = AT_LEAST if n < MEASURED else BAND
            yield Case("discrete-laplace", f"mean {share:g}, of 0 and 1", epsilon, n, np.array([share]), draw, binomial=False, band=band, default=n == MANY)


def _table(epsilon: float) -> Iterator[Case]:
    """The share of a table whose every row answers: nothing is sampled, and the interval, which allows for sampling, is wider than it need be."""
    n = Survey().clients(epsilon)
    algorithm = Survey().algorithm(epsilon, n)
    randomizer = BinaryRR(epsilon)
    for share in SHARES:
        ones = round(share * n)
        groups = [(count, report_law(randomizer, np.eye(2)[value])) for value, count in enumerate((n - ones, ones))]
        draw = Drawn([Crowd(randomizer, groups)], algorithm.decode)
        yield Case("table", f"share {share:g}", epsilon, n, np.array([ones / n]), draw, binomial=False, band=AT_LEAST)


CASES: dict[str, Callable[[float], Iterator[Case]]] = {
    "survey": partial(of_settings, _survey),
    "frequency": partial(of_settings, _frequency),
    "mean": partial(of_settings, _mean),
    "sq": partial(of_settings, _queries),
    "prefix-sums": partial(of_settings, _prefix_sums),
    "discrete-laplace": _discrete_laplace,
    "table": _table,
    "longitudinal": _waves,
    "present": partial(of_settings, _present),
    "histogram": partial(of_settings, _histogram),
    "crosstab": partial(of_settings, _crosstab),
    "quantiles": _quantiles,
    "mean-found": found_means,
    "learn": learned,
    **LISTED,
}
CASES |= {name: partial(of_itself, PROTOCOLS[name]) for name in PROTOCOLS.usable() if name not in CASES and measurable(PROTOCOLS[name])}


def exact_ranges(epsilon: float) -> list[dict[str, Any]]:
    """For each kind of binomial report, the exact coverage over all shares: its mean and its range, with few clients and with the default number.

    `inside`: with the default number in the band, with few at least 94 %, for every share.
    """
    kinds: list[tuple[str, FiniteChannel, Estimator]] = [("survey, mean, a query of sq", BinaryRR(epsilon), Survey())]
    kinds += [(f"frequency, k = {k}", frequency_randomizer(epsilon, k), Frequency(k=k)) for k in (8, 64)]
    found = []
    for what, randomizer, protocol in kinds:
        counts = np.zeros((randomizer.cells, randomizer.alphabet), dtype=np.int64)
        counts[0, 0] = 1
        ends = randomizer.estimate(Tally(counts)).ends
        assert ends is not None
        low, high = float(ends[0]), float(ends[1])
        seen, default = (-low / (high - low), (1 - low) / (high - low)), protocol.clients(epsilon)
        kind = {"what": what, "randomizer": randomizer.name, "epsilon": epsilon, "holds_from": holds_from(seen)}
        found += [{**kind, "n": n, "default": n == default, **_exact_range(n, seen, n == default)} for n in (*FEW, default)]
    return found


def _exact_range(n: int, seen: tuple[float, float], default: bool) -> dict[str, Any]:
    mean, (least, most) = float(binomial_coverage(n, np.linspace(*seen, SHARES_SEEN), whole=True).mean()), exact_range(n, seen)
    low, high = COUNTED if default else AT_LEAST
    return {"mean": mean, "exact": (least, most), "inside": low <= least and most <= high}


def success_rates() -> list[dict[str, Any]]:
    """Wilson's interval for as many trials as some experiment makes: exact coverage over the rates from 0.8 to 0.99, on average and at either extreme.

    Of three trials or fewer no rate is stated.
    """
    points = [plain(point) for module in chosen(ALL) for scale in SCALES for point in load(module).points(scale)]
    found = []
    for trials in sorted({int(data["trials"]) for data in map(plain, points) if data.get("trials", 0) > 3}):
        exact = binomial_coverage(trials, RATES)
        mean = float(exact.mean())
        found.append({"trials": trials, "mean": mean, "least": float(exact.min()), "most": float(exact.max()), "inside": BAND[0] <= mean <= BAND[1]})
    return found


def stating(scales: Sequence[Scale]) -> dict[str, Callable[[], list[Stated]]]:
    """What makes the cases of the searches for least counts, and of each experiment that states other intervals, by name; nothing is run before it is asked."""
    experiments = {each.name: each.stated for each in map(load, chosen(ALL)) if type(each).stated is not Experiment.stated}
    makers: dict[str, Callable[[Scale], list[Stated]]] = {"least-counts": least_count_cases, **experiments}
    return {name: partial(_at, scales, make) for name, make in makers.items()}


def _at(scales: Sequence[Scale], make: Callable[[Scale], list[Stated]]) -> list[Stated]:
    return [case for scale in scales for case in make(scale)]
