"""What the shipped `sq_from_local` draws, beside laws worked out here from closed forms: none of
its likelihoods, estimates or acceptances is used."""

import math
from typing import Final

import numpy as np

from local_dp.arrays import Floats
from local_dp.errors import LocalDPError
from local_dp.experiments.lab.parts import Refusal, Row, Rows, Scale
from local_dp.interaction import Adaptive, Algorithm, Nonadaptive, Play, Watched, run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.oracles.statistical.oracles import (
    Bias,
    BiasedOracle,
    SQOracle,
    StatisticalQuery,
    against,
    downward,
    upward,
)
from local_dp.populations.finite import Finite
from local_dp.queries.tables import Category, Question
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.tallies import Tally
from local_dp.theorems.sq_from_local import sq_from_local

PATIENT = 400  # candidates a draw, where one candidate at a time is tried
BIASES: Final[dict[str, Bias]] = {
    "exact": lambda expectation: 0.0,
    "up": upward,
    "down": downward,
    "inwards": against,
    "outwards": lambda expectation: -against(expectation),
}
PAIRS: Final = ((0, 0), (0, 1), (1, 0), (1, 1))


class Setting(Row):
    """One reply of each individual: how it is randomized, the shares of the values 0, 1, ..., and
    what the oracle does within which tolerance."""

    mechanism: str
    epsilon: float
    shares: tuple[float, ...]
    tolerance: float
    bias: str
    trials: int  # candidates drawn before any answer; 0 for one at a time


SETTINGS: Final = (
    # everybody as far from the reference as can be: the ceiling is reached
    Setting("binary-rr", 0.5, (0.0, 1.0), 0.01, "exact", 12),
    Setting("binary-rr", 0.5, (0.0, 1.0), 0.01, "exact", 0),
    Setting("binary-rr", 1.0, (0.5, 0.5), 0.01, "exact", 1),
    Setting("binary-rr", 1.0, (0.5, 0.5), 0.01, "exact", 3),
    Setting("binary-rr", 1.0, (0.3, 0.7), 0.4, "up", 0),
    Setting("binary-rr", 1.0, (0.7, 0.3), 0.4, "down", 12),
    # tau' > 1: the estimates leave the range of the true ones and are moved back
    Setting("binary-rr", 1.0, (0.1, 0.9), 0.6, "outwards", 12),
    Setting("binary-rr", 1.0, (0.1, 0.9), 0.6, "outwards", 0),
    Setting("binary-rr", 1.0, (0.1, 0.9), 0.4, "inwards", 12),
    Setting("grr", 1.0, (0.1, 0.2, 0.7), 0.01, "exact", 12),
    Setting("grr", 1.0, (0.1, 0.2, 0.7), 0.3, "inwards", 0),
    Setting("hadamard", 0.5, (0.0, 0.1, 0.2, 0.7), 0.01, "exact", 12),
)


def joint(population: str) -> tuple[float, ...]:
    """The shares of (x, y) = 00, 01, 10, 11: two bits that agree in 80 % of cases, or everybody (1,
    1)."""
    return (0.4, 0.1, 0.1, 0.4) if population == "correlated" else (0.0, 0.0, 0.0, 1.0)


class Drawn(Row):
    counts: list[int]  # how often each outcome was drawn
    asked: int | None = None  # queries of a simulation of two replies


class OneReply(Row):
    """Replies that the shipped simulation draws in one of the SETTINGS."""

    setting: int
    draws: int

    def __str__(self) -> str:
        setting = SETTINGS[self.setting]
        trials = "one candidate at a time"
        if setting.trials:
            trials = f"{setting.trials} candidates at once"
        shares = "/".join(f"{share:g}" for share in setting.shares)
        return (
            f"{setting.mechanism}, ε {setting.epsilon:g}, shares {shares}, τ "
            f"{setting.tolerance:g} {setting.bias}, {trials}"
        )

    def measure(self, seed: int) -> Drawn | Refusal:
        setting = SETTINGS[self.setting]
        population = Finite(Records({"u": np.arange(len(setting.shares))}), setting.shares, 1, seed)
        oracle = Memoised(BiasedOracle(population, BIASES[setting.bias]))
        trials = setting.trials or PATIENT
        try:
            algorithm = one_reply(setting, self.draws)
            return Drawn(run(sq_from_local(algorithm, setting.tolerance, trials, seed), oracle))
        except LocalDPError as error:  # of a randomizer that loses more than it claims
            return Refusal(str(error))


