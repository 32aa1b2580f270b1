"""The aggregate tier of `local-dp bench`: tallies of 10^12 clients drawn from their law, beside as many multinomial draws by numpy alone."""

import numpy as np

from local_dp.experiments.bench.speeds import Speed, best_of
from local_dp.experiments.text.screen import SCREEN
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.frequencies.local_hashing import OLH
from local_dp.randomizers.frequencies.subset_selection import SubsetSelection
from local_dp.randomizers.frequencies.unary import OUE
from local_dp.randomizers.places import BitVector
from local_dp.randomizers.signs.binary_rr import BinaryRR

CLIENTS = 10**12
ASKED = 0.05  # seconds


def aggregate_speeds() -> list[Speed]:
    """Each with clients of all its values."""
    drawn: list[FiniteChannel | BitVector] = [
        BinaryRR(1.0),
        GRR(1.0, k=1024),
        OUE(1.0, k=128),
        Hadamard(1.0, k=128),
        SubsetSelection(1.0, k=128),
        OLH(1.0, k=128),
    ]
    return [_drawn(randomizer) for randomizer in drawn]


def _drawn(randomizer: FiniteChannel | BitVector) -> Speed:
    values = randomizer.domain.values().tolist()
    held = dict.fromkeys(values, CLIENTS // len(values))
    cells = randomizer.empty().counts.size
    generator = np.random.default_rng(0)
    SCREEN.working(f"measuring a tally of 10^12 by {randomizer.name}")
    randomizer.draw_tally(held, generator)  # laws that are kept are computed once
    seconds = best_of(lambda: randomizer.draw_tally(held, generator))
    bare = best_of(lambda: generator.multinomial(CLIENTS // len(values), np.full(cells, 1 / cells), len(values)))
    return Speed(f"{randomizer.name}, k = {len(values)}: tally of 10^12", seconds, "s", bare, ASKED, seconds <= ASKED)
