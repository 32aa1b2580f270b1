"""Which randomizer is best for a task, and what reports of few bits cost."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.bounds.attacks import single_estimates
from local_dp.bounds.frequencies import (
    oue_variance,
    parities_variance,
    set_errors,
    sue_variance,
    summed_variance,
    unfavourable_laws,
)
from local_dp.bounds.means import Body, best_mean, mean_variances, vector_choices
from local_dp.bounds.response import check_positive_epsilon, response_gain
from local_dp.bounds.tails import Errors
from local_dp.checks import check_whole
from local_dp.domains import MAX_DIMENSION, MAX_LENGTH, Parameter
from local_dp.errors import InputError, unknown
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.base import Design
from local_dp.randomizers.frequencies.best import best_choice, choices
from local_dp.randomizers.frequencies.wide_hashing import MAX_PARITIES, best_parities
from local_dp.tallies import Tally


@dataclass(frozen=True)
class Best:
    """A randomizer by name and parameters, n times the variance of its estimate, why it is taken,
    and the others that were compared, best first."""

    randomizer: str
    parameters: dict[str, Parameter]
    variance: float
    of: str
    reason: str
    others: tuple[tuple[str, float], ...]

    def error(self, n: int) -> float:
        """The standard error with n clients."""
        return math.sqrt(self.variance / n)


def best_for(task: str, epsilon: float, k: int = 2) -> Best:
    """The best known randomizer for a task at this epsilon.

    "survey": the share of a yes; "frequency": the shares of k symbols; "mean": the mean in [0, 1]
    of the distribution that the clients are drawn from; "table-mean": that of the clients' own
    numbers; "mean-vector" and "ball-vector": of vectors in [-1, 1]^k and in the Euclidean unit ball
    of k dimensions, all coordinates' variances together; "strings": the shares of strings of k
    bits. Raises InputError.
    """
    check_positive_epsilon(epsilon)
    if task not in TASKS:
        raise InputError(unknown("no task", task, TASKS))
    return TASKS[task](epsilon, k)


def _survey(epsilon: float, k: int) -> Best:
    gain = response_gain(epsilon) ** 2 / 4
    others = (("hadamard", 4 * gain), ("oue", oue_variance(epsilon, 0.5)))
    reason = (
        "no randomizer of two values is better: each is randomized response, garbled (Kairouz, "
        "Oh, Viswanath 2014; limits 1, Theorem 1)"
    )
    return Best(
        "binary-rr", {"epsilon": epsilon}, gain, "a share of 1/2", reason, _ascending(others)
    )


def _frequency(epsilon: float, k: int) -> Best:
    selection, share = best_choice(epsilon, k), 1 / k
    variances = {choice.kind.name: float(choice.total) / k for choice in choices(epsilon, k)}
    least = min(variances.values())
    own = variances.pop(selection.kind.name)
    variances |= {
        "oue": oue_variance(epsilon, share),
        "sue": sue_variance(epsilon, share),
        "hadamard": response_gain(epsilon) ** 2 - share**2,
    }
    variances |= {"she": summed_variance(epsilon, share)}
    best = "the least total variance of all that are shipped"
    if own > least:
        best = (
            f"within {100 * (own / least - 1):.2g} % of the least total variance, and simpler to "
            "decode"
        )
    sets = (
        "single symbols"
        if selection.w == 1
        else f"sets of {selection.w} of {selection.order} points"
    )
    what = f"the share of one of {k} symbols, at the uniform law"
    return Best(
        selection.kind.name,
        {"epsilon": epsilon, "k": k},
        own,
        what,
        f"{best}, by {sets} (limits 2)",
        _ascending(variances.items()),
    )


def _numbers(epsilon: float, k: int, of: str) -> Best:
    variances = dict(mean_variances(epsilon, of))
    name = best_mean(epsilon, of)
    reason = (
        "first-order minimax for the mean of a law at every epsilon: a two-valued number is the "
        "hardest, and its answer is one bit (limits 1, Theorem 1)"
    )
    what = "the mean of numbers in [0, 1], 0 or 1 with equal chances"
    if of == "records":
        what = "the mean of the clients' own numbers in [0, 1]"
        reason = (
            "the least worst-case noise of the mechanisms with a closed form (limits 1), within 1 "
            "%; sampling is left out, as the numbers are those asked"
        )
    own = variances.pop(name)
    return Best(name, {"epsilon": epsilon}, own, what, reason, _ascending(variances.items()))


def _vectors(epsilon: float, d: int, body: Body) -> Best:
    check_whole("k", d, 1, MAX_DIMENSION)
    (selection, *others) = [choice for choice in vector_choices(epsilon, body, d) if choice.proven]
    choices = vector_choices(epsilon, body, d)
    # the mean square of an estimate is its variance at 0, and 1 more at norm 1
    norm, where = (0, "at 0") if body == "cube" else (1, "at norm 1")
    reason = "the least mean squared error of all that are shipped and enumerated"
    if selection.shrunk < 1:
        reason = (
            f"the vector shrunk by 1 / sqrt {d} lies in the ball, whose randomizer has {reason}"
        )
    if not choices[0].proven:
        less = 100 * (1 - (choices[0].moment - norm) / (selection.moment - norm))
        reason += (
            f"; {choices[0].name}, whose privacy is a density on paper, which clients refuse by "
            f"default, has {less:.2g} % less"
        )
    parameters: dict[str, Parameter] = {"epsilon": epsilon, "d": d, **dict(selection.settings)}
    what = (
        "the mean of vectors in "
        f"{'[-1, 1]^' if body == 'cube' else 'the unit ball of dimension '}{d}, all coordinates "
        f"together, {where}"
    )
    return Best(
        selection.name,
        parameters,
        selection.moment - norm,
        what,
        reason,
        tuple((choice.name, choice.moment - norm) for choice in others),
    )


def _strings(epsilon: float, k: int) -> Best:
    check_whole("k", k, 1, MAX_LENGTH)
    b = best_parities(epsilon, k)
    others = (
        (f"{each} {'parity' if each == 1 else 'parities'}", parities_variance(epsilon, each, 0.0))
        for each in range(1, min(k, MAX_PARITIES) + 1)
        if each != b
    )
    reason = f"{b} random parities of a string, at most {MAX_PARITIES}: 2^{b} is next to e^eps + 1"
    return Best(
        "wide-hashing",
        {"epsilon": epsilon, "length": k},
        parities_variance(epsilon, b, 0.0),
        "the share of a rare string",
        reason,
        _ascending(others),
    )


def _ascending(others: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(others, key=lambda pair: pair[1]))


TASKS: dict[str, Callable[[float, int], Best]] = {
    "survey": _survey,
    "frequency": _frequency,
    "mean": partial(_numbers, of="population"),
    "table-mean": partial(_numbers, of="records"),
    "mean-vector": partial(_vectors, body="cube"),
    "ball-vector": partial(_vectors, body="ball"),
    "strings": _strings,
}


MAX_TABLE = 1 << 21  # entries of what reports add
_CHUNK = 1 << 22
# how far from its aim an estimate may be to count as unbiased: discrete Laplace holds it to 1e-7
_EXACT = 1e-6


@dataclass(frozen=True)
class Aim:
    """A mean over individuals: one whose value is the domain's v-th adds `target`[v], shape
    (values, m). `kind` is the domain's. It is the mean `of` these individuals, whose errors are
    the noise's alone, or of the law that they come from."""

    kind: str
    target: Floats
    of: str = "population"

    @classmethod
    def share_of_ones(cls) -> "Aim":
        """The share of those whose symbol is 1, of two."""
        return cls("symbols", np.array([[0.0], [1.0]]))

    @classmethod
    def shares(cls, k: int, of: str = "population") -> "Aim":
        """The shares of k symbols."""
        return cls("symbols", np.eye(k), of)

    @classmethod
    def mean(cls, steps: int, of: str = "population") -> "Aim":
        """The mean of numbers on the lattice of multiples of 1 / steps."""
        return cls("levels", np.arange(steps + 1)[:, None] / steps, of)

    def sample(self, law: Floats) -> Floats | None:
        """The covariance of what one individual of this law adds, where it is no part of the error;
        shape (m, m)."""
        if self.of == "population":
            return None
        if self.kind == "symbols":
            return np.diag(law) - np.outer(law, law)
        mean = law @ self.target
        return np.asarray((law[:, None] * self.target).T @ self.target - np.outer(mean, mean))


