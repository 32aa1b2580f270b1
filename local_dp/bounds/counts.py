"""How far off the largest of k counts must be, for every purely private algorithm: by packing, and by averaging."""

import math

import numpy as np

from local_dp.bounds.binomials import CountLaw
from local_dp.bounds.packing import is_excluded
from local_dp.checks import check_positive, check_whole
from local_dp.curator.counts.base import MAX_COUNTS
from local_dp.optimise import least_clients


def packing_error(k: int, epsilon: float) -> int:
    """The least whole t such that the largest of k counts may be off by t or less every second time: about k ln 2 / (2 eps); 6, 89, 1,420 at 16, 256, 4,096.

    The kinds: s copies of any one of the 2^k records; their counts are s apart, so errors below s / 2 exclude each other, and s records are replaced.
    Source: Hardt, Talwar 2010; lecture notes, Lemma 4.3.1, with the exact constant.
    """
    _check(k, epsilon)
    log_others = k * math.log(2) + math.log1p(-(2.0**-k)) if k > 1 else 0.0
    return least_clients(lambda s: not is_excluded(log_others, CountLaw.always(s), epsilon, 0.5)) // 2


def most_within(k: int, epsilon: float, t: int, records: int | None = None) -> float:
    """The largest chance that whole answers to k counts are all off by at most t, on every database, that a pure mechanism can have: no more than this.

    For every mechanism that sees the counts, as long as each of {0..n}^k is possible; n = `records`, None for no end of them. It is, for the best r >= t,

        e^(eps (r - t)) ((2t + 1) / (2r + 1))^k (1 + 2 (r - t) / (n + 1 - 2 (r - t)))^k.

    Proof: draw z uniform in the cube [-t, t]^k and z' in [-r, r]^k so that no coordinate of z' - z is beyond r - t (by equal quantiles). For c at least r - t
    from the ends of {0..n}^k, Pr[M(c) - c in the cube t] = (2t + 1)^k E Pr[M(c) = c + z], and c + z = c* + z' with c* = c + z - z', which costs e^(eps (r - t))
    at most. The average over c is thereby at most the average over all c* of ((2t + 1) / (2r + 1))^k Pr[M(c*) - c* in the cube r], times how many more c*
    there are than c. Source: ours; cubes in place of the packed points of Hardt, Talwar 2010.
    """
    _check(k, epsilon)
    if records is not None:
        check_whole("records", records, 1, 1 << 62)
    most = math.ceil(k / epsilon)  # beyond, the bound is no better
    wider = np.arange((most if records is None else min(most, records // 2)) + 1, dtype=np.float64)  # r - t
    ends = np.zeros_like(wider) if records is None else np.log1p(2 * wider / (records + 1 - 2 * wider))
    return math.exp(float((epsilon * wider + k * (np.log((2 * t + 1) / (2 * t + 1 + 2 * wider)) + ends)).min()))


def averaging_error(k: int, epsilon: float, records: int | None = None) -> int:
    """The least whole t such that whole answers to k counts may be off by t or less every second time: 12, 238, 4,021 at 16, 256, 4,096.

    By `most_within`: about k / eps - 1.2 sqrt(k) / eps, next to the median of `KNormCounts`, where packing gives .35 k / eps.
    """
    return least_clients(lambda above: most_within(k, epsilon, above - 1, records) >= 0.5) - 1


def _check(k: int, epsilon: float) -> None:
    check_whole("k", k, 1, MAX_COUNTS)
    check_positive("epsilon", epsilon)
