"""Fingerprinting codes: who made the word, against eight strategies, with exact probabilities where they are few."""

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from local_dp.arrays import Bools
from local_dp.attacks.tracing import FAILURE, STRATEGIES, BonehShaw, Pirates, marked, tardos, tardos_accused, traced, tracing
from local_dp.bounds.attacks import boneh_shaw_block, boneh_shaw_false, tardos_length, traced_length
from local_dp.interaction import run
from local_dp.oracles.statistical.oracles import ExactOracle
from local_dp.populations.table import Rows
from local_dp.queries.encoded import packed
from tests.support.inputs.refusals import refuse

CERTAIN = 1e-6  # the failure probability of each test


def feasible(rows: Bools, word: Bools) -> bool:
    """The marking condition: every letter is some member's."""
    return bool(np.all((rows == word).any(axis=0)))


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_makes_a_feasible_word(name: str) -> None:
    """On all columns of three rows, and in no place where they agree does the wish count; left unmarked, some wishes are not feasible."""
    rows = np.array(list(product((False, True), repeat=3))).T
    generator = np.random.default_rng(1)
    for _ in range(20):
        wish = STRATEGIES[name](rows, generator)
        assert feasible(rows, marked(rows, wish))
        free = rows.any(axis=0) & ~rows.all(axis=0)
        assert np.array_equal(marked(rows, wish)[free], wish[free])
    assert feasible(rows, wish) == (name not in ("all ones", "all zeros", "minority", "coin flips"))


def caught(coalition: int, length: int, runs: int) -> tuple[int, int, int]:
    """Runs of the worst strategy, of `runs`, in which a pirate is accused; runs of any in which an innocent is, or anybody by Tardos's own score."""
    users, worst, false, old = 20 * coalition, runs, 0, 0
    for number, strategy in enumerate(STRATEGIES.values()):
        hits = 0
        for seed in range(runs):
            generator = np.random.default_rng([number, seed])
            code = tardos(users, length, 1 / (20 * coalition), generator)
            word = marked(code.rows[:coalition], strategy(code.rows[:coalition], generator))
            accused = traced(code.shares, word.astype(np.float64), code.rows).accused()
            hits += bool(accused[:coalition].any())
            false += bool(accused[coalition:].any())
            old += bool(tardos_accused(code, word, coalition, FAILURE).any())
        worst = min(worst, hits)
    return worst, false, old