class TwoReplies(Row):
    """Pairs of dependent replies: drawn by the shipped simulation (tier "sq"), or given by real
    simulated clients ("clients")."""

    tier: str
    epsilon: float
    people: str
    bias: str
    draws: int

    def __str__(self) -> str:
        return (
            f"{self.people}, ε {self.epsilon:g} a reply, {self.bias}, "
            f"{'real clients' if self.tier == 'clients' else 'simulated'}"
        )

    @property
    def tolerance(self) -> float:
        """Fine where only the law of exact answers is wanted; else so coarse that two replies'
        estimate is off by up to a third."""
        twice = math.exp(2 * self.epsilon)
        return float((0.01 if self.bias == "exact" else 0.33) * 2 / (twice**2 - 1))

    def measure(self, seed: int, *, same: bool = True) -> Drawn:
        algorithm = two_questions(self.epsilon, self.draws, same=same)
        population = Finite(
            Records({"x": np.array([0, 0, 1, 1]), "y": np.array([0, 1, 0, 1])}),
            joint(self.people),
            2 * self.draws,
            seed,
        )
        if self.tier == "clients":
            clients = PopulationOracle(population, KeyedNoise(seed), seed, 2 * self.epsilon)
            return Drawn(run(algorithm, clients))
        sizes: list[int] = []
        oracle = Watched(
            Memoised(BiasedOracle(population, BIASES[self.bias])),
            before=lambda queries: sizes.append(len(queries)),
        )
        simulation = sq_from_local(algorithm, self.tolerance, PATIENT, seed)
        return Drawn(run(simulation, oracle), sum(sizes))


Replies = OneReply | TwoReplies
# by case, how often each outcome was drawn, and its probabilities
Laws = dict[str, tuple[list[int], list[float]]]