@dataclass(frozen=True)
class Reports:
    """A randomizer's reports as estimates of an aim: `contributions`, shape (cells * alphabet, m),
    is what each adds, divided by their number."""

    randomizer: FiniteChannel
    aim: Aim
    contributions: Floats

    @classmethod
    def of(cls, randomizer: FiniteChannel, aim: Aim) -> "Reports | None":
        """None where the randomizer does not estimate the aim without bias, as a mean over
        reports."""
        if isinstance(randomizer, Design) and np.array_equal(aim.target, np.eye(randomizer.shares)):
            return SetReports(randomizer, aim, np.zeros((0, randomizer.shares)))
        contributions = _contributions(randomizer)
        if contributions is None:
            return None
        values = _some_values(len(aim.target))
        means = report_laws(randomizer, values) @ contributions
        targets = aim.target[values]
        if means.shape == targets.shape and np.allclose(means, targets, atol=_EXACT, rtol=0):
            return cls(randomizer, aim, contributions)
        if targets.shape[1] == 1:
            for column in np.flatnonzero(np.all(np.abs(means - targets) < _EXACT, axis=0)).tolist():
                return cls(randomizer, aim, contributions[:, [column]])
        return None

    def estimates(self, counts: Counts) -> Floats:
        """What each of several tallies, shape (..., cells * alphabet), says of the aim, shape (...,
        m)."""
        return np.asarray(counts @ self.contributions / counts.sum(axis=-1, keepdims=True))

    def noise(self, law: Floats, clients: int, runs: int, generator: np.random.Generator) -> Floats:
        """The errors of `runs` estimates of the mean of the clients themselves, who are drawn from
        this law in each run; shape (runs, m)."""
        law = _on_lattice(law, self.randomizer.domain.size)
        values = np.flatnonzero(law)
        people = generator.multinomial(clients, law[values] / law[values].sum(), size=runs)
        tallies = np.zeros((runs, self.randomizer.cells * self.randomizer.alphabet), np.int64)
        for value, count in zip(values, people.T, strict=True):
            (chances,) = report_laws(self.randomizer, np.array([value]))
            chances /= chances.sum()
            if count.mean() > chances.size:
                tallies += generator.multinomial(count, chances)
                continue
            # few clients of many values: the reports of all runs are drawn at once, and dealt out
            totals = generator.multinomial(count.sum(), chances)
            order = generator.permutation(np.repeat(np.arange(totals.size), totals))
            rows = np.repeat(np.arange(0, tallies.size, totals.size), count)
            np.add.at(tallies.ravel(), rows + order, 1)
        return self.estimates(tallies) - people @ self.aim.target[values] / clients

    def errors(self, law: Floats) -> Errors:
        """Those of one report of a client whose value has this law."""
        law = _on_lattice(law, self.randomizer.domain.size)
        return Errors.of_reports(self.contributions, self.law(law), self.aim.sample(law))

    def law(self, law: Floats) -> Floats:
        """Pr[cell, report], flattened, for this law of values; a number on another lattice is
        rounded at random to a neighbour, its mean kept."""
        law = _on_lattice(law, self.randomizer.domain.size)
        support = np.flatnonzero(law)
        chunk = max(1, _CHUNK // (self.randomizer.cells * self.randomizer.alphabet))
        chunks = np.split(support, range(chunk, len(support), chunk))
        parts = [law[some] @ report_laws(self.randomizer, some) for some in chunks]
        total: Floats = np.sum(parts, axis=0)
        total /= total.sum()
        return total

    def unfavourable(self) -> list[Errors]:
        """The errors under the least favourable laws: of shares `unfavourable_laws`, of a mean
        (variance concave) the best odds of its two extremes."""
        if self.aim.target.shape[1] > 1:
            return [self.errors(law) for law in unfavourable_laws(len(self.aim.target))]
        if self.aim.of == "records":  # all are alike, where the noise is largest
            laws = report_laws(self.randomizer, _some_values(len(self.aim.target)))
            each = [Errors.of_reports(self.contributions, law) for law in laws]
            return [max(each, key=lambda errors: float(errors.variance[0]))]
        ends = [int(np.argmin(self.aim.target)), int(np.argmax(self.aim.target))]
        laws = report_laws(self.randomizer, np.array(ends))
        (low, high) = (laws @ self.contributions[:, 0]).tolist()
        square = laws @ self.contributions[:, 0] ** 2
        rise = (square[1] - square[0]) / (high - low)
        odds = np.clip((rise - 2 * low) / (2 * (high - low)), 0, 1)
        return [Errors.of_reports(self.contributions, (1 - odds) * laws[0] + odds * laws[1])]


@dataclass(frozen=True)
class SetReports(Reports):
    """Those of an oracle by a block design, which are too many for a table: their errors follow
    from how often sets hold a symbol, and two."""

    def estimates(self, counts: Counts) -> Floats:
        """One tally at a time, which stays in cache."""
        oracle = self.randomizer
        assert isinstance(oracle, Design)
        return np.apply_along_axis(
            lambda each: oracle.values(each.reshape(oracle.cells, -1)), -1, counts
        )

    def errors(self, law: Floats) -> Errors:
        assert isinstance(self.randomizer, Design)
        sample = self.aim.sample(law)
        return set_errors(self.randomizer.epsilon, *self.randomizer.sets, law, sample)


def _on_lattice(law: Floats, size: int) -> Floats:
    """A law of numbers in [0, 1] on a lattice of another size, the mean unchanged."""
    if size == len(law):
        return law
    place = np.arange(len(law)) * (size - 1) / (len(law) - 1)
    below = np.minimum(np.floor(place).astype(np.int64), size - 2)
    part = place - below
    lattice = np.zeros(size)
    np.add.at(lattice, below, law * (1 - part))
    np.add.at(lattice, below + 1, law * part)
    return lattice


def _some_values(size: int) -> Counts:
    """All of a small domain; of a large one the ends and some between."""
    if size <= 1024:
        return np.arange(size, dtype=np.int64)
    return np.unique(np.linspace(0, size - 1, 33).astype(np.int64))


def report_laws(randomizer: FiniteChannel, values: Counts) -> Floats:
    """Pr[cell, report | value], shape (values, cells * alphabet)."""
    cells = np.arange(randomizer.cells)[:, None]
    reports = np.arange(randomizer.alphabet)
    symbols = np.asarray(values, dtype=np.int64)[:, None, None] + randomizer.domain.low
    return (
        np.exp(randomizer.log_probability(reports, symbols, cells)).reshape(len(values), -1)
        / randomizer.cells
    )


def _contributions(randomizer: FiniteChannel) -> Floats | None:
    """What each report alone is an estimate of; None where there are too many, or an estimate is
    not the mean of its reports'."""
    size = randomizer.cells * randomizer.alphabet
    if size > MAX_TABLE:
        return None

    def estimate(counts: Counts) -> Floats:
        return np.atleast_1d(randomizer.estimate(Tally(counts)).value)

    shape = randomizer.cells, randomizer.alphabet
    return (
        single_estimates(estimate, shape)
        if size * len(estimate(np.ones(shape, dtype=np.int64))) <= MAX_TABLE
        else None
    )
