"""Tracing: fingerprinting codes, p-values by enumeration, who is found in three models, and who
gave away the keys."""

import math
from fractions import Fraction
from functools import partial
from hashlib import blake2b
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from local_dp import attacks
from local_dp.accounting.rules import optimal_part
from local_dp.arrays import Bools, Floats
from local_dp.bounds.attacks import boneh_shaw_block, boneh_shaw_false, tardos_length, traced_length
from local_dp.curator.account import Account, TrustedOracle
from local_dp.draws import Draws
from local_dp.interaction import Oracle, run
from local_dp.loss import Pure, approximate
from local_dp.noise import KeyedNoise
from local_dp.oracles.statistical.oracles import ExactOracle, StatisticalQuery
from local_dp.populations.finite import Rows
from local_dp.queries.encoded import Bit, packed
from local_dp.queries.query import QUERIES
from local_dp.queries.subsets import Decrypted, encrypted, keys_of, pads
from local_dp.records import Records
from local_dp.theorems.curated import curated_from_sq
from tests.support.inputs.refusals import refuse
from tests.support.wrong import wrong

CERTAIN = 1e-6  # the failure probability of each test


def feasible(rows: Bools, word: Bools) -> bool:
    """The marking condition: every letter is some member's."""
    return bool(np.all((rows == word).any(axis=0)))


@pytest.mark.parametrize("name", attacks.STRATEGIES)
def test_every_strategy_makes_a_feasible_word(name: str) -> None:
    """On all columns of three rows, and in no place where they agree does the wish count; left
    unmarked, some wishes are not feasible."""
    rows = np.array(list(product((False, True), repeat=3))).T
    generator = np.random.default_rng(1)
    for _ in range(20):
        wish = attacks.STRATEGIES[name](rows, generator)
        assert feasible(rows, attacks.marked(rows, wish))
        free = rows.any(axis=0) & ~rows.all(axis=0)
        assert np.array_equal(attacks.marked(rows, wish)[free], wish[free])
    assert feasible(rows, wish) == (name not in ("all ones", "all zeros", "minority", "coin flips"))


def caught(coalition: int, length: int, runs: int) -> tuple[int, int, int]:
    """Runs of the worst strategy, of `runs`, in which a pirate is accused; runs of any in which an
    innocent is, or anybody by Tardos's own score."""
    users, worst, false, old = 20 * coalition, runs, 0, 0
    for number, strategy in enumerate(attacks.STRATEGIES.values()):
        hits = 0
        for seed in range(runs):
            generator = np.random.default_rng([number, seed])
            code = attacks.tardos(users, length, 1 / (20 * coalition), generator)
            word = attacks.marked(code.rows[:coalition], strategy(code.rows[:coalition], generator))
            culprits = attacks.traced(code.shares, word.astype(np.float64), code.rows).accused()
            hits += bool(culprits[:coalition].any())
            false += bool(culprits[coalition:].any())
            old += bool(attacks.tardos_accused(code, word, coalition, attacks.FAILURE).any())
        worst = min(worst, hits)
    return worst, false, old


