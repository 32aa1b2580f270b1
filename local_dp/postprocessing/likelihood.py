"""The distribution of values under which the reports are likeliest, by expectation maximisation."""

from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Floats
from local_dp.checks import check_positive, check_whole
from local_dp.randomizers.finite import FiniteChannel, report_law
from local_dp.tallies import Tally

_SMOOTHER = np.array([0.25, 0.5, 0.25])


@dataclass(frozen=True)
class Likeliest:
    """A law of values, shape (domain size,), the mean log-likelihood of a report under it, in nats, and the rounds it took."""

    law: Floats
    log_likelihood: float
    rounds: int


@dataclass(frozen=True)
class ExpectationMaximisation:
    """Maximises the likelihood of the reports over all laws of values, from the uniform one on.

    A post-processing step: it costs no privacy, and it is NOT unbiased: no share is below 0, so small ones come out too large; there is no standard error.
    It ends when a round gains less than `gain` nats a report, or after `rounds`. `smooth` averages neighbours (1/4, 1/2, 1/4) after each round: for numbers,
    whose unsmoothed solution has spikes where few reports decide (EMS). Source: Li et al. 2020, Section 5.5; Dempster, Laird, Rubin 1977.
    """

    gain: float = 1e-9
    rounds: int = 10_000
    smooth: bool = False

    def __post_init__(self) -> None:
        check_positive("the gain of a round", self.gain)
        check_whole("rounds", self.rounds, 1, 1 << 20)

    def __call__(self, randomizer: FiniteChannel, tally: Tally) -> Likeliest:
        """The law of the clients' values. Raises InputError if there is no report."""
        weights = tally.weights.ravel() / tally.answered
        chances = np.stack([report_law(randomizer, value) for value in randomizer.domain.values().tolist()])
        seen = weights > 0
        weights, chances = weights[seen], chances[:, seen]
        law, last, done = np.full(len(chances), 1 / len(chances)), -np.inf, 0
        while done < self.rounds:
            done += 1
            mixed = law @ chances
            likelihood = float(weights @ np.log(mixed))
            if likelihood - last < self.gain:
                break
            last = likelihood
            law = law * (chances @ (weights / mixed))
            law = _smoothed(law) if self.smooth else law / law.sum()
        return Likeliest(law, float(weights @ np.log(law @ chances)), done)


def _smoothed(law: Floats) -> Floats:
    """Averages with both neighbours; the ends with their own mirror image."""
    mixed: Floats = np.convolve(np.pad(law, 1, mode="edge"), _SMOOTHER, mode="valid")
    mixed /= mixed.sum()
    return mixed
