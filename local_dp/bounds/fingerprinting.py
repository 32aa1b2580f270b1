"""Lengths of fingerprinting codes, in bits; `failure` is the probability that anybody innocent is accused."""

import math
from fractions import Fraction

from local_dp.checks import check_share, check_whole


def tardos_length(coalition: int, users: int, failure: float) -> int:
    """100 c^2 ln(N / failure): Tardos 2008, for his own accusation."""
    return _squared(100, coalition, users, failure)


def traced_length(coalition: int, users: int, failure: float) -> int:
    """6 c^2 ln(N / failure): enough for accusations by p-value against every pirate that was tried (`attacks.pirates`); measured, not proved."""
    return _squared(6, coalition, users, failure)


def _squared(factor: int, coalition: int, users: int, failure: float) -> int:
    check_whole("the coalition", coalition, 1, 1 << 12)
    check_whole("the number of users", users, coalition, 1 << 24)
    check_share("failure", failure)
    return math.ceil(factor * coalition**2 * math.log(users / failure))


def boneh_shaw_block(users: int, failure: float) -> int:
    """n^2 ln(n / failure) + 1: each innocent is accused with probability e^(-B^2 / (n^2 (B + 1))) at most (`boneh_shaw_false` is it exactly).

    Serfling's bound (1974) for B draws without replacement out of 2 B, with a deviation of 1 / (2 n); Hoeffding's, which lets them be replaced, asks for twice
    as many.
    """
    check_whole("the number of users", users, 2, 1 << 10)
    check_share("failure", failure)
    return math.ceil(users**2 * math.log(users / failure)) + 1


def boneh_shaw_false(users: int, block: int) -> Fraction:
    """The most that the word's author can make of Pr[user i is accused] without i's row, exactly: the worst hypergeometric tail.

    He cannot tell the 2 B columns of blocks i - 1 and i apart, and puts a one into T of them: h of these fall into block i with probability C(B, h) C(B, T -
    h) / C(2B, T), and i is accused only if n (2 h - T) >= B.
    """
    return max(_tail(users, block, ones) for ones in range(2 * block + 1))


def _tail(users: int, block: int, ones: int) -> Fraction:
    least = -(-(block + users * ones) // (2 * users))
    ways = sum(math.comb(block, high) * math.comb(block, ones - high) for high in range(max(least, 0, ones - block), min(block, ones) + 1))
    return Fraction(ways, math.comb(2 * block, ones))
