"""`parity-shuffled` is shown as it stands; wrong noise, too small a blanket and lost messages are
not."""

from dataclasses import replace

import numpy as np
import pytest

from local_dp.bounds.parity import parity_cells_clients
from local_dp.experiments.claims.local import parity_shuffled
from local_dp.experiments.claims.local.parity_shuffled import (
    EXPERIMENT,
    Batches,
    Blanketed,
    Summed,
    cell_variance,
)
from local_dp.populations.parity import ParityPopulation
from local_dp.queries.examples import ParityExample
from local_dp.shuffle.central import Shuffler
from local_dp.shuffle.parity import blanket_for_parity, parity_of_cells
from tests.support.runs.quick import Quick, Twin
from tests.support.wrong import wrong

QUICK, BLANKET, VARIANCE, PASSED = (
    Quick(EXPERIMENT),
    blanket_for_parity,
    cell_variance(),
    Shuffler.passed,
)


def thin(d: int, *terms: float) -> object:
    """A third of the blanket messages."""
    clients, histogram = BLANKET(d, *terms)
    return clients, replace(histogram, weight=histogram.weight // 3)


NOISY = {
    "summed": lambda d, n, runs, generator: (
        parity_shuffled.drawn_cells(d, n, runs, generator)
        + generator.normal(0, VARIANCE, (2 << d, runs))
    )
}
LOSING = {"passed": lambda shuffler, reports: PASSED(shuffler, reports)[::2]}
TWINS = [
    Twin("too much noise", parity_shuffled, NOISY, (Summed,), "the noisy sum needs"),
    Twin(
        "too small a blanket",
        parity_shuffled,
        {"blanket_for_parity": thin},
        (Blanketed,),
        "behind a shuffler",
    ),
    Twin(
        "a shuffler that loses half of the messages",
        Shuffler,
        LOSING,
        (Batches,),
        "and client by client",
    ),
]
test_shown, test_wrong_twins_are_not_shown = QUICK.tests(TWINS)


def test_the_numbers_of_a_noisy_sum() -> None:
    """By the normal approximation at (1, 1e-9), for 90 %; the noise of a cell is that of the
    Gaussian mechanism for two moves by one."""
    assert pytest.approx(60.396, abs=1e-3) == VARIANCE
    assert [parity_cells_clients(d, VARIANCE, 0.1) for d in (8, 12, 16, 20)] == [
        746,
        3508,
        15_831,
        69_720,
    ]


@pytest.mark.parametrize("r", [0, 5, 15])
def test_without_noise_the_parity_is_found(r: int) -> None:
    """From the counts of 200 examples of 4 bits, alone and in a batch of runs."""
    population, query = ParityPopulation(4, r, 200, 1), ParityExample(4)
    cells = np.bincount(population.values(query, 0, 200), minlength=32)
    assert int(parity_of_cells(cells)) == r
    assert parity_of_cells(np.stack([cells, cells[::-1]], axis=1)).shape == (2,)


@wrong(
    "local_dp.shuffle.parity:blanket_for_parity",
    "(clients, multi_message(2 << d, Target(clients, epsilon, delta)))",
    "(clients, multi_message(2 << d, Target(clients, epsilon, 1000.0 * delta)))",
    "the blanket that runs is thinner than the stated loss needs",
)
def test_the_blanket_keeps_to_its_target() -> None:
    """At most (1, 1e-9) for so many clients; not with a tenth of it less."""
    clients, histogram = blanket_for_parity(4, 1.0, 1e-9, 0.1, VARIANCE)
    lighter = replace(histogram, weight=int(0.9 * histogram.weight)).epsilon(clients, 1e-9)[0]
    assert histogram.epsilon(clients, 1e-9)[1] <= 1 < lighter