@pytest.mark.parametrize(("coalition", "runs"), [(3, 20), pytest.param(5, 20, marks=pytest.mark.long)])
def test_six_c_squared_logs_catch_somebody(coalition: int, runs: int) -> None:
    """Of 20 c users, c of them pirates: d = 6 c^2 ln(N / .01) accuses a pirate in a share of .9 of the runs or more, whatever the strategy, and innocents in
    .01 or less, both by binomial tests at 1e-6. Wrong twins: a sixth of the length, and Tardos's own threshold, which nobody reaches.
    """
    users = 20 * coalition
    worst, false, old = caught(coalition, traced_length(coalition, users, FAILURE), runs)
    assert stats.binom.cdf(worst, runs, 0.9) > CERTAIN / len(STRATEGIES)
    assert stats.binom.sf(false - 1, runs * len(STRATEGIES), FAILURE) > CERTAIN
    assert old == 0
    short = caught(coalition, traced_length(coalition, users, FAILURE) // 6, runs)[0]
    assert stats.binom.cdf(short, runs, 0.9) < CERTAIN / len(STRATEGIES)


def test_shares_are_the_arcsine_law() -> None:
    """Of 4,000 shares, by a Kolmogorov-Smirnov test at 1e-6; evenly spread ones, the wrong twin, are refused. Rows have these shares."""
    code = tardos(50, 4000, 1 / 60, np.random.default_rng(2))
    angles = np.arcsin(np.sqrt(code.shares))
    least = math.asin(math.sqrt(1 / 60))
    assert stats.kstest(angles, stats.uniform(least, math.pi / 2 - 2 * least).cdf).pvalue > CERTAIN
    assert stats.kstest(code.shares, stats.uniform(1 / 60, 1 - 2 / 60).cdf).pvalue < CERTAIN
    standard = (code.rows.sum(axis=0) - 50 * code.shares) / np.sqrt(50 * code.shares * (1 - code.shares))
    assert stats.chi2.sf(float(np.sum(standard**2)), 4000) > CERTAIN


def test_an_honest_oracle_is_a_pirate_too() -> None:
    """One tracer, on pirates and on exact means of the coalition's rows, accuses some of the coalition and nobody else."""
    generator = np.random.default_rng(3)
    code = tardos(60, traced_length(3, 60, FAILURE), 1 / 60, generator)
    coalition = packed(code.rows[:3])
    traces = [run(tracing(code.shares, code.rows, 0.4), Pirates(coalition, strategy, generator)) for strategy in STRATEGIES.values()]
    traces += [run(tracing(code.shares, code.rows, 0.4, rounded=rounded), ExactOracle(Rows(coalition))) for rounded in (True, False)]
    for accused in (each.accused() for each in traces):
        assert accused[:3].any()
        assert not accused[3:].any()


@pytest.mark.parametrize("block", [1, 2, 4])
def test_an_innocent_is_accused_as_seldom_as_the_tail_says(block: int) -> None:
    """Users 1 and 3 of three against 2, by enumeration of all orders of the columns that they cannot tell apart, for each of their words.

    The worst is the hypergeometric tail exactly where nobody before is accused, never more.
    """
    code = BonehShaw(3, block, 0)
    places = range(block, 3 * block)  # of blocks 1 and 2: rows 1, 0 for users 1 and 3
    worst = Fraction(0)
    orders = list(combinations(places, block))
    for ones in range(2 * block + 1):
        accusations = 0
        for second in orders:
            order = np.arange(4 * block) // block * block
            order[list(places)] = block
            order[list(second)] = 2 * block
            code.__dict__["order"] = order  # the cached draw, replaced by each in turn
            word = np.zeros(4 * block, dtype=np.bool_)
            word[block : block + ones] = True
            word[3 * block :] = True
            accusations += code.accused(word) == 1
        worst = max(worst, Fraction(accusations, len(orders)))
    assert 0 < worst <= boneh_shaw_false(3, block)
    assert worst >= boneh_shaw_false(3, block) / 2


@pytest.mark.parametrize("users", [2, 4, 6])
@pytest.mark.parametrize("failure", [0.1, 0.001])
def test_blocks_are_long_enough(users: int, failure: float) -> None:
    """The exact tail of a false accusation is at most failure / n; of half the block, the wrong twin, it is more."""
    block = boneh_shaw_block(users, failure)
    assert boneh_shaw_false(users, block) <= Fraction(failure) / users
    assert boneh_shaw_false(users, block // 2) > Fraction(failure) / users


def test_boneh_shaw_finds_a_pirate() -> None:
    """Of four users, every coalition, every strategy, 8 codes each: always somebody is accused, an innocent in .01 of the runs at most (binomial, 1e-6).

    Wrong twin: users 2 and 4 who know the order frame user 3 in every code.
    """
    innocents, framed = 0, 0
    coalitions = [list(members) for size in range(1, 5) for members in combinations(range(4), size)]
    for seed in range(8):
        code, generator = BonehShaw.safe(4, FAILURE, seed), np.random.default_rng(seed)
        rows = code.rows
        framed += code.accused(marked(rows[[1, 3]], code.order // code.block == 3)) == 2
        for members, strategy in product(coalitions, STRATEGIES.values()):
            accused = code.accused(marked(rows[members], strategy(rows[members], generator)))
            assert accused >= 0
            innocents += accused not in members
    assert stats.binom.sf(innocents - 1, 15 * 8 * len(STRATEGIES), FAILURE) > CERTAIN
    assert framed == 8


def test_boneh_shaw_asks_like_any_attack() -> None:
    """Through oracles: pirates' words and an exact oracle's means give the accusation of the word itself. Only the ones of user i start in block i."""
    code = BonehShaw.safe(4, FAILURE, 3)
    coalition = packed(code.rows[[1, 3]])
    assert run(code.tracing(0.5), Pirates(coalition, STRATEGIES["majority"], np.random.default_rng(1))) == 3
    assert run(code.tracing(0.5), Pirates(coalition, STRATEGIES["all ones"], np.random.default_rng(1))) == 1
    assert run(code.tracing(0.5), ExactOracle(Rows(coalition))) in (1, 3)
    assert (code.rows[:, np.argsort(code.order)].sum(axis=1) == code.block * np.arange(4, 0, -1)).all()


def test_bad_input() -> None:
    """The word of nothing but zeros, which the last block forbids, accuses nobody; bad codes are refused."""
    code = BonehShaw.safe(3, 0.1, 1)
    assert code.accused(np.zeros(len(code.order), dtype=np.bool_)) == -1
    calls = (lambda: BonehShaw(1, 5, 0), lambda: BonehShaw(3, 0, 0), lambda: boneh_shaw_block(3, 1.0), lambda: tardos_length(5, 4, 0.1))
    refuse(*((".", call) for call in calls))