def law_points(scale: Scale) -> list[Replies]:
    """Every setting of one reply, and two replies of one individual."""
    full = scale == "full"
    draws = 40_000 if full else 6000
    epsilons = (0.25, 0.5, 1.0, 1.5, 2.0) if full else (0.25, 1.0, 2.0)
    cases = [(epsilon, "correlated", "exact") for epsilon in epsilons]
    cases += [(0.5, "correlated", "outwards"), (0.5, "far", "exact"), (0.5, "far", "outwards")]
    return [
        *(OneReply(place, draws) for place in range(len(SETTINGS))),
        *(TwoReplies("sq", *pair, draws // 2) for pair in cases),
        TwoReplies("clients", 1.0, "correlated", "exact", 2000),
    ]


class Memoised:
    """Answers as the inner oracle does, which answers each query the same every time, and computes
    no answer twice."""

    def __init__(self, inner: SQOracle) -> None:
        self.inner = inner
        self.memo: dict[StatisticalQuery, float] = {}

    def answer(self, queries: tuple[StatisticalQuery, ...]) -> tuple[float, ...]:
        new = tuple(query for query in dict.fromkeys(queries) if query not in self.memo)
        self.memo |= zip(new, self.inner.answer(new), strict=True)
        return tuple(self.memo[query] for query in queries)


def _randomizer(mechanism: str, epsilon: float, values: int) -> Randomizer:
    if mechanism == "binary-rr":
        return BinaryRR(epsilon)
    return GRR(epsilon, k=values) if mechanism == "grr" else Hadamard(epsilon, k=values)


def _counts(tallies: tuple[Tally, ...]) -> list[int]:
    counts: list[int] = tallies[0].counts.ravel().astype(int).tolist()
    return counts


def _replies(tallies: tuple[Tally, ...]) -> list[int]:
    """Of one individual each."""
    return [int(tally.counts[0, 1]) for tally in tallies]


def one_reply(setting: Setting, draws: int) -> Algorithm[LocalQuery, Tally, list[int]]:
    """`draws` clients are asked their value; the result counts the (cell, report) pairs."""
    values = len(setting.shares)
    query = Category("u", tuple(map(str, range(values))))
    randomizer = _randomizer(setting.mechanism, setting.epsilon, values)
    queries = (LocalQuery(query, randomizer, Cohort(0, draws)),)
    if setting.trials:
        return Nonadaptive(queries, _counts)

    def play() -> Play[LocalQuery, Tally, list[int]]:
        return _counts((yield queries))

    return Adaptive(play)


def two_questions(
    epsilon: float, draws: int, *, same: bool = True
) -> Adaptive[LocalQuery, Tally, list[int]]:
    """Each of `draws` clients is asked x; then, by its own reply, x or y. The result counts the
    transcripts 00, 01, 10, 11.

    Each reply costs epsilon. `same` puts the second question to the same individual; without it, to
    another one: a wrong simulation of the first kind.
    """
    randomizer, x, y = BinaryRR(epsilon), Question("x == 1"), Question("y == 1")
    shift = 0 if same else draws

    def play() -> Play[LocalQuery, Tally, list[int]]:
        tallies = yield tuple(LocalQuery(x, randomizer, Cohort(i, i + 1)) for i in range(draws))
        first = _replies(tallies)
        cohorts = (Cohort(shift + i, shift + i + 1) for i in range(draws))
        tallies = yield tuple(
            LocalQuery(x if reply else y, randomizer, cohort)
            for reply, cohort in zip(first, cohorts, strict=True)
        )
        pairs = zip(first, _replies(tallies), strict=True)
        counts: list[int] = np.bincount([2 * a + b for a, b in pairs], minlength=4).tolist()
        return counts

    return Adaptive(play)


def channel(mechanism: str, epsilon: float, values: int) -> list[Floats]:
    """Pr[report | value], one matrix a public cell, in closed form: KLNRS 4.1's randomized
    response, k-ary, or on a bit of a Hadamard row."""
    rise = math.expm1(epsilon)
    if mechanism != "hadamard":
        return [(1 + rise * np.eye(values)) / (rise + values)]
    rows = range(1 << (values - 1).bit_length())
    bits = [[(row & value).bit_count() % 2 for value in range(values)] for row in rows]
    reports = np.arange(2)
    return [(1 + rise * (np.array(row)[:, None] == reports)) / (rise + 2) for row in bits]


def estimates(ratio: Floats, epsilon: float, tolerance: float, bias: Bias) -> Floats:
    """The likelihood ratios that an oracle with this bias reports, moved into [e^-eps, e^eps]: the
    query is (ratio - cosh eps) / sinh eps."""
    centre, scale = math.cosh(epsilon), math.sinh(epsilon)
    true = (ratio - centre) / scale
    answers = true + tolerance * np.array([bias(value) for value in true.tolist()])
    ratios: Floats = np.clip(centre + scale * answers, math.exp(-epsilon), math.exp(epsilon))
    return ratios


def one_reply_law(setting: Setting) -> list[float]:
    """The law of (cell, report): candidates from the law of value 0, kept with probability estimate
    / e^eps, the last of `trials` whatever comes."""
    epsilon, shares = setting.epsilon, np.array(setting.shares)
    cells = channel(setting.mechanism, epsilon, len(shares))
    trials = setting.trials or PATIENT
    law: list[float] = []
    for rows in cells:
        ratio = shares @ rows / rows[0]
        estimate = estimates(ratio, epsilon, setting.tolerance, BIASES[setting.bias])
        acceptance = rows[0] * estimate / math.exp(epsilon)
        last = (1 - acceptance.sum()) ** (trials - 1)
        early = acceptance / acceptance.sum() * (1 - last)
        law += ((early + rows[0] * last) / len(cells)).tolist()
    return law


def two_replies_law(point: TwoReplies) -> list[float]:
    """The law of the transcripts 00, 01, 10, 11: the second reply's candidates are kept in
    proportion to the estimate for both replies over that for one."""
    epsilon, bias, tolerance = point.epsilon, BIASES[point.bias], point.tolerance
    (rows,), shares = channel("binary-rr", epsilon, 2), np.array(joint(point.people))
    x, y = (np.array([pair[place] for pair in PAIRS]) for place in (0, 1))
    ratio = rows / rows[0]  # by value and reply
    law: list[float] = []
    alone = estimates(shares @ ratio[x], epsilon, tolerance, bias)
    first = rows[0] * alone / (rows[0] @ alone)
    for a, query in enumerate((y, x)):
        mean = (shares * ratio[x, a]) @ ratio[query]
        both = estimates(mean, 2 * epsilon, tolerance, bias)
        law += (first[a] * rows[0] * both / (rows[0] @ both)).tolist()
    return law


def laws_drawn(
    one: Rows[OneReply, Drawn | Refusal], two: Rows[TwoReplies, Drawn]
) -> tuple[Laws, Laws, list[str]]:
    """For each case of one reply, and of two: the counts and their law; and the refused cases, each
    with the reason."""
    single, refusals = {}, []
    for point, reply in one:
        if isinstance(reply, Drawn):
            single[str(point)] = reply.counts, one_reply_law(SETTINGS[point.setting])
        else:
            refusals.append(f"{point}: {reply.refused}")
    pairs = {str(point): (reply.counts, two_replies_law(point)) for point, reply in two}
    return single, pairs, refusals
