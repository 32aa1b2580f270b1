"""Every registered randomizer has a closed-form variance, which is that of its channel under every law tried, and of its reports within 3 %."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.verification.decoding import law_of, single_estimates
from tests.support.long import short
from tests.support.theory.closed_forms import BY_TABLE, Known
from tests.support.theory.variances import Sample

EPSILON = 1.0
MANY, FEW = 400_000, 60_000  # clients: of a finite channel, by its tally, and of others, one by one
NEEDED = {  # of others: what makes `SURE` standard errors 3 %, and as much again where that is little
    "d-bit-flip": 120_000,
    "she": 140_000,
    "wide-hashing": 40_000,
    "nearest-direction": 20_000,
    **dict.fromkeys(("random-coordinate", "sampled-signs"), 36_000),  # their twins show by their bias
    **dict.fromkeys(("privunit", "projunit", "count-mean-sketch"), 12_000),
}
DEAR = ("d-bit-flip", "she", "duchi-vector", "wide-hashing", "nearest-direction", "sampled-signs", "projunit", "privunit", "pckv-ue")
ROUNDING = 1e-4  # of what a report stands for, in fixed point
SURE = 4.5  # standard errors that 3 % must be: the seed is fixed, and a correct randomizer misses with probability 7e-6 for each of some estimates


@cache
def known(name: str) -> Known:
    """The searched laws are made once."""
    return Known.of(name, EPSILON)


def measured(randomizer: Randomizer, honest: Known, law: int) -> None:
    """Reports of clients drawn from the law vary as the closed form says within 3 %, every estimate or all coordinates together, about what they estimate.

    Raises AssertionError.
    """
    n = NEEDED.get(honest.randomizer.name, MANY if isinstance(randomizer, FiniteChannel) else FEW)
    values = honest.values[np.random.default_rng(8).choice(len(honest.values), n, p=honest.laws[law])]
    sample, closed = Sample.of(randomizer, values, honest.randomizer), honest.variances[law]
    each, _ = sample.variances(total=False)
    assert (abs(sample.value - honest.means[law]) <= 6 * np.sqrt(each / n) + ROUNDING).all(), f"biased: {sample.value} for {honest.means[law]}"
    seen, error = sample.variances(total=len(closed) < len(each))
    uncertain = closed > 1e-9  # the last prefix sum is 1
    assert (seen[~uncertain] < 1e-9).all()
    assert (SURE * error[uncertain] < 0.03 * closed[uncertain]).all(), f"{n} clients are too few"
    assert (abs(seen - closed)[uncertain] < 0.03 * closed[uncertain]).all(), f"variances {seen} for {closed}"


def measured_twice(randomizer: Randomizer, honest: Known) -> None:
    """Under the worst law, and where all clients hold the last value."""
    for law in (honest.worst, len(honest.values) - 1):
        measured(randomizer, honest, law)


def by_table(honest: Known) -> tuple[Floats, Floats] | None:
    """The means and the variances under every law by the channel's own table, None where there is none or where an estimate is a quotient."""
    randomizer = honest.randomizer
    if not isinstance(randomizer, FiniteChannel) or randomizer.name == "characters":
        return None
    laws, singles = np.stack([law_of(randomizer, int(value)) for value in honest.values]), single_estimates(randomizer)
    means, squares = (np.einsum("vcw,cwp->vp", laws, singles**power) for power in (1, 2))
    return honest.laws @ means, honest.laws @ squares - (honest.laws @ means) ** 2


@pytest.mark.parametrize("name", RANDOMIZERS.built_in)
def test_the_closed_form_is_the_variance_of_the_channel(name: str) -> None:
    """Of a finite channel, under each law of the search, so that the worst of them is the worst by the table too: that of two values at any odds."""
    honest = known(name)
    table = by_table(honest)
    if table is None:
        assert name not in BY_TABLE
        return
    np.testing.assert_allclose(honest.means, table[0], atol=1e-9)
    np.testing.assert_allclose(honest.variances, table[1], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("which", short(["worst", "last"], lambda which: which == "worst"))
@pytest.mark.parametrize("name", short(RANDOMIZERS.built_in, lambda name: name not in DEAR))
def test_reports_have_the_closed_form_variance(name: str, which: str) -> None:
    """Within 3 %, under the law with the largest variance that was found, and where all clients hold the last value."""
    honest = known(name)
    measured(honest.randomizer, honest, honest.worst if which == "worst" else len(honest.values) - 1)


SHAPED = {"discrete-gaussian", "piecewise", "hybrid", "square-wave", "she"}  # have other reports at another epsilon


TWINS = [name for name in RANDOMIZERS.built_in if name not in SHAPED]


@pytest.mark.parametrize("name", short(TWINS, lambda name: name in ("grr", "sue", "one-bit-mean", "olh")))
def test_wrong_twins_show(name: str) -> None:
    """Reports of a twin that spends four fifths of what is declared fail the comparison under one of the two laws."""
    honest = known(name)
    twin = replace(honest.randomizer, epsilon=0.8 * EPSILON)
    with pytest.raises(AssertionError, match=r"biased|variances"):
        measured_twice(twin, honest)
