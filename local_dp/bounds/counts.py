"""How far off the largest of k counts must be, for every purely private algorithm: by packing, by averaging, and at best."""

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


def best_within(k: int, epsilon: float, t: int) -> float:
    """The largest chance that whole answers to k counts of any size are all off by at most t, that a pure mechanism which sees the counts has for all of them.

    It is that of `KNormCounts`, for every t at once: here as the mean over cubes, of weight e^(-eps R) (2R + 1)^k, of their share in the cube of t.
    Proof. Any two vectors of counts that are 1 apart are those of two neighbours. So on the average over all counts an answer is off by z with some
    probability p(z), and p(z) <= e^eps p(z') where no coordinate of z - z' is beyond 1.
    Let S_r be the shell max |z_i| = r, of n_r points, and p_r the mean of p on it. Then p_r <= e^eps p_(r + 1): draw x uniform in the continuous shell
    between the cubes of half-sides r - 1/2 and r + 1/2, and move it along its ray into the next shell, to the same quantile of the half-side s there. The
    law of s has density s^(k - 1), so that of the next shell less 1 has the smaller likelihood ratio, and no ray is moved by more than 1. Rounded, x and its
    image are uniform in S_r and S_(r + 1), and apart by 1 at most. So Pr[z in the cube] <= p_t sum_(r <= t) n_r e^(eps (t - r)), Pr[z outside] >= p_t
    sum_(r > t) n_r e^(-eps (r - t)), and the odds are at most those of the law n_r e^(-eps r). Source: ours.
    """
    _check(k, epsilon)
    half = np.arange(math.ceil((k + 12 * math.sqrt(k) + 60) / epsilon)) + 0.5
    logs = k * np.log(half / half[-1]) - epsilon * half
    weights = np.exp(logs - logs.max())
    return float(weights @ np.minimum(1.0, (t + 0.5) / half) ** k / weights.sum())


def least_error(k: int, epsilon: float) -> int:
    """The least whole t such that the largest of k counts is off by t or less every second time, for some pure mechanism: 16, 256, 4,096 for as many.

    About k / eps, where packing gives .35 k / eps: `best_within`.
    """
    return least_clients(lambda above: best_within(k, epsilon, above - 1) >= 0.5) - 1


def most_within(k: int, epsilon: float, t: int, records: int) -> float:
    """As `best_within`, of n = `records`, where each of {0..n}^k is possible: no more than this, though perhaps less. For the best r >= t,

        e^(eps (r - t)) ((2t + 1) / (2r + 1))^k (1 + 2 (r - t) / (n + 1 - 2 (r - t)))^k.

    Proof: draw z uniform in the cube [-t, t]^k and z' in [-r, r]^k so that no coordinate of z' - z is beyond r - t (by equal quantiles). For c at least r - t
    from the ends of {0..n}^k, Pr[M(c) - c in the cube t] = (2t + 1)^k E Pr[M(c) = c + z], and c + z = c* + z' with c* = c + z - z', which costs e^(eps (r - t))
    at most. The average over c is thereby at most the average over all c* of ((2t + 1) / (2r + 1))^k Pr[M(c*) - c* in the cube r], times how many more c*
    there are than c. Source: ours.
    """
    _check(k, epsilon)
    check_whole("records", records, 1, 1 << 62)
    wider = np.arange(min(math.ceil(k / epsilon), records // 2) + 1, dtype=np.float64)  # r - t; beyond, the bound is no better
    ends = np.log1p(2 * wider / (records + 1 - 2 * wider))
    return math.exp(float((epsilon * wider + k * (np.log((2 * t + 1) / (2 * t + 1 + 2 * wider)) + ends)).min()))


def averaging_error(k: int, epsilon: float, records: int) -> int:
    """The least whole t such that whole answers to k counts of n = `records` may be off by t or less every second time, by `most_within`.

    12, 238, 4,021 for 16, 256, 4,096 counts as n grows: about k / eps - 1.2 sqrt(k) / eps.
    """
    return least_clients(lambda above: most_within(k, epsilon, above - 1, records) >= 0.5) - 1


def _check(k: int, epsilon: float) -> None:
    check_whole("k", k, 1, MAX_COUNTS)
    check_positive("epsilon", epsilon)