@pytest.mark.parametrize(
    ("coalition", "runs"), [(3, 20), pytest.param(5, 20, marks=pytest.mark.long)]
)
def test_six_c_squared_logs_catch_somebody(coalition: int, runs: int) -> None:
    """6 c^2 ln(N / .01) bits accuse a pirate in .9 of runs, innocents in .01 (1e-6). Wrong twins: a
    sixth of the length, and Tardos's own threshold."""
    users = 20 * coalition
    worst, false, old = caught(coalition, traced_length(coalition, users, attacks.FAILURE), runs)
    assert stats.binom.cdf(worst, runs, 0.9) > CERTAIN / len(attacks.STRATEGIES)
    assert stats.binom.sf(false - 1, runs * len(attacks.STRATEGIES), attacks.FAILURE) > CERTAIN
    assert old == 0
    short = caught(coalition, traced_length(coalition, users, attacks.FAILURE) // 6, runs)[0]
    assert stats.binom.cdf(short, runs, 0.9) < CERTAIN / len(attacks.STRATEGIES)


@wrong(
    "local_dp.attacks:tardos_accused",
    "20 * coalition",
    "15 * coalition",
    "the score that Tardos proves innocents not to reach is a quarter lower",
)
def test_his_own_accusation_begins_above_twenty_c_logs() -> None:
    """With shares of 1/2 the first user's score is the number of ones: 276 are below 20 * 2 ln(10 /
    .01) = 276.3, and 277 above."""
    code = attacks.Code(np.full(300, 0.5), np.arange(10)[:, None] == np.zeros(300, dtype=np.int64))
    words = np.arange(300) < np.array([[276], [277]])
    users = [
        attacks.tardos_accused(code, word, 2, attacks.FAILURE).nonzero()[0].tolist()
        for word in words
    ]
    assert users == [[], [0]]


def test_shares_are_the_arcsine_law() -> None:
    """Of 4,000 shares, by a Kolmogorov-Smirnov test at 1e-6; rows have these shares."""
    code = attacks.tardos(50, 4000, 1 / 60, np.random.default_rng(2))
    least, shares = math.asin(math.sqrt(1 / 60)), code.shares
    law = stats.uniform(least, math.pi / 2 - 2 * least)
    assert stats.kstest(np.arcsin(np.sqrt(shares)), law.cdf).pvalue > CERTAIN
    spread = np.sqrt(50 * shares * (1 - shares))
    standard = (code.rows.sum(axis=0) - 50 * shares) / spread
    assert stats.chi2.sf(float(np.sum(standard**2)), 4000) > CERTAIN


@pytest.mark.parametrize("block", [1, 2, 4])
def test_an_innocent_is_accused_as_seldom_as_the_tail_says(block: int) -> None:
    """Users 1 and 3 of three against 2, by enumeration: for their worst word at most the
    hypergeometric tail, and half of it at least."""
    # of blocks 1 and 2: rows 1, 0 for users 1 and 3
    code, worst, middle = attacks.BonehShaw(3, block, 0), Fraction(0), range(block, 3 * block)
    for ones in range(2 * block + 1):
        word, accusations = np.repeat([False, True], [3 * block, block]), []
        word[block : block + ones] = True
        for second in combinations(middle, block):
            order = np.repeat([0, block, block, 3 * block], block)
            order[list(second)] = 2 * block
            code.__dict__["order"] = order  # the cached draw, replaced by each in turn
            accusations.append(code.accused(word) == 1)
        worst = max(worst, Fraction(sum(accusations), len(accusations)))
    assert 0 < worst <= boneh_shaw_false(3, block) <= 2 * worst


@pytest.mark.parametrize("users", [2, 4, 6])
@pytest.mark.parametrize("failure", [0.1, 0.001])
def test_blocks_are_long_enough(users: int, failure: float) -> None:
    """The exact tail of a false accusation is at most failure / n; of half the block, the wrong
    twin, it is more."""
    block = boneh_shaw_block(users, failure)
    assert boneh_shaw_false(users, block) <= Fraction(failure) / users
    assert boneh_shaw_false(users, block // 2) > Fraction(failure) / users


def test_boneh_shaw_finds_a_pirate() -> None:
    """Of four users somebody is always accused, an innocent in .01 of runs at most (1e-6). Wrong
    twin: users 2 and 4 who know the order frame user 3."""
    innocents, frames = 0, 0
    coalitions = [list(members) for size in range(1, 5) for members in combinations(range(4), size)]
    for seed in range(8):
        code = attacks.BonehShaw.safe(4, attacks.FAILURE, seed)
        generator = np.random.default_rng(seed)
        rows = code.rows
        frames += code.accused(attacks.marked(rows[[1, 3]], code.order // code.block == 3)) == 2
        for members, strategy in product(coalitions, attacks.STRATEGIES.values()):
            culprit = code.accused(
                attacks.marked(rows[members], strategy(rows[members], generator))
            )
            assert culprit >= 0
            innocents += culprit not in members
    assert (
        stats.binom.sf(innocents - 1, 15 * 8 * len(attacks.STRATEGIES), attacks.FAILURE) > CERTAIN
    )
    assert frames == 8


def test_boneh_shaw_asks_like_any_attack() -> None:
    """Through oracles: pirates' words and an exact oracle's means give the accusation of the word
    itself. Only the ones of user i start in block i."""
    code = attacks.BonehShaw.safe(4, attacks.FAILURE, 3)
    coalition, generator = packed(code.rows[[1, 3]]), np.random.default_rng(1)
    pirates = [
        attacks.Pirates(coalition, attacks.STRATEGIES[name], generator)
        for name in ("majority", "all ones")
    ]
    assert [run(code.tracing(0.5), oracle) for oracle in pirates] == [3, 1]
    assert {*pirates[0].answer(code.tracing(0.5).queries)} == {1.0, -1.0}
    assert run(code.tracing(0.5), ExactOracle(Rows(coalition))) in (1, 3)
    assert code.rows.sum(axis=1).tolist() == [code.block * ones for ones in (4, 3, 2, 1)]


def test_a_packed_row_has_its_bits() -> None:
    """Every bit of 3 rows of 130 is read back from its word; the query travels as data, and a bit
    that is none is refused."""
    bits = np.random.default_rng(1).random((3, 130)) < 0.5
    table = packed(bits)
    assert len(table.columns) == 3
    assert all(
        Bit(number).values(table).tolist() == bits[:, number].tolist() for number in range(130)
    )
    assert QUERIES.build("bit", {"number": 129}) == Bit(129)


def test_p_values_are_p_values_for_every_word_of_eight_bits() -> None:
    """For all 256 words of 8 bits, over all 256 rows of an innocent, in whole numbers: Pr[p-value
    <= t] <= t for every t. The normal tail exceeds it."""
    sixteenths, normal = np.array([1, 2, 4, 6, 8, 11, 13, 15]), 0.0
    rows = (np.arange(256)[:, None] >> np.arange(8) & 1).astype(np.bool_)
    weights = np.prod(np.where(rows, sixteenths, 16 - sixteenths), axis=1, dtype=np.int64)

    def excess(p_values: Floats) -> float:
        order = np.argsort(p_values, kind="stable")
        upto, ordered = np.cumsum(weights[order]), p_values[order]
        # scores that differ by rounding are one score
        last = np.append(ordered[1:] > ordered[:-1] * (1 + 1e-12), True)
        return float(np.max(upto[last] / 16**8 / ordered[last]))

    for word in rows:
        trace = attacks.traced(sixteenths / 16, word.astype(np.float64), rows)
        assert excess(trace.p_values) <= 1 + 1e-9
        normal = max(normal, excess(stats.norm.sf(trace.scores)))
    assert normal > 3


KEY = bytes(range(32))


def test_the_signers_rows_verify_and_no_others_do() -> None:
    """Over all 2^12 rows of 6 + 6 bits: of each message one tag, that of the hash computed by hand;
    under another key about as many as by chance."""
    signer, rows = attacks.Signer(KEY, 6, 6), np.arange(1 << 12, dtype=np.uint64)
    valid, by_hand = rows[signer.verifies(rows)], set()
    for message in range(64):
        digest = blake2b(message.to_bytes(8, "little"), key=KEY, digest_size=8).digest()
        by_hand.add(message | int.from_bytes(digest, "little") % 64 << 6)
    assert set(valid.tolist()) == by_hand
    assert set(signer.table(np.array([3, 3, 60], dtype=np.uint64)).rows.tolist()) <= by_hand
    assert attacks.Signer(KEY[::-1], 6, 6).verifies(valid).sum() < 8


def test_everybody_reads_their_own_message() -> None:
    """All 600 bits of 5 users across a block of the stream are decrypted by their keys; with
    another's key a message is a fair coin (binomial, 1e-6)."""
    generator = np.random.default_rng(1)
    keys, messages = keys_of(generator, 5), generator.random((5, 600)) < 0.5
    queries = encrypted(keys, messages)
    others = Records({**keys.columns, "user": np.roll(keys["user"], 1)})
    assert np.array_equal(np.stack([query.values(keys) for query in queries], axis=1), messages)
    right = np.stack([query.values(others) for query in queries], axis=1) == np.roll(
        messages, 1, axis=0
    )
    # no part of a stream is used twice
    for coins in (right, pads(keys, 0, 600), pads(keys, 0, 512) == pads(keys, 512, 1024)):
        assert stats.binomtest(int(np.sum(coins)), coins.size).pvalue > CERTAIN
    assert QUERIES.build("decrypted", queries[7].params()) == queries[7]
    assert np.array_equal(pads(keys, 500, 530), pads(keys, 0, 600)[:, 500:530])


def test_traitors_are_caught_and_a_curator_is_none() -> None:
    """Exact and pirate decoders give some of the coalition of 3 away and nobody else; a curator at
    eps = 1 nobody, and at 20 nats a query it does."""
    generator, c, users = np.random.default_rng(3), 3, 60
    keys, length = keys_of(generator, users), traced_length(c, users, attacks.FAILURE)
    code = attacks.tardos(users, length, 1 / (20 * c), generator)
    attack = attacks.traitor_tracing(code, keys, 0.5)
    coalition, d = keys.take(slice(0, c)), len(attack.queries)

    def accuse(each: Pure) -> Bools:
        trusted = TrustedOracle[Records](
            coalition, Account(Pure(d * each.nano)), Draws(KeyedNoise(4))
        )
        return run(curated_from_sq(attack, each.epsilon, c), trusted).accused()

    decoders: list[Oracle[StatisticalQuery, float]] = [ExactOracle(Rows(coalition))]
    for name in ("coin flips", "minority", "interleaved"):
        decoders.append(attacks.Pirates(coalition, attacks.STRATEGIES[name], generator))
    for result in [
        *(run(attack, decoder).accused() for decoder in decoders),
        accuse(Pure(20 * 10**9)),
    ]:
        assert result[:c].any()
        assert not result[c:].any()
    assert not accuse(optimal_part(approximate(1.0, 1 / (10 * c)), d)).any()


def test_bad_input() -> None:
    code = attacks.BonehShaw.safe(3, 0.1, 1)
    assert code.accused(np.zeros(len(code.order), dtype=np.bool_)) == -1
    calls = (
        lambda: attacks.BonehShaw(1, 5, 0),
        lambda: attacks.BonehShaw(3, 0, 0),
        lambda: boneh_shaw_block(3, 1.0),
        lambda: tardos_length(5, 4, 0.1),
    )
    shapes: list[tuple[list[float], tuple[int, ...]]] = [
        ([0.5], (2, 2)),
        ([0.0, 0.5], (2, 2)),
        ([0.5, 0.5], (2,)),
    ]
    refuse(
        *((".", call) for call in calls),
        *(
            (
                "strictly between 0 and 1",
                partial(attacks.tracing, np.array(shares), np.ones(shape, dtype=np.bool_), 0.1),
            )
            for shares, shape in shapes
        ),
        ("false positive rate", lambda: attacks.traced_share(np.zeros(3), np.zeros(3), 0.0)),
        ("false accusation", lambda: attacks.Traced(np.zeros(1), np.ones(1)).accused(0.0)),
        ("the key has 5 bytes", lambda: attacks.Signer(b"short")),
        ("bits of a message", lambda: attacks.Signer(KEY, message=0)),
        ("bits of a tag", lambda: attacks.Signer(KEY, tag=33)),
        ("bit's number", lambda: Bit(-1)),
        ("hexadecimal", lambda: Decrypted(0, "zz")),
        ("number", lambda: Decrypted(-1, "00")),
    )
