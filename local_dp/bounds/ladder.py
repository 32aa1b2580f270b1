"""How many clients follow a ladder of k levels: asked once, in turn, or again (limits 12.1)."""

import math
from itertools import accumulate

from local_dp.bounds.channels import report_capacity
from local_dp.bounds.normal import normal_tail
from local_dp.bounds.parity import entropy
from local_dp.errors import InputError
from local_dp.optimise import least_clients


def group_lengths(k: int, rounds: int) -> tuple[int, ...]:
    """k levels in so many groups of consecutive ones, as equal as they can be, the longer ones first. Raises InputError unless 1 <= rounds <= k."""
    if type(rounds) is not int or not 1 <= rounds <= k:
        raise InputError(f"rounds is {rounds!r}; give a whole number from 1 to k = {k}")
    return tuple(k // rounds + (place < k % rounds) for place in range(rounds))


def ladder_success(k: int, epsilon: float, rounds: int, each: float, below: bool = False, *, apart: bool = False) -> float:
    """About the probability that the majority of every level is right, if `each` clients are asked in each round, by answers of this epsilon.

    A round asks about the path to here and on from here at random, so at depth d below a part 2^-d of its clients are asked about the right node; with `below`
    it asks about all the levels that are left, and later rounds have its answers too; without, about the levels of its own group. prod Phi(m t / sqrt(v)) over
    levels, t = tanh(eps/2) / k, m the answers about the right node, and v their variance, 1 - t^2 (d^2 + g - d) each, where g levels are asked about: the d
    levels above all confirm the path, and the others confirm or deny as likely. With `apart` they are taken for coins, of variance 1 - t^2: so it would be if
    each level's answers were flipped by a public coin of its own. The normal law for each level's sum, levels as if independent.
    """
    lean = math.tanh(epsilon / 2) / k
    lengths = group_lengths(k, rounds)
    starts = list(accumulate(lengths, initial=0))[:-1]
    ends = [k] * rounds if below else list(accumulate(lengths))
    right = 1.0
    for level in range(k):
        told = [(each * 2.0 ** (start - level), level - start, end - start) for start, end in zip(starts, ends, strict=True) if start <= level < end]
        answers = sum(many for many, _, _ in told)
        variance = sum(many * (1 - lean**2 * (1 if apart else depth**2 + asked - depth)) for many, depth, asked in told)
        right *= normal_tail(-answers * lean / math.sqrt(variance))
    return right


def ladder_clients(k: int, epsilon: float, beta: float, rounds: int, *, again: bool = False, below: bool = False, apart: bool = False) -> int:
    """The least n for which `ladder_success` is at least 1 - beta: all n are asked in every round (`again`), or a fresh n / rounds in each.

    `epsilon` is that of one answer: of all together in a session, a part of it where rounds are charged by the sum.
    """
    return least_clients(lambda n: ladder_success(k, epsilon, rounds, n if again else n / rounds, below, apart=apart) >= 1 - beta)


def ladder_one_round_least(k: int, epsilon: float, beta: float) -> float:
    """Proven: in one round nobody finds the path with probability 1 - beta from fewer: k 2^(k-1) (ln 2 - h(beta)) / `report_capacity` (limits 12.1)."""
    return k * 2.0 ** (k - 1) * (math.log(2) - entropy(beta)) / report_capacity(epsilon)
