"""What the shipped `sq_from_local` draws, beside laws worked out here from closed forms: none of its likelihoods, estimates or acceptances is used."""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from local_dp.arrays import Floats
from local_dp.errors import LocalDPError
from local_dp.experiments.lab.claim import Check, Measurement, Point, Scale, Table
from local_dp.interaction import Adaptive, Algorithm, Nonadaptive, Play, run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.population import PopulationOracle
from local_dp.oracles.statistical.oracles import Bias, BiasedOracle, SQOracle, StatisticalQuery, against, downward, upward
from local_dp.oracles.watched import Watched
from local_dp.populations.finite import Finite
from local_dp.queries.tables import Category, Question
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.tallies import Tally
from local_dp.theorems.sq_from_local import sq_from_local

FAILURE = 1e-6  # Pr[a right program is called wrong], over all outcomes of all cases together
PATIENT = 400  # candidates a draw, where one candidate at a time is tried
BIASES: Final[dict[str, Bias]] = {
    "exact": lambda expectation: 0.0,
    "up": upward,
    "down": downward,
    "inwards": against,
    "outwards": lambda expectation: -against(expectation),
}
PAIRS: Final = ((0, 0), (0, 1), (1, 0), (1, 1))


@dataclass(frozen=True)
class Setting:
    """One reply of each individual: how it is randomized, the shares of the values 0, 1, ..., and what the oracle does within which tolerance."""

    mechanism: str
    epsilon: float
    shares: tuple[float, ...]
    tolerance: float
    bias: str
    trials: int  # candidates drawn before any answer; 0 for one at a time


SETTINGS: Final = (
    Setting("binary-rr", 0.5, (0.0, 1.0), 0.01, "exact", 12),  # everybody as far from the reference as can be: the ceiling is reached
    Setting("binary-rr", 0.5, (0.0, 1.0), 0.01, "exact", 0),
    Setting("binary-rr", 1.0, (0.5, 0.5), 0.01, "exact", 1),
    Setting("binary-rr", 1.0, (0.5, 0.5), 0.01, "exact", 3),
    Setting("binary-rr", 1.0, (0.3, 0.7), 0.4, "up", 0),
    Setting("binary-rr", 1.0, (0.7, 0.3), 0.4, "down", 12),
    Setting("binary-rr", 1.0, (0.1, 0.9), 0.6, "outwards", 12),  # tau' > 1: the estimates leave the range of the true ones and are moved back
    Setting("binary-rr", 1.0, (0.1, 0.9), 0.6, "outwards", 0),
    Setting("binary-rr", 1.0, (0.1, 0.9), 0.4, "inwards", 12),
    Setting("grr", 1.0, (0.1, 0.2, 0.7), 0.01, "exact", 12),
    Setting("grr", 1.0, (0.1, 0.2, 0.7), 0.3, "inwards", 0),
    Setting("hadamard", 0.5, (0.0, 0.1, 0.2, 0.7), 0.01, "exact", 12),
)


def joint(population: str) -> tuple[float, ...]:
    """The shares of (x, y) = 00, 01, 10, 11: two bits that agree in 80 % of cases, or everybody (1, 1)."""
    return (0.4, 0.1, 0.1, 0.4) if population == "correlated" else (0.0, 0.0, 0.0, 1.0)


