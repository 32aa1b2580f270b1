"""People with several rows: as many rows kept of each, and what a release that protects one row
loses about all rows of a person."""

import math
from fractions import Fraction

import numpy as np

from local_dp.arrays import Column, Ints
from local_dp.checks import check_whole
from local_dp.errors import InputError
from local_dp.loss import Approximate, Loss, Pure, exp_epsilon

MOST_ROWS = 1000
_UPWARDS = 1 + Fraction(1, 10**49)  # `exp_epsilon` is just below


def kept_rows(person: Column, rows: int) -> Ints:
    """The places of `rows` rows of each person: the first ones, in turn again for a person with
    fewer. O(n log n).

    The number of people is public, and so is that of rows. One person replaced changes at most
    `rows` rows.
    """
    check_whole("rows", rows, 1, MOST_ROWS)
    order = np.argsort(person, kind="stable")
    _, first, count = np.unique(person[order], return_index=True, return_counts=True)
    turn = np.arange(rows) % np.minimum(count, rows)[:, None]
    return np.asarray(order[(first[:, None] + turn).ravel()], dtype=np.int64)


def loss_of_group(loss: Loss, size: int) -> Loss:
    """What a loss about one row is about `size` rows: size eps, and delta (1 + e^eps + ... +
    e^((size - 1) eps)), rounded up.

    Source: Dwork, Roth 2014, Theorem 2.2, with each step of the way from one database to the other.
    """
    if isinstance(loss, Pure):
        return Pure(size * loss.nano)
    return Approximate(size * loss.nano, math.ceil(loss.atto * _steps(loss.nano, size)))


def loss_of_row(loss: Loss, size: int) -> Loss:
    """The largest loss about one row that is within `loss` about `size` rows. Raises InputError
    where it is nothing."""
    nano = loss.nano // size
    atto = math.floor(loss.atto / _steps(nano, size))
    if not nano or (loss.atto and not atto):
        raise InputError(
            f"{loss} for {size} rows of a person leaves too little for one row; give more, or "
            "fewer rows"
        )
    return Approximate(nano, atto) if loss.atto else Pure(nano)


def _steps(nano: int, size: int) -> Fraction:
    return sum((exp_epsilon(place * nano) for place in range(size)), Fraction(0)) * (
        _UPWARDS if nano else 1
    )
