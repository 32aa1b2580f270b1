"""Which stated intervals are measured: of every protocol that states one, some with few clients and with many, for shares near 0, 1/2 and 1."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, get_args, get_type_hints

import numpy as np

from local_dp.experiments.lab.catalogue import ALL, chosen, load
from local_dp.experiments.lab.claim import Experiment, Scale
from local_dp.experiments.lab.coverage.repetition import AT_LEAST, BAND, COUNTED, Case, binomial_coverage, exact_range, holds_from
from local_dp.experiments.lab.coverage.runs import Crowd, Drawn, report_law
from local_dp.experiments.lab.coverage.searches import least_count_cases
from local_dp.experiments.lab.coverage.settings import FEW, Estimator, Setting, of_settings
from local_dp.experiments.lab.coverage.shapes import SHAPED
from local_dp.experiments.lab.coverage.stated import Stated
from local_dp.experiments.lab.coverage.tables import TABLES, of_itself
from local_dp.experiments.lab.store import plain
from local_dp.protocols.local_protocol import PROTOCOLS, LocalProtocol
from local_dp.protocols.surveys.frequency import Frequency, frequency_randomizer
from local_dp.protocols.surveys.survey import StatisticalQueries, Survey
from local_dp.protocols.vectors.mean_vector import Mean
from local_dp.protocols.vectors.workload import PrefixSums
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.numbers.noise import DiscreteLaplace
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.tallies import Estimate, Tally

SHARES = (0.01, 0.5, 0.99)
GROUPS = ("a", "b", "c")
SCALES: tuple[Scale, Scale] = ("quick", "full")
SHARES_SEEN = 4001  # over which the coverage is averaged
MANY = 1000  # where a randomizer belongs to no protocol that would know how many
RATES = np.linspace(0.8, 0.99, 191)  # success rates, as experiments look for them


def measurable(kind: type[LocalProtocol[Any]]) -> bool:
    """Whether the result of a protocol is an estimate or has one, by its type, and no reason is given to leave its intervals out."""
    result = get_args(get_type_hints(kind.algorithm)["return"])[-1]
    return not kind.uncovered and isinstance(result, type) and (issubclass(result, Estimate) or "estimate" in getattr(result, "__dataclass_fields__", ()))


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
            yield Case("discrete-laplace", f"mean {share:g}, of 0 and 1", epsilon, n, np.array([share]), draw, binomial=False, default=n == MANY)


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
    **TABLES,
    **SHAPED,
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
