"""Parity under a trusted curator: the private learners A and A* (KLNRS Section 3.2), with the
paper's constants and with exact ones."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Self

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.checks import check_share, check_whole
from local_dp.curator.mechanism import Law, Mechanism, check_listed, epsilon_of, whole_weights
from local_dp.curator.parity import gf2
from local_dp.draws import WORD_BITS, Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Pure, exp_epsilon, nano_epsilon, nano_of_ratio, split_epsilon
from local_dp.optimise import least_clients
from local_dp.randomizers.finite import ceil_fraction

_GRID = 1 << WORD_BITS
_HALF = Fraction(1, 2)
_LISTED = 16  # examples plus dimensions: 2^16 kept sets and hypotheses are listed, no more


@dataclass(frozen=True)
class Examples:
    """n examples of a parity over {0,1}^d: x bit-packed as `gf2.pack` does it, shape (n, width(d));
    y of 0/1, shape (n,)."""

    d: int
    x: Words
    y: Ints

    def __post_init__(self) -> None:
        shape = (len(self.y), gf2.width(self.d))
        if self.x.shape != shape:
            raise InputError(
                f"{len(self.y)} examples over {{0,1}}^{self.d} need x of shape {shape}, not "
                f"{self.x.shape}"
            )

    @classmethod
    def of(cls, d: int, pairs: tuple[tuple[int, int], ...]) -> Self:
        """From pairs (x, y), x a mask of at most 64 bits."""
        x, y = np.array(pairs, dtype=np.uint64).reshape(-1, 2).T
        return cls(d, x.reshape(-1, 1), y.astype(np.uint8))

    def __len__(self) -> int:
        return len(self.y)


def draw_examples(d: int, r: Words, n: int, generator: np.random.Generator) -> Examples:
    """n examples (x, <r, x>), x uniform; r packed, shape (width(d),)."""
    words = generator.integers(0, 1 << 64, (n, gf2.width(d)), dtype=np.uint64)
    x = words & gf2.pack(np.ones(d, dtype=np.uint8))
    return Examples(d, x, gf2.products(x, r))


@dataclass(frozen=True)
class ParityLearner(Mechanism[Examples, int | None, Pure]):
    """A run: with probability s no answer; else each example is kept with probability p, and a
    uniform solution of these equations is the answer, if any.

    Up to `runs` runs, the first answer counts: runs = 1 is the paper's A, more its A*. p and s are
    multiples of 2^-64, so the sampler realises them exactly. Privacy: `ratio` on ALL databases,
    consistent or not. Utility: `parity_examples` of `bounds.curator`. Cost: O(p n d^2 / 128) word
    operations, most often once. Source: KLNRS 2008, Section 3.2; limits 4.1.
    """

    summary = "Learns a parity by solving sampled equations"
    p: Fraction
    s: Fraction
    runs: int = 1

    def __post_init__(self) -> None:
        for name, value in (("p", self.p), ("s", self.s)):
            if not 0 < value < 1 or _GRID % value.denominator:
                raise InputError(
                    f"{name} is {value}; give a multiple of 2^-{WORD_BITS} strictly between 0 and 1"
                )
        check_whole("runs", self.runs, 1, 1 << 20)

    @property
    def ratio(self) -> Fraction:
        """e^loss: the least upper bound of Pr[outcome] / Pr'[outcome] over all n, d, neighbours and
        outcomes. With k runs the larger of

            (b / s)^k                                        for "no answer", b = p + (1 - p) s, and
            (1 + p) / (1 - p) * (1 - b^k) / ((1 - p)(1 - s^k))   for a hypothesis.

        Proof: let example i differ, u be Pr[a run answers h | i not kept] and b0 >= s be Pr[a run
        does not answer | i not kept]. A kept example at most doubles u (KLNRS Claim 3.3) and cannot
        lower b0. So a run answers h with probability (1 - p) u to (1 + p) u, and is silent with one
        of b0 to p + (1 - p) b0. All runs together answer h with g(silence) = 1 + silence + ... +
        silence^(k-1) times as much. The elasticity of 1 - (1 - t)^k falls in t. So g(p + (1 - p)
        b0) / g(b0) and the ratio for "no answer" fall in b0, and are largest at b0 = s. For k = 1
        this is limits 4.1.
        """
        p, s, k = self.p, self.s, self.runs
        silent = p + (1 - p) * s
        once = (1 + p) / (1 - p)
        answers = once * (1 - silent**k) / ((1 - p) * (1 - s**k))
        return max((silent / s) ** k, answers)

    @property
    def epsilon(self) -> float:
        """ln `ratio`, in nats."""
        return epsilon_of(self.ratio)

    @property
    def loss(self) -> Pure:
        return Pure(nano_of_ratio(self.ratio))

    @property
    def silence(self) -> float:
        """The probability of no answer on consistent examples: s^runs."""
        return float(self.s) ** self.runs

    def release(self, database: Examples, draws: Draws) -> int | None:
        """r as a mask, bit j being its entry j, or None for no answer."""
        for _ in range(self.runs):
            if draws.coin(self.s):
                continue
            sample = draws.words(len(database)) < np.uint64(int(self.p * _GRID))
            solutions = gf2.solve(database.x[sample], database.y[sample], database.d)
            if solutions is not None:
                return gf2.mask(solutions.pick(draws.words(gf2.width(database.d))))
        return None

    def law(self, database: Examples) -> Law[int | None]:
        """By its definition, without elimination: a sum over all kept sets and all r."""
        n, d = len(database), database.d
        check_listed(f"{n} examples over {{0,1}}^{d}", n + d, _LISTED, " of both together")
        equations = [
            (gf2.mask(row), int(side)) for row, side in zip(database.x, database.y, strict=True)
        ]
        once = dict.fromkeys(range(1 << d), Fraction(0))
        for keeps in product((False, True), repeat=n):
            sample = [equation for equation, keep in zip(equations, keeps, strict=True) if keep]
            solutions = [r for r in once if all((x & r).bit_count() % 2 == y for x, y in sample)]
            share = (1 - self.s) * self.p ** len(sample) * (1 - self.p) ** (n - len(sample))
            for r in solutions:
                once[r] += share / len(solutions)
        silent = 1 - sum(once.values())
        runs = sum(silent**run for run in range(self.runs))
        answers = {r: share * runs for r, share in once.items()}
        return whole_weights({**answers, None: silent**self.runs})


def _down(value: Fraction) -> Fraction:
    return Fraction(math.floor(value * _GRID), _GRID)


def _up(value: Fraction) -> Fraction:
    return Fraction(ceil_fraction(value * _GRID), _GRID)


def paper_learner(epsilon: float) -> ParityLearner:
    """A as printed: p = eps / 4, s = 1/2. Raises InputError unless epsilon <= 1/2."""
    if epsilon > 0.5:
        raise InputError(
            f"epsilon is {epsilon}; the paper's learner is stated for at most 1/2 (amplified: for "
            "each run)"
        )
    return ParityLearner(_down(Fraction(nano_epsilon(epsilon), 4 * NANO)), _HALF)


def paper_runs(beta: float) -> int:
    """How often A* runs A: log2(2 / beta), rounded up."""
    check_share("beta", beta)
    return math.ceil(math.log2(2 / beta))


def paper_amplified(epsilon: float, beta: float) -> ParityLearner:
    """A* as printed, with a whole number of runs: A with eps / runs, up to `paper_runs(beta)`
    times."""
    runs = paper_runs(beta)
    single = paper_learner(split_epsilon(epsilon, runs))
    return ParityLearner(single.p, single.s, runs)


def exact_learner(epsilon: float) -> ParityLearner:
    """One run with p = tanh(eps / 2) and s = 1 / (e^eps + 2), rounded towards privacy: both ratios
    are e^epsilon, for every epsilon (limits 4.1)."""
    growth = exp_epsilon(nano_epsilon(epsilon))
    return ParityLearner(_down((growth - 1) / (growth + 1)), _up(1 / (growth + 2)))


def two_runs(epsilon: float, s: float = 0.28) -> ParityLearner:
    """Two runs of eps / 2 each, budgets added up: p = min(tanh(eps / 4), s (e^(eps/2) - 1) / (1 -
    s)), the improved A of limits 4.1."""
    check_share("s", s)
    more, silent = exp_epsilon(nano_epsilon(split_epsilon(epsilon, 2))) - 1, _up(Fraction(s))
    p = min(more / (more + 2), silent * more / (1 - silent))
    return ParityLearner(_down(p), silent, 2)


def amplified_learner(epsilon: float, beta: float, runs: int = 16) -> ParityLearner:
    """The default: many runs charged together, silent with probability 2 beta / 3 at most; p is the
    largest with `ratio` <= e^epsilon."""
    check_share("beta", beta)
    check_whole("runs", runs, 1, 1 << 20)
    growth = exp_epsilon(nano_epsilon(epsilon))
    silent = _down(Fraction((2 * beta / 3) ** (1 / runs)))

    def learner(keeps: int) -> ParityLearner:
        return ParityLearner(Fraction(keeps, _GRID), silent, runs)

    most = least_clients(lambda keeps: keeps >= _GRID or learner(keeps).ratio > growth) - 1
    if not most:
        raise InputError(
            f"no keeping probability is private at epsilon {epsilon}; give a larger epsilon or "
            f"fewer runs than {runs}"
        )
    return learner(most)
