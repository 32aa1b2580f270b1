"""Parity from a noisy sum of labelled examples: what a shuffler with blanket messages, or an
aggregator that adds noise, passes on."""

from functools import lru_cache

import numpy as np

from local_dp.arrays import Counts, Floats, Ints
from local_dp.bounds.parity import parity_cells_clients
from local_dp.checks import check_dimension
from local_dp.cube import walsh_hadamard
from local_dp.shuffle.histogram import BlanketHistogram, Target, multi_message

MAX_DIMENSION = 10  # of 2^(d + 1) symbols
_FIRST = 1.2  # times the variance of normal noise: where the search for a blanket starts


def parity_of_cells(cells: Counts | Floats) -> Ints:
    """The parity that most agrees with counts of the cells 2 x + 1(y = -1), shape (2^(d + 1), ...),
    the least of those that tie."""
    return np.asarray(np.argmax(walsh_hadamard(cells[0::2] - cells[1::2]), axis=0))


@lru_cache
def blanket_for_parity(
    d: int, epsilon: float, delta: float, beta: float, normal: float
) -> tuple[int, BlanketHistogram]:
    """How many clients find a parity of d bits except with probability beta, by the normal
    approximation, and the fewest blanket messages for so many.

    The blanket's variance on a cell hardly depends on the number of clients; `normal` is that of
    normal noise, where the search starts.
    """
    check_dimension(d, MAX_DIMENSION)
    clients = parity_cells_clients(d, _FIRST * normal, beta)
    for _ in range(2):
        histogram = multi_message(2 << d, Target(clients, epsilon, delta))
        clients = parity_cells_clients(d, clients**2 * histogram.variance(clients), beta)
    return clients, multi_message(2 << d, Target(clients, epsilon, delta))
