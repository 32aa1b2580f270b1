"""Choices among groups of candidates: the same law as of the candidates one by one."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from local_dp.curator.selection.exponential import ExponentialMechanism, decay_of
from local_dp.curator.selection.groups import Listed, powers, sum_by
from local_dp.curator.selection.runs import Runs
from local_dp.draws import Draws
from local_dp.loss import nano_epsilon
from local_dp.noise import KeyedNoise

RUNS = Runs(np.array([2, 3, 9], dtype=np.uint64), np.array([-4, 0, -1, -6]), 20)
CHOICE: ExponentialMechanism[Runs] = ExponentialMechanism(lambda runs: runs, 1.0)


def dense(runs: Runs) -> list[int]:
    """The score of each candidate."""
    return [score for score, size in zip(runs.scores.tolist(), runs.sizes.tolist(), strict=True) for _ in range(size)]


def test_runs_cover_the_candidates_in_order() -> None:
    assert RUNS.sizes.tolist() == [3, 1, 6, 11]
    assert [candidate for _, candidate in RUNS.members()] == list(range(21))
    assert dense(RUNS)[9:11] == [-1, -6]


def test_runs_have_the_law_of_their_candidates() -> None:
    """Exactly: the same whole weights as for a score for each candidate."""
    listed: ExponentialMechanism[Runs] = ExponentialMechanism(lambda runs: np.array(dense(runs)), 1.0)
    assert CHOICE.law(RUNS) == listed.law(RUNS)


def test_the_code_draws_from_the_law_of_runs() -> None:
    """4,000 draws fit (chi-squared, failure 1e-6); not those of runs whose lengths do not count."""
    law = CHOICE.law(RUNS)
    expected = [4000 * weight / sum(law.values()) for weight in law.values()]

    def p_value(runs: Runs) -> float:
        draws = Draws(KeyedNoise(1))
        drawn = Counter(CHOICE.release(runs, draws) for _ in range(4000))
        return float(chisquare([drawn[candidate] for candidate in law], expected).pvalue)

    twin = Runs(RUNS.ends, RUNS.scores, RUNS.last)
    object.__setattr__(twin, "sizes", np.ones(4, dtype=np.uint64))
    assert p_value(RUNS) > 1e-6 > p_value(twin)


@pytest.mark.parametrize("bits", [63, 64, 65, 5000])
def test_domains_beyond_a_word(bits: int) -> None:
    """Thresholds 0..2^bits: all are counted, none is out of reach, the last one is one more than a word holds."""
    top = 1 << bits
    ends = np.array([0, top - 1], dtype=np.uint64 if bits <= 64 else object)
    runs = Runs(ends, np.array([0, 0, 0]), top)
    assert [int(size) for size in runs.sizes] == [1, top - 1, 1]
    assert runs.total == top + 1
    assert runs.member(2, 0) == top
    assert runs.pick(np.array([True, False, True]), Draws(KeyedNoise(0))) in (0, top)
    spread = [CHOICE.release(runs, Draws(KeyedNoise(seed))) for seed in range(20)]
    assert max(spread) > top // 2 > min(spread)
    needle = Runs(ends, np.array([0, 0, 4 * bits]), top)
    assert CHOICE.release(needle, Draws(KeyedNoise(0))) == top


def test_one_run_is_everything() -> None:
    assert Runs(np.zeros(0, dtype=np.uint64), np.array([3]), 1 << 64).total == (1 << 64) + 1


def test_sums_beyond_a_word_are_exact() -> None:
    """Against Python's own, on sizes near 2^64."""
    generator = np.random.default_rng(0)
    sizes, groups = generator.integers(0, 1 << 64, 500, dtype=np.uint64), generator.integers(0, 5, 500)
    expected = [sum(size for size, group in zip(sizes.tolist(), groups.tolist(), strict=True) if group == number) for number in range(7)]
    assert sum_by(sizes, groups, 7) == expected
    assert sum_by(sizes.astype(object), groups, 7) == expected


def test_powers_are_as_close_as_they_say() -> None:
    """Within 2^-96, whichever of the gaps occur, and never of fewer than 128 bits."""
    decay, gaps = decay_of(nano_epsilon(0.25)), np.array([0, 1, 7, 8, 390, 400])
    found = powers(decay, gaps, 400)
    for gap, weight in zip(gaps.tolist(), found, strict=True):
        assert abs(Fraction(weight, found[0]) / decay**gap - 1) < Fraction(1, 1 << 96)
    assert found[-1].bit_length() > 128
    assert powers(decay, gaps[[0, 4]], 400)[0] == found[0]


def test_a_listed_candidate_is_named() -> None:
    assert dict(Listed(np.array([1, 2]), np.array([40, 50])).members()) == {0: 40, 1: 50}
