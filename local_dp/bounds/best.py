"""The best known randomizer for a task, by closed form, with its reason and what the others cost."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from local_dp.bounds.frequencies import oue_variance, parities_variance, sue_variance, summed_variance
from local_dp.bounds.numbers import hybrid_variance, piecewise_variance, staircase_variance
from local_dp.bounds.response import check_positive_epsilon, response_gain
from local_dp.bounds.vectors import Body, vector_choices
from local_dp.checks import check_whole
from local_dp.domains import MAX_DIMENSION, MAX_LENGTH, Parameter
from local_dp.errors import InputError, unknown
from local_dp.randomizers.frequencies.best import best_choice, choices
from local_dp.randomizers.frequencies.wide_hashing import best_parities


@dataclass(frozen=True)
class Best:
    """A randomizer by name and parameters, n times the variance of its estimate, why it is taken, and the others that were compared, best first."""

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

    "survey": the share of a yes; "frequency": the shares of k symbols; "mean": the mean in [0, 1] of the distribution that the clients are drawn from;
    "table-mean": that of the clients' own numbers; "mean-vector" and "ball-vector": of vectors in [-1, 1]^k and in the Euclidean unit ball of k dimensions, all
    coordinates' variances together; "strings": the shares of strings of k bits. Raises InputError.
    """
    check_positive_epsilon(epsilon)
    if task not in TASKS:
        raise InputError(unknown("no task", task, TASKS))
    return TASKS[task](epsilon, k)


def _survey(epsilon: float, k: int) -> Best:
    gain = response_gain(epsilon) ** 2 / 4
    others = (("hadamard", 4 * gain), ("oue", oue_variance(epsilon, 0.5)))
    reason = "no randomizer of two values is better: each is randomized response, garbled (Kairouz, Oh, Viswanath 2014; limits 1, Theorem 1)"
    return Best("binary-rr", {"epsilon": epsilon}, gain, "a share of 1/2", reason, _sorted(others))


def _frequency(epsilon: float, k: int) -> Best:
    chosen, share = best_choice(epsilon, k), 1 / k
    known = {choice.kind.name: float(choice.total) / k for choice in choices(epsilon, k)}
    least, own = min(known.values()), known.pop(chosen.kind.name)
    known |= {"oue": oue_variance(epsilon, share), "sue": sue_variance(epsilon, share), "hadamard": response_gain(epsilon) ** 2 - share**2}
    known |= {"she": summed_variance(epsilon, share)}
    best = "the least total variance of all that are shipped"
    if own > least:
        best = f"within {100 * (own / least - 1):.2g} % of the least total variance, and simpler to decode"
    sets = "single symbols" if chosen.w == 1 else f"sets of {chosen.w} of {chosen.order} points"
    what = f"the share of one of {k} symbols, at the uniform law"
    return Best(chosen.kind.name, {"epsilon": epsilon, "k": k}, own, what, f"{best}, by {sets} (limits 2)", _sorted(known.items()))


def _mean(epsilon: float, k: int) -> Best:
    gain = response_gain(epsilon) ** 2 / 4
    others = (("hybrid", (hybrid_variance(epsilon) + 1) / 4), ("piecewise", (piecewise_variance(epsilon, 1.0) + 1) / 4))
    reason = "minimax for the mean of a distribution at every epsilon: a two-valued number is the hardest, and its answer is one bit (limits 1, Theorem 1)"
    return Best("one-bit-mean", {"epsilon": epsilon}, gain, "the mean of numbers in [0, 1], 0 or 1 with equal chances", reason, _sorted(others))


def _table_mean(epsilon: float, k: int) -> Best:
    known = {"hybrid": hybrid_variance(epsilon), "one-bit-mean": response_gain(epsilon) ** 2, "piecewise": piecewise_variance(epsilon, 1.0)}
    known["staircase"] = staircase_variance(epsilon)
    name = min(known, key=lambda each: (known[each], each != "one-bit-mean"))
    others = ((each, variance / 4) for each, variance in known.items() if each != name)
    reason = "the least worst-case noise of the mechanisms with a closed form (limits 1); sampling is left out, as the numbers are those asked"
    return Best(name, {"epsilon": epsilon}, known[name] / 4, "the mean of the clients' own numbers in [0, 1]", reason, _sorted(others))


def _vectors(epsilon: float, d: int, body: Body) -> Best:
    check_whole("k", d, 1, MAX_DIMENSION)
    (chosen, *others), told = [choice for choice in vector_choices(epsilon, body, d) if choice.proven], vector_choices(epsilon, body, d)
    reason = "the least mean squared error of all that are shipped and enumerated"
    if chosen.shrunk < 1:
        reason = f"the vector shrunk by 1 / sqrt {d} lies in the ball, whose randomizer has {reason}"
    if not told[0].proven:
        less = 100 * (1 - told[0].moment / chosen.moment)
        reason += f"; {told[0].name}, whose privacy is a density on paper, which clients refuse by default, has {less:.2g} % less"
    parameters: dict[str, Parameter] = {"epsilon": epsilon, "d": d, **dict(chosen.settings)}
    what = f"the mean of vectors in {'[-1, 1]^' if body == 'cube' else 'the unit ball of dimension '}{d}, all coordinates together, at 0"
    return Best(chosen.name, parameters, chosen.moment, what, reason, tuple((choice.name, choice.moment) for choice in others))


def _strings(epsilon: float, k: int) -> Best:
    check_whole("k", k, 1, MAX_LENGTH)
    b = best_parities(epsilon, k)
    others = ((f"{each} {'parity' if each == 1 else 'parities'}", parities_variance(epsilon, each, 0.0)) for each in range(1, min(k, 64 // k) + 1) if each != b)
    reason = f"{b} random parities of a string: 2^{b} is next to e^eps + 1, as far as the coin's 64 bits reach"
    return Best("wide-hashing", {"epsilon": epsilon, "length": k}, parities_variance(epsilon, b, 0.0), "the share of a rare string", reason, _sorted(others))


def _sorted(others: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(others, key=lambda pair: pair[1]))


TASKS: dict[str, Callable[[float, int], Best]] = {
    "survey": _survey,
    "frequency": _frequency,
    "mean": _mean,
    "table-mean": _table_mean,
    "mean-vector": partial(_vectors, body="cube"),
    "ball-vector": partial(_vectors, body="ball"),
    "strings": _strings,
}
