"""PrivUnit and ProjUnit: caps as the density allows, closed forms, projections that shorten as uniform ones do, and no proof that clients take."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from local_dp.arrays import Floats, Words
from local_dp.bounds.means import best_privunit
from local_dp.cube import walsh_hadamard
from local_dp.errors import RefusedError
from local_dp.noise import public_coins, stream_key
from local_dp.randomizers.evidence import check_loss
from local_dp.randomizers.vectors.privunit import PrivUnit
from local_dp.randomizers.vectors.projunit import ProjUnit, mean_length, projunit_moment, projunit_on_axis
from local_dp.verification.audit import audit

COINS = stream_key("coins", 7, 1)


@dataclass(frozen=True, kw_only=True)
class Overspent(PrivUnit):
    """Chooses the cap as if it had twice the epsilon."""

    @property
    def threshold(self) -> int:
        return int(self.cap.chosen(2 * self.epsilon) * 2.0**64)


def test_privunit_is_no_proof() -> None:
    """Clients refuse it by default and take it if their policy does; the audit has nothing to enumerate, finds no violation, and one where there is one."""
    with pytest.raises(RefusedError) as refused:
        check_loss(PrivUnit(1.0))
    assert refused.value.code == "evidence"
    check_loss(PrivUnit(1.0), frozenset({"density"}))
    found = audit(PrivUnit(1.0, d=2))
    assert found.holds, found
    assert (found.grade, found.loss) == ("black box", None)
    assert not audit(Overspent(1.0, d=2)).holds


def test_the_cap_is_chosen_as_its_density_allows() -> None:
    """Cap and rest, of densities threshold / q and the rest's, differ by less than e^eps, and by that almost; the choice itself is by a whole threshold."""
    for epsilon in (0.1, 1.0, 4.0):
        randomizer = PrivUnit(epsilon, d=20)
        chosen, share = randomizer.threshold / 2.0**64, randomizer.cap.share
        ratio = chosen / share / ((1 - chosen) / (1 - share))
        assert epsilon - 1e-6 < math.log(ratio) <= epsilon
        assert 1 - stats.beta(9.5, 9.5, loc=-1, scale=2).cdf(randomizer.cap.height) == pytest.approx(share, rel=1e-9)
        words = np.full((2, randomizer.words), 1 << 63, dtype=np.uint64)
        words[:, 0] = randomizer.threshold - 1, randomizer.threshold
        words[:, 1] = 0  # as near to the vector as may be
        x = randomizer.domain.some(5)[[0, 0]]
        near = abs(randomizer.respond(x, words, np.zeros(1, dtype=np.uint8))[:, 0]) / 2.0**14
        assert near[0] > 0.9
        assert near[1] == pytest.approx(randomizer.cap.height, abs=1e-4)


# --- ProjUnit --------------------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "k"), [(64, 32), (128, 32), (100, 64)])
def test_projections_shorten_as_uniform_ones_do(d: int, k: int) -> None:
    """Over 60,000 coins the mean along the vector is that of a uniform projection, within 5 standard errors and 5e-4: of one, two, half and all coordinates."""
    randomizer, coins = ProjUnit(1.0, d=d, k=k), public_coins(COINS, 0, 60_000)
    assert mean_length(4, 2) == pytest.approx(2 / 3)  # a plane in four dimensions: the square is uniform
    for held in (1, 2, d // 2, d):
        x = (np.arange(d) < held) / math.sqrt(held)
        lengths = _lengths(randomizer, x, coins)
        away = lengths.mean() / mean_length(randomizer.filled, k) - 1
        assert abs(away) < 5 * lengths.std() / math.sqrt(60_000) / lengths.mean() + 5e-4


def test_one_transform_is_not_enough() -> None:
    """Of two coordinates half of the residue classes hold nothing after one transform: the mean length falls short by .4 %, far beyond 5 standard errors."""
    randomizer, coins = ProjUnit(1.0, d=64, k=32), public_coins(COINS, 0, 20_000)
    first, second, _ = randomizer._signs(coins)
    filled = np.repeat(np.eye(64)[0] + np.eye(64)[1], 20_000).reshape(64, 20_000)
    sums = (walsh_hadamard(filled * first) * second).reshape(2, 32, 20_000).sum(axis=0)
    lengths = np.sqrt((sums**2).sum(axis=0)) / 16
    assert lengths.mean() / mean_length(64, 32) - 1 < -5 * lengths.std() / math.sqrt(20_000) < -0.0025


def _lengths(randomizer: ProjUnit, x: Floats, coins: Words) -> Floats:
    """Of the projections of a unit vector, one for each coin."""
    made = (randomizer.projected(np.repeat(x[None], len(some), axis=0), some) for some in np.array_split(coins, 60))
    return np.concatenate([np.sqrt((each**2).sum(axis=1)) for each in made])


@pytest.mark.parametrize(("epsilon", "d"), [(0.5, 100), (1.0, 100), (4.0, 100), (1.0, 1000), (8.0, 500)])
def test_projunit_costs_little_more_than_privunit(epsilon: float, d: int) -> None:
    """With the k that it takes, at most 2.1 % more than in all dimensions and 3 % more than PrivUnit in d, for a fraction of its bits; on an axis no less."""
    randomizer = ProjUnit(epsilon, d=d)
    moment = projunit_moment(epsilon, d, randomizer.chosen)
    assert best_privunit(epsilon, d)[1] + 1 < moment < 1.03 * (best_privunit(epsilon, d)[1] + 1)
    assert moment <= 1.02 * projunit_moment(epsilon, d, randomizer.filled)
    assert moment / d <= projunit_on_axis(epsilon, d, randomizer.chosen) < moment
    assert randomizer.bits < PrivUnit(epsilon, d=d).bits
    assert projunit_moment(epsilon, 128, 128) == pytest.approx(best_privunit(epsilon, 128)[1] + 1, rel=1e-9)


def test_projunit_is_no_proof_either() -> None:
    """Clients refuse it by default; the audit finds no violation; projections that are none are refused."""
    with pytest.raises(RefusedError) as refused:
        check_loss(ProjUnit(1.0))
    assert refused.value.code == "evidence"
    found = audit(ProjUnit(1.0, d=2))
    assert found.holds, found
