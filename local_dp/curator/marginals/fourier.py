"""The Fourier mechanism: all marginals of a workload from one Gaussian release of its characters.

Its weights, the table nearest to a release, and the choice between mechanisms by public numbers.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias

import numpy as np

from local_dp.arrays import Bools, Counts, Floats
from local_dp.checks import check_whole
from local_dp.cube import walsh_hadamard
from local_dp.curator.inversion import mu_squared, rounded_normals
from local_dp.curator.marginals.base import DENSE, BinaryTable, Marginals, check_columns
from local_dp.curator.mechanism import WithinDelta
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Approximate

_LARGEST = 1 << 16  # of a weight: what rounding the smallest of them costs is small
_STEPS = 2000


def odd_meetings(d: int, size: int, weight: int) -> int:
    """How many sets of `size` columns meet `weight` given columns in an odd number: the characters
    that change with these columns of a record."""
    return sum(
        math.comb(weight, j) * math.comb(d - weight, size - j) for j in range(1, size + 1, 2)
    )


def weights_of(workload: Marginals) -> Counts:
    """One whole weight for each character, 0 for the empty one, which is n: its precision 1 /
    sigma^2, up to a common factor.

    A character S is in 2^|T| cells of each marginal T that contains S, divided by 2^|T|: noise
    costs sigma_S^2 C_S in all, C_S the sum of 2^-|T| over these T. For records added or removed the
    price is the sum of 1 / sigma_S^2, and sigma_S^2 proportional to C_S^(-1/2) is best. A replaced
    record moves by 2 only the characters that meet its change oddly, about half of them: for all
    t-way marginals `best_shares` is best; other workloads use C_S^(1/2).
    """
    sizes: Counts = np.bitwise_count(workload.characters).astype(np.int64)
    t = int(sizes.max())
    if is_symmetric(workload):
        shares = np.append(0.0, best_shares(workload.d, t))[sizes]
    else:
        costs = np.zeros(len(sizes))
        for mask in workload.masks:
            inside = (workload.characters & np.uint64(mask)) == workload.characters
            costs += 2.0 ** -mask.bit_count() * inside
        shares = np.sqrt(costs)
    whole: Counts = np.ceil(shares * (_LARGEST / shares[1:].max(initial=1e-300))).astype(np.int64)
    whole[0] = 0
    return whole


def is_symmetric(workload: Marginals) -> bool:
    """True if it is all t-way marginals, each once: then the best weight of a character depends on
    its size alone, by convexity."""
    masks, sizes = set(workload.masks), {mask.bit_count() for mask in workload.masks}
    every = sum(math.comb(workload.d, t) for t in sizes)
    return len(sizes) == 1 and len(masks) == len(workload.masks) == every


@lru_cache(maxsize=64)
def best_shares(d: int, t: int) -> Floats:
    """The best precisions a_s of the characters of size 1..t, up to a factor, for all t-way
    marginals against replaced records: shape (t,).

    They minimise (sum_s N_s C_s / a_s) max_w sum_s K_s(w) a_s, N_s = C(d, s), C_s = C(d - s, t -
    s), K_s(w) = `odd_meetings`. For any l_w >= 0 of sum 1 the product is at least (sum_s (N_s C_s
    k_s)^(1/2))^2, k_s = sum_w l_w K_s(w), by Cauchy and Schwarz. This bound is concave in l and
    largest where a_s = (N_s C_s / k_s)^(1/2) attains it; Titterington's steps find it: l_w in
    proportion to l_w times the slope.
    """
    sizes = range(1, t + 1)
    costs = np.array([float(math.comb(d, s) * math.comb(d - s, t - s)) for s in sizes])
    meets = np.array([[float(odd_meetings(d, s, w)) for s in sizes] for w in range(1, d + 1)])
    mixture = np.full(d, 1.0 / d)
    for _ in range(_STEPS):
        slopes = meets @ np.sqrt(costs / (mixture @ meets))
        mixture *= slopes / (mixture @ slopes)
    return np.asarray(np.sqrt(costs / (mixture @ meets)))


def largest_move(workload: Marginals, weights: Counts) -> int:
    """max over all changes u of a record of the total weight of the characters that meet u oddly:
    exact up to 22 columns or for all t-way marginals.

    Beyond, the sum of all weights, an upper bound. A change moves each of these characters by 2.
    """
    total = int(weights.sum())
    if is_symmetric(workload):
        sizes = np.bitwise_count(workload.characters)
        by_size = [int(weights[sizes == s][0]) for s in range(1, int(sizes.max()) + 1)]

        def meets(w: int) -> int:
            return sum(a * odd_meetings(workload.d, s, w) for s, a in enumerate(by_size, 1))

        return max(map(meets, range(1, workload.d + 1)))
    if workload.d > DENSE:
        return total
    spread = np.zeros(1 << workload.d)
    spread[workload.characters.astype(np.int64)] = weights
    return (total - int(walsh_hadamard(spread).min())) // 2  # whole numbers below 2^53: exact


@dataclass(frozen=True, eq=False)
class NoisyCharacters:
    """Noisy sums of the characters of a workload, and the variances of their noise: both shape
    (characters,); the empty one is n and has no noise."""

    workload: Marginals
    sums: Counts
    variances: Floats

    @property
    def size(self) -> int:
        return int(self.sums[0])

    @property
    def cells(self) -> Floats:
        """The estimated counts of all cells: unbiased, and consistent between marginals that share
        columns; some may be below 0."""
        return self.workload.of_characters(self.sums)

    @property
    def deviations(self) -> Floats:
        """The standard errors of the cells, in records: shape (marginals,), the same for all cells
        of a marginal."""
        # the cell of zeros: the sum over its characters by 2^|T|
        first = self.workload.of_characters(self.variances)[self.workload.starts[:-1]]
        return np.asarray(np.sqrt(first / np.diff(self.workload.starts)))

    @property
    def spread(self) -> Floats:
        """The standard error of each cell, shape (cells,)."""
        return np.repeat(self.deviations, np.diff(self.workload.starts))


@dataclass(frozen=True)
class FourierGaussian(WithinDelta[BinaryTable, NoisyCharacters]):
    """For each character S of the workload the sum of (-1)^<S, x> over all records, plus round(N(0,
    V_S)).

    Privacy: (eps, delta), as one Gaussian mechanism: V_S is at least 4 H / (mu^2 a_S), a_S the
    whole `weights_of` the workload, H = `largest_move`. mu is the most that (eps, delta) allows. A
    replaced record moves by 2 the characters that meet its change oddly: squared and over V_S that
    sums to mu^2 at most. Utility: a cell of a marginal T has variance 4^-|T| times the sum of V_S
    over the subsets of T; Cost: O(d 2^d) or O(n characters), and a table for each different V_S.
    Source: Barak et al. 2007 for the characters; the weights as in matrix mechanisms (Li et al.
    2010; Edmonds, Nikolov, Ullman 2020).
    """

    summary = "Releases the Fourier sums of a workload with normal noise"
    workload: Marginals
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.workload.characters) == 1:
            raise InputError(
                "the workload is the number of records alone, which is public; give marginals of "
                "1 column or more"
            )

    @cached_property
    def variances(self) -> Counts:
        """V_S = ceil(4 H / (mu^2 a_S)) before rounding, one for each character; 0 for the empty
        one."""
        weights = weights_of(self.workload)
        whole = 4 * largest_move(self.workload, weights) / mu_squared(self.loss)
        kinds, places = np.unique(weights, return_inverse=True)
        variances = [math.ceil(whole / weight) if weight else 0 for weight in kinds.tolist()]
        return np.array(variances, dtype=np.int64)[places]

    def release(self, database: BinaryTable, draws: Draws) -> NoisyCharacters:
        check_columns(database, self.workload.d)
        sums = database.characters(self.workload.characters)
        # those of equal variance are drawn together
        for variance in np.unique(self.variances[self.variances > 0]).tolist():
            alike = self.variances == variance
            sums[alike] += rounded_normals(draws, variance, int(alike.sum()))
        return NoisyCharacters(self.workload, sums, rounded_variances(self.variances))

    @property
    def deviation(self) -> float:
        """The root mean square of the standard errors of all cells, in records: a public number."""
        exact = NoisyCharacters(
            self.workload, np.zeros_like(self.variances), rounded_variances(self.variances)
        )
        sizes = np.diff(self.workload.starts)
        return math.sqrt(float((exact.deviations**2 * sizes).sum() / sizes.sum()))


def rounded_variances(variances: Counts) -> Floats:
    """Rounding the noise adds 1/12."""
    return np.asarray(np.where(variances > 0, variances + 1 / 12, 0.0))


_ITERATIONS = 200
_KEPT = 20  # steps that L-BFGS remembers


def nearest_table(noisy: NoisyCharacters, possible: Bools | None = None) -> Floats:
    """Weights w >= 0 of all 2^d rows, of sum n, shape (2^d,): the minimiser of sum_S (sum of chi_S
    over w - noisy sum)^2 / (2 V_S) + tau KL(w / n, even).

    Post-processing of a release, on the convex hull of all tables: cells are consistent and none is
    below 0. tau is the larger of two public numbers: k / (2 d ln 2), k characters, where KL, at
    most d ln 2, weighs as much as the k / 2 that noise alone adds to the squares; and 2 n / s, s^2
    the mean of the V_S, where a log-linear coefficient of 1/2 moves no character by more than its
    noise. `possible`, shape (2^d,), marks the rows that a record can have; all by default. Solved
    by the dual, smooth in k numbers: L-BFGS, two transforms a step. Cost: O(d 2^d) a step: 2^17
    rows in 4 s. Leave it out where the noise of a cell is below a thousandth of the average cell.
    Raises InputError beyond 22 columns. Source: lecture notes 7 for projecting on the hull; the
    regularised dual is that of Nesterov 2005; tau is the project's own.
    """
    from scipy.optimize import minimize

    d = noisy.workload.d
    if d > DENSE:
        raise InputError(f"there are {d} columns; a table of all 2^d rows takes up to {DENSE}")
    size = max(noisy.size, 1)
    places, answers = noisy.workload.characters[1:].astype(np.int64), noisy.sums[1:] / size
    variances = noisy.variances[1:]
    scale, spread = size / np.sqrt(variances), float(np.sqrt(variances.mean()))
    tau = max(len(answers) / (2 * d * math.log(2)), 2 * size / spread)

    def soften(dual: Floats) -> tuple[Floats, float]:
        """The weights, of sum 1, of these duals, and tau ln of their sum before."""
        exponents = np.zeros(1 << d)
        exponents[places] = dual * scale / tau
        exponents = walsh_hadamard(exponents)
        if possible is not None:
            exponents[~possible] = -np.inf
        most = float(exponents.max())
        weights = np.exp(exponents - most)
        total = float(weights.sum())
        return weights / total, tau * (most + math.log(total))

    def price(dual: Floats) -> tuple[float, Floats]:
        weights, level = soften(dual)
        off = scale * (walsh_hadamard(weights)[places] - answers)
        return level - float(dual @ (scale * answers)) + float(dual @ dual) / 2, off + dual

    solution = minimize(
        price,
        np.zeros(len(answers)),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _ITERATIONS, "maxcor": _KEPT},
    )
    return np.asarray(noisy.size * soften(solution.x)[0])


Kind: TypeAlias = Literal["fourier", "nearest", "mst"]
MOST_CHARACTERS = 1 << 20
# with noise of at most one part in so many of the average cell, the nearest table would hardly err
# less
LITTLE = 50
# with noise of one part in so many of the average cell, a spanning tree of pairs errs as much on
# `fair`
MUCH = 8


@dataclass(frozen=True)
class Choice:
    """The mechanism, and the reason in one sentence."""

    kind: Kind
    reason: str


def choose(workload: Marginals, size: int, loss: Approximate) -> Choice:
    """By public numbers: the Fourier mechanism where its noise is small against the average cell,
    else its nearest table up to 2^22 rows, else MST."""
    check_whole("the number of records", size, 1, 1 << 50)
    characters = len(workload.characters) - 1
    if characters > MOST_CHARACTERS:
        return Choice(
            "mst",
            f"{characters:,} characters are too many to release; a tree of pairs needs "
            f"{2 * workload.d - 1}",
        )
    share = FourierGaussian(workload, loss.epsilon, loss.delta).deviation / size
    cell = len(workload.masks) / workload.cells
    noise = f"noise of {share:.2g} of the records on a cell, which holds {cell:.3g} on average"
    if share * LITTLE <= cell:
        return Choice("fourier", f"the Fourier mechanism has {noise}: little, and without bias")
    if workload.d <= DENSE:
        return Choice(
            "nearest",
            f"the Fourier mechanism has {noise}; fitting a table of 2^{workload.d} rows reduces it",
        )
    if share * MUCH <= cell:
        return Choice(
            "fourier",
            f"the Fourier mechanism has {noise}, without bias; 2^{workload.d} rows are too "
            "many to fit a table",
        )
    return Choice(
        "mst",
        f"the Fourier mechanism would have {noise}: too much; 2^{workload.d} rows are too "
        "many to fit a table",
    )
