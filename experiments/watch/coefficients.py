"""The Fourier coefficients of the label that the rounds of masked parity have estimated so far."""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from local_dp.arrays import Floats
from local_dp.cube import places_of, walsh_hadamard
from local_dp.masked.population import NULL_SHARE
from local_dp.masked.queries import MaskedBent, MaskedBit, MaskedFunction, MaskedIndex, MaskedList, MaskedParity
from local_dp.oracles.local.asked import LocalQuery
from local_dp.randomizers.frequencies.signed import SignedOracle
from local_dp.tallies import Estimate, Tally

Bar: TypeAlias = tuple[str, float, float]  # label, coefficient, standard error


def coefficients(ask: LocalQuery, tally: Tally) -> list[Bar]:
    """The coefficients that one ask of masked parity estimates, each on the scale of the label's sign; none of another ask."""
    return list(_bars(ask, tally))


def _bars(ask: LocalQuery, tally: Tally) -> Iterator[Bar]:
    query, randomizer = ask.query, ask.randomizer
    if isinstance(randomizer, SignedOracle) and isinstance(query, MaskedIndex | MaskedParity):
        labels = [f"bit {place} of r" for place in range(query.d)] if isinstance(query, MaskedIndex) else [f"parity {query.r:#x}"]
        yield from _labelled(labels, randomizer.estimate(tally, NULL_SHARE))
    elif isinstance(randomizer, SignedOracle) and isinstance(query, MaskedList | MaskedBent):
        estimate = randomizer.estimate(tally)
        if isinstance(query, MaskedList) or query.told == query.d:  # or else it is a bent function that is multiplied by each parity
            yield from _spectrum(query.vectors(), estimate)
        positions = range(query.d) if isinstance(query, MaskedBent) else places_of(query.asked)
        yield from _labelled([f"bit {place} of r" for place in positions], estimate, query.listed)
    elif isinstance(query, MaskedBit | MaskedFunction):
        name = f"bit {query.j} of r" if isinstance(query, MaskedBit) else "parity of r"
        estimate = randomizer.estimate(tally)
        shares, errors = np.atleast_1d(estimate.value), np.atleast_1d(estimate.standard_error)
        yield name, float(2 * shares[-1] - 1), float(2 * errors[-1])  # of the share of +1


def _labelled(labels: list[str], estimate: Estimate, first: int = 0) -> Iterator[Bar]:
    values, errors = estimate.value[first:], estimate.standard_error[first:]
    yield from zip(labels, values.tolist(), errors.tolist(), strict=True)


def _spectrum(vectors: list[int], estimate: Estimate) -> Iterator[Bar]:
    """One coefficient for each parity on the list: the transform of the means by symbol. A report counts towards one parity alone, hence the larger error."""
    listed = len(vectors)
    spectrum: Floats = walsh_hadamard(estimate.value[:listed])
    error = float(estimate.standard_error[:listed].max()) * listed**0.5
    for vector, value in zip(vectors, spectrum.tolist(), strict=True):
        yield f"parity {vector:#x}", value, error
