"""Where a search for a quantile ends: how far off in rank, beside the law that is fitted to it in
local_dp/bounds/quantiles.py.

`python -m tests.support.theory.search_law` prints a table (some minutes): POOLED, APART, MERGED and
TAIL were chosen by it, as round numbers that come closest.
"""

import math

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.quantiles import search_reach
from local_dp.bounds.response import response_gain
from local_dp.protocols.search.quantiles import Quantiles
from tests.support.theory.quantiles import located

BETAS = (0.05, 0.02, 0.01)
CASES = (
    ("flat", 4090, 0.3),
    ("flat", 1022, 0.3),
    ("bell", 1022, 0.1),
    ("bell", 1022, 0.25),
    ("bell", 1022, 0.5),
    ("flat", 254, 0.3),
    ("bell", 254, 0.5),
)


def law_of(shape: str, bins: int) -> Floats:
    """Symbols of a grid, nobody outside."""
    place = (np.arange(bins) + 0.5) / bins
    weight = np.ones(bins) if shape == "flat" else np.exp(-(((place - 0.4) / 0.15) ** 2) / 2)
    return np.concatenate([[0.0], weight / weight.sum(), [0.0]])


def reaches(
    law: Floats, share: float, clients: int, epsilon: float, runs: int, seed: int = 1
) -> tuple[float, list[float]]:
    """The coarseness, and for each of BETAS within how many standard errors of a question the
    places lie. The law of the places is known at the ends of the cells alone: joined by straight
    lines."""
    protocol, generator = (
        Quantiles(at=(str(share),), bins=len(law) - 2, rounds="several"),
        np.random.default_rng(seed),
    )
    found = np.bincount(
        [located(protocol, law, clients, epsilon, generator).symbol[0] for _ in range(runs)],
        minlength=len(law),
    )
    chances, away = (
        np.concatenate([[0.0], np.cumsum(found) / runs]),
        np.concatenate([[0.0], np.cumsum(law)]) - share,
    )
    error = math.sqrt((response_gain(epsilon) ** 2 / 4 - (share - 0.5) ** 2) / clients)
    distance = np.linspace(0, 12 * error, 2401)
    beyond = 1 - np.interp(distance, away, chances) + np.interp(-distance, away, chances)
    own = int(np.searchsorted(away, 0.0))
    return float(away[own] - away[own - 1]) / error, [
        float(distance[np.argmax(beyond <= beta)]) / error for beta in BETAS
    ]


def main(runs: int = 4000) -> None:
    print(
        "| law | bins | quantile | coarseness | "
        + " | ".join(f"beta {beta:g}, fitted" for beta in BETAS)
        + " |\n|---|---|---|---|"
        + "---|" * len(BETAS)
    )
    for shape, bins, share in CASES:
        coarseness, seen = reaches(law_of(shape, bins), share, 36_000, 1.0, runs)
        told = " | ".join(
            f"{reach:.2f}, {search_reach(beta, coarseness):.2f}"
            for reach, beta in zip(seen, BETAS, strict=True)
        )
        print(f"| {shape} | {bins:,} | {share:g} | {coarseness:.2f} | {told} |", flush=True)


if __name__ == "__main__":
    main()