def law_points(scale: Scale) -> list[Point]:
    """Every setting of one reply, and two replies of one individual."""
    draws = 40_000 if scale == "full" else 6000
    points: list[Point] = [{"kind": "law", "setting": place, "draws": draws} for place in range(len(SETTINGS))]
    epsilons = (0.25, 0.5, 1.0, 1.5, 2.0) if scale == "full" else (0.25, 1.0, 2.0)
    pairs = [("sq", epsilon, "correlated", "exact") for epsilon in epsilons]
    pairs += [("sq", 0.5, "correlated", "outwards"), ("sq", 0.5, "far", "exact"), ("sq", 0.5, "far", "outwards"), ("clients", 1.0, "correlated", "exact")]
    keys = ("tier", "epsilon", "people", "bias")
    return [*points, *({"kind": "pair", "draws": draws // 2 if pair[0] == "sq" else 2000, **dict(zip(keys, pair, strict=True))} for pair in pairs)]


class Memoised:
    """Answers as the inner oracle does, which answers each query the same every time, and computes no answer twice."""

    def __init__(self, inner: SQOracle) -> None:
        self.inner = inner
        self.known: dict[StatisticalQuery, float] = {}

    def answer(self, queries: tuple[StatisticalQuery, ...]) -> tuple[float, ...]:
        new = tuple(query for query in dict.fromkeys(queries) if query not in self.known)
        self.known |= zip(new, self.inner.answer(new), strict=True)
        return tuple(self.known[query] for query in queries)


def _randomizer(mechanism: str, epsilon: float, values: int) -> Randomizer:
    if mechanism == "binary-rr":
        return BinaryRR(epsilon)
    return GRR(epsilon, k=values) if mechanism == "grr" else Hadamard(epsilon, k=values)


def _counted(tallies: tuple[Tally, ...]) -> list[int]:
    counts: list[int] = tallies[0].counts.ravel().astype(int).tolist()
    return counts


def one_reply(setting: Setting, draws: int) -> Algorithm[LocalQuery, Tally, list[int]]:
    """`draws` clients are asked their value; the result counts the (cell, report) pairs."""
    values = len(setting.shares)
    query = Category("u", tuple(map(str, range(values))))
    asked = (LocalQuery(query, _randomizer(setting.mechanism, setting.epsilon, values), Cohort(0, draws)),)
    if setting.trials:
        return Nonadaptive(asked, _counted)

    def play() -> Play[LocalQuery, Tally, list[int]]:
        return _counted((yield asked))

    return Adaptive(play)


def two_questions(epsilon: float, draws: int, *, same: bool = True) -> Adaptive[LocalQuery, Tally, list[int]]:
    """Each of `draws` clients is asked x; then, by its own reply, x or y. The result counts the transcripts 00, 01, 10, 11.

    Each reply costs epsilon. `same` puts the second question to the same individual; without it, to another one: a wrong simulation of the first kind.
    """
    randomizer, x, y = BinaryRR(epsilon), Question("x == 1"), Question("y == 1")

    def play() -> Play[LocalQuery, Tally, list[int]]:
        tallies = yield tuple(LocalQuery(x, randomizer, Cohort(i, i + 1)) for i in range(draws))
        first = [int(tally.counts[0, 1]) for tally in tallies]
        shift = 0 if same else draws
        tallies = yield tuple(LocalQuery(x if reply else y, randomizer, Cohort(shift + i, shift + i + 1)) for i, reply in enumerate(first))
        second = [int(tally.counts[0, 1]) for tally in tallies]
        counts: list[int] = np.bincount([2 * a + b for a, b in zip(first, second, strict=True)], minlength=4).tolist()
        return counts

    return Adaptive(play)


def measure_law(point: Point, seed: int) -> Measurement:
    """What the shipped simulation of one reply drew; nothing if it was refused."""
    setting = SETTINGS[point["setting"]]
    population = Finite(Records({"u": np.arange(len(setting.shares))}), setting.shares, 1, seed)
    try:
        simulated = sq_from_local(one_reply(setting, point["draws"]), setting.tolerance, setting.trials or PATIENT, seed)
        return {"counts": run(simulated, Memoised(BiasedOracle(population, BIASES[setting.bias])))}
    except LocalDPError as error:  # of a randomizer that loses more than it claims
        return {"counts": [], "refused": str(error)}


def pair_tolerance(point: Point) -> float:
    """Fine where only the law of exact answers is wanted; else so coarse that two replies' estimate is off by up to a third."""
    twice = math.exp(2 * point["epsilon"])
    return float((0.01 if point["bias"] == "exact" else 0.33) * 2 / (twice**2 - 1))


def measure_pair(point: Point, seed: int, *, same: bool = True) -> Measurement:
    """The transcripts of two dependent replies: as the shipped simulation drew them, and how many queries it asked; or as real simulated clients gave them."""
    epsilon, draws = point["epsilon"], point["draws"]
    algorithm = two_questions(epsilon, draws, same=same)
    population = Finite(Records({"x": np.array([0, 0, 1, 1]), "y": np.array([0, 1, 0, 1])}), joint(point["people"]), 2 * draws, seed)
    if point["tier"] == "clients":
        return {"counts": run(algorithm, PopulationOracle(population, KeyedNoise(seed), seed, 2 * epsilon))}
    asked: list[int] = []
    oracle = Watched(Memoised(BiasedOracle(population, BIASES[point["bias"]])), before=lambda queries: asked.append(len(queries)))
    return {"counts": run(sq_from_local(algorithm, pair_tolerance(point), PATIENT, seed), oracle), "asked": sum(asked)}


def channel(mechanism: str, epsilon: float, values: int) -> list[Floats]:
    """Pr[report | value], one matrix a public cell, in closed form: KLNRS 4.1's randomized response, k-ary, or on a bit of a Hadamard row."""
    rise = math.expm1(epsilon)
    if mechanism != "hadamard":
        return [(1 + rise * np.eye(values)) / (rise + values)]
    rows = range(1 << (values - 1).bit_length())
    bits = [[(row & value).bit_count() % 2 for value in range(values)] for row in rows]
    return [np.array([[1 + rise * (bit == report) for report in (0, 1)] for bit in row]) / (rise + 2) for row in bits]


def estimated(ratio: Floats, epsilon: float, tolerance: float, bias: Bias) -> Floats:
    """The likelihood ratios that an oracle with this bias reports, moved into [e^-eps, e^eps]: the query is (ratio - cosh eps) / sinh eps."""
    true = (ratio - math.cosh(epsilon)) / math.sinh(epsilon)
    answers = true + tolerance * np.array([bias(value) for value in true.tolist()])
    moved: Floats = np.clip(math.cosh(epsilon) + math.sinh(epsilon) * answers, math.exp(-epsilon), math.exp(epsilon))
    return moved


def one_reply_law(setting: Setting) -> list[float]:
    """The law of (cell, report): candidates from the law of value 0, kept with probability estimate / e^eps, the last of `trials` whatever comes."""
    cells = channel(setting.mechanism, setting.epsilon, len(setting.shares))
    law: list[float] = []
    for rows in cells:
        ratio = estimated(np.array(setting.shares) @ rows / rows[0], setting.epsilon, setting.tolerance, BIASES[setting.bias])
        kept = rows[0] * ratio / math.exp(setting.epsilon)
        missed = (1 - kept.sum()) ** ((setting.trials or PATIENT) - 1)
        law += ((kept / kept.sum() * (1 - missed) + rows[0] * missed) / len(cells)).tolist()
    return law


def two_replies_law(point: Point) -> list[float]:
    """The law of the transcripts 00, 01, 10, 11: the second reply's candidates are kept in proportion to the estimate for both replies over that for one."""
    epsilon, bias, tolerance = point["epsilon"], BIASES[point["bias"]], pair_tolerance(point)
    (rows,), shares = channel("binary-rr", epsilon, 2), np.array(joint(point["people"]))
    x, y = (np.array([pair[place] for pair in PAIRS]) for place in (0, 1))
    ratio = rows / rows[0]  # by value and reply
    law: list[float] = []
    alone = estimated(shares @ ratio[x], epsilon, tolerance, bias)
    first = rows[0] * alone / (rows[0] @ alone)
    for a in (0, 1):
        both = estimated((shares * ratio[x, a]) @ ratio[x if a else y], 2 * epsilon, tolerance, bias)
        law += (first[a] * rows[0] * both / (rows[0] @ both)).tolist()
    return law


def divergence(drawn: float, predicted: float) -> float:
    """KL(drawn || predicted) of two coins, in nats."""
    terms = ((drawn, predicted), (1 - drawn, 1 - predicted))
    return sum(p * math.log(p / q) if q > 0 else math.inf for p, q in terms if p > 0)


def compared(label: str, counts: list[int], law: list[float], comparisons: int) -> dict[str, Any]:
    """The outcome that is furthest from the law, and what chance allows.

    Pr[KL(count / n || p) >= t, on either side] <= 2 e^(-n t) (Chernoff), so t = ln(2 comparisons / FAILURE) / n is exceeded anywhere with probability FAILURE.
    """
    n = sum(counts)
    off = [divergence(count / n, p) for count, p in zip(counts, law, strict=True)]
    worst = int(np.argmax(off))
    allowed = math.log(2 * comparisons / FAILURE) / n
    return {
        "case": label, "draws": n, "outcome": worst, "drawn": counts[worst] / n, "predicted": law[worst], "off": off[worst] / allowed,
        "distance": sum(abs(count / n - p) for count, p in zip(counts, law, strict=True)) / 2,
    }  # fmt: skip


def _refused(label: str, why: str) -> dict[str, Any]:
    return {"case": f"{label}: {why}", "draws": 0, "outcome": 0, "drawn": math.nan, "predicted": math.nan, "off": math.inf, "distance": math.nan}


def law_rows(laws: list[tuple[Point, Measurement]], pairs: list[tuple[Point, Measurement]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """One row a case: one reply, two replies."""
    comparisons = max(1, sum(len(found["counts"]) for _, found in laws + pairs))
    one = []
    for point, found in laws:
        setting = SETTINGS[point["setting"]]
        trials = f"{setting.trials} candidates at once" if setting.trials else "one candidate at a time"
        label = (
            f"{setting.mechanism}, ε {setting.epsilon:g}, shares {'/'.join(f'{s:g}' for s in setting.shares)}, τ {setting.tolerance:g} {setting.bias}, {trials}"
        )
        one.append(compared(label, found["counts"], one_reply_law(setting), comparisons) if found["counts"] else _refused(label, found["refused"]))
    two = [
        compared(
            f"{point['people']}, ε {point['epsilon']:g} a reply, {point['bias']}, {'real clients' if point['tier'] == 'clients' else 'simulated'}",
            found["counts"],
            two_replies_law(point),
            comparisons,
        )
        for point, found in pairs
    ]
    return one, two


def law_check(statement: str, rows: list[dict[str, Any]]) -> Check:
    """Whether every outcome of every case was drawn as often as its law says."""
    worst = max(rows, key=lambda row: float(row["off"]), default=None)
    said = "nothing was drawn"
    if worst is not None:
        said = (
            f"{len(rows)} cases; furthest: {worst['case']}, drawn {worst['drawn']:.4f} of {worst['draws']:,}, predicted {worst['predicted']:.4f}: "
            f"{worst['off']:.2f} of what chance exceeds anywhere once in {1 / FAILURE:.0e} runs"
        )
    return Check(statement, bool(rows) and all(row["off"] <= 1 for row in rows), said)


def law_table(rows: list[dict[str, Any]]) -> Table:
    """Every case."""
    columns = ("case", "draws", "outcome furthest off", "drawn", "predicted", "of what chance allows", "total variation")
    return Table(
        "What the shipped simulation drew, against the law",
        columns,
        [(r["case"], r["draws"], r["outcome"], r["drawn"], r["predicted"], r["off"], r["distance"]) for r in rows],
    )
