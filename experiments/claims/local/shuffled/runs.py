"""The points of the experiment `shuffled`: bounds on epsilon, small data sets enumerated, histograms run."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from local_dp.experiments.lab.intervals import relative_error
from local_dp.experiments.lab.statistics import Positive
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.shuffle.accountant import amplified, rows_of, worst_delta
from local_dp.shuffle.histogram import Target, multi_message, single_message

LOCAL, DELTA, K = 1.0, 1e-6, 16
RR, KARY, HADAMARD = "randomized response", f"{K}-ary response", "one-bit Hadamard"
TARGET = Target(10_000, 1.0, DELTA)
ALONE, ONE, MANY, CURATOR = "local", "shuffled, one report", "shuffled, blanket messages", "curator"
MODELS = (ALONE, ONE, MANY, CURATOR)
SHARES = np.arange(K, 0, -1) / (K * (K + 1) / 2)  # of the symbols, none alike


def randomizer(name: str) -> FiniteChannel:
    """One of the three, at the local epsilon."""
    kinds: dict[str, Any] = {RR: lambda: BinaryRR(LOCAL), KARY: lambda: GRR(LOCAL, k=K), HADAMARD: lambda: Hadamard(LOCAL, k=K)}
    made: FiniteChannel = kinds[name]()
    return made


@dataclass(frozen=True)
class Epsilons:
    """Upper bounds by rule, the best of them, and the lower bound; `exact` if the two ends are those of one worst data set."""

    uppers: dict[str, float]
    lower: float
    upper: float
    exact: bool


@dataclass(frozen=True)
class Bounds:
    """Every bound of n shuffled reports of a randomizer."""

    name: str
    n: int

    def measure(self, seed: int) -> Epsilons:
        bounds = amplified(randomizer(self.name), self.n, DELTA)
        return Epsilons(dict(bounds.uppers), bounds.lower, bounds.upper, bounds.exact)


@dataclass(frozen=True)
class WorstDeltas:
    """Delta over all data sets at each bound on epsilon, and the lower bound itself."""

    uppers: dict[str, float]
    lower: float
    least: float


@dataclass(frozen=True)
class Enumerated:
    """All data sets of a few clients, in fractions: no more than delta at the upper bounds, no less at the lower."""

    k: int
    n: int
    delta: float

    def measure(self, seed: int) -> WorstDeltas:
        small: FiniteChannel = BinaryRR(LOCAL) if self.k == 2 else GRR(LOCAL, k=self.k)
        bounds = amplified(small, self.n, self.delta)
        ends = [*bounds.uppers.values(), bounds.lower]
        deltas = worst_delta(rows_of(small), self.n, [Fraction(math.exp(end)) for end in ends])
        uppers = {rule: float(delta) for rule, delta in zip(bounds.uppers, deltas, strict=False)}
        return WorstDeltas(uppers, float(deltas[-1]), bounds.lower)


@dataclass(frozen=True)
class Squares:
    """The mean square of errors over symbols and runs, its standard error as a share of it, and the mean square that theory expects."""

    mean_square: float
    relative_error: float
    runs: int
    expected: float

    @property
    def root(self) -> Positive:
        """The root mean square. A run's mean over the symbols is about chi-squared with K - 1 degrees of freedom."""
        return Positive(math.sqrt(self.mean_square), self.relative_error / 2, self.runs - 1)


@dataclass(frozen=True)
class Errors:
    """A histogram in one model, run by run, of the same people in every run."""

    model: str
    runs: int

    def measure(self, seed: int) -> Squares:
        generator, counts = np.random.default_rng([seed, MODELS.index(self.model)]), np.round(SHARES * TARGET.clients).astype(np.int64)
        counts[0] += TARGET.clients - counts.sum()
        draw, expected = {CURATOR: _curator, MANY: _many}.get(self.model, _reports)(self.model, counts)
        squares = np.array([((draw(generator) - counts / TARGET.clients) ** 2).mean() for _ in range(self.runs)])
        return Squares(float(squares.mean()), relative_error(squares), self.runs, expected)


def _reports(model: str, counts: Any) -> Any:
    oracle = GRR(TARGET.epsilon, k=K) if model == ALONE else single_message("grr", K, TARGET)
    assert isinstance(oracle, GRR)
    by_symbol, n = dict(enumerate(counts.tolist())), TARGET.clients
    p, q = oracle.truth / oracle.total, oracle.other / oracle.total
    expected = (p * (1 - p) + (K - 1) * q * (1 - q)) / (K * n * (p - q) ** 2)
    return lambda generator: oracle.estimate(oracle.draw_tally(by_symbol, generator)).value, expected


def _many(model: str, counts: Any) -> Any:
    histogram, n = multi_message(K, TARGET), TARGET.clients
    law = np.append(np.full(K, histogram.share), 1 - K * histogram.share)

    def draw(generator: np.random.Generator) -> Any:
        blanket = generator.multinomial(n * histogram.tries, law)[:K]
        return histogram.estimate(type(histogram.tally(np.arange(K), n))(counts + blanket, n)).value

    return draw, histogram.variance(n)


def _curator(model: str, counts: Any) -> Any:
    """Discrete Laplace noise on each count, of which a replaced record changes two."""
    n, ratio = TARGET.clients, math.exp(-TARGET.epsilon / 2)

    def draw(generator: np.random.Generator) -> Any:
        return (counts + generator.geometric(1 - ratio, K) - generator.geometric(1 - ratio, K)) / n

    return draw, 2 * ratio / (1 - ratio) ** 2 / n**2
