"""The target of an estimate: the mean of the clients' own values, or of the law that they come
from."""

from functools import lru_cache

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.best import Aim, Reports, report_laws
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.table import NumberTable
from local_dp.tallies import Estimate, Tally

_MOST = 1 << 20  # entries of a channel


def of_records(randomizer: Randomizer, tally: Tally, estimate: Estimate) -> Estimate:
    """The estimated mean of numbers, with the error of the noise alone, as the reports show it.

    An estimate with known `ends`, as of one bit, stays. Its noise at a mean is largest for equal
    numbers, whose sample has no variance.
    """
    if estimate.ends is not None or not isinstance(randomizer, FiniteChannel):
        return estimate
    noise = _noise(randomizer)
    if noise is None:
        return estimate
    (least, most), each = noise
    counts, n = tally.counts.ravel(), tally.answered
    mean = float(counts @ each) / n
    # the reports show the noise up to an error, which must not make it small
    error = float(counts @ (each - mean) ** 2) ** 0.5 / n
    variance = min(max(mean + error, least), most)
    return Estimate(estimate.value, np.sqrt(np.asarray(variance / n)), n)


@lru_cache(maxsize=64)
def _noise(randomizer: FiniteChannel) -> tuple[tuple[float, float], Floats] | None:
    """The least and the largest variance of one report's noise and rounding, and what each report
    adds to an unbiased estimate of the clients' average; None where there is none."""
    if isinstance(randomizer, NumberTable):
        randomizer = randomizer.coarse or randomizer
    size = randomizer.domain.size
    rounding = 1 / (2 * size - 2) ** 2
    if size * randomizer.alphabet * randomizer.cells > _MOST:
        return None
    reports = Reports.of(randomizer, Aim.mean(size - 1))
    if reports is None:
        return None
    laws, values = report_laws(randomizer, np.arange(size)), reports.contributions[:, 0]
    variances = laws @ values**2 - (laws @ values) ** 2 + rounding
    each = np.linalg.lstsq(laws, variances, rcond=None)[0].astype(np.float64)
    ends = float(variances.min()), float(variances.max())
    if not np.allclose(laws @ each, variances, rtol=1e-6, atol=0):
        return (ends[1], ends[1]), np.full(len(each), ends[1])
    return ends, each
