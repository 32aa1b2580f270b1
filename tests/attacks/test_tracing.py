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
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.oracles.statistical.oracles import ExactOracle, StatisticalQuery
from local_dp.populations.finite import Rows
from local_dp.queries.encoded import Bit, packed
from local_dp.queries.query import QUERIES
from local_dp.queries.subsets import Decrypted, encrypted, keys_of, pads
from local_dp.records import Records
from local_dp.theorems.curated import curated_from_sq
from local_dp.theorems.from_sq import one_sign_each
from tests.support.inputs.refusals import refuse

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
            accused = attacks.traced(code.shares, word.astype(np.float64), code.rows).accused()
            hits += bool(accused[:coalition].any())
            false += bool(accused[coalition:].any())
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


def test_his_own_accusation_begins_above_twenty_c_logs() -> None:
    """With shares of 1/2 the first user's score is the number of ones: 276 are below 20 * 2 ln(10 /
    .01) = 276.3, and 277 above."""
    code = attacks.Code(np.full(300, 0.5), np.arange(10)[:, None] == np.zeros(300, dtype=np.int64))
    words = np.arange(300) < np.array([[276], [277]])
    accused = [
        attacks.tardos_accused(code, word, 2, attacks.FAILURE).nonzero()[0].tolist()
        for word in words
    ]
    assert accused == [[], [0]]


def test_shares_are_the_arcsine_law() -> None:
    """Of 4,000 shares, by a Kolmogorov-Smirnov test at 1e-6; evenly spread ones, the wrong twin,
    are refused. Rows have these shares."""
    code = attacks.tardos(50, 4000, 1 / 60, np.random.default_rng(2))
    angles = np.arcsin(np.sqrt(code.shares))
    least = math.asin(math.sqrt(1 / 60))
    assert stats.kstest(angles, stats.uniform(least, math.pi / 2 - 2 * least).cdf).pvalue > CERTAIN
    assert stats.kstest(code.shares, stats.uniform(1 / 60, 1 - 2 / 60).cdf).pvalue < CERTAIN
    standard = (code.rows.sum(axis=0) - 50 * code.shares) / np.sqrt(
        50 * code.shares * (1 - code.shares)
    )
    assert stats.chi2.sf(float(np.sum(standard**2)), 4000) > CERTAIN


def test_an_honest_oracle_is_a_pirate_too() -> None:
    """One tracer, on pirates and on exact means of the coalition's rows, accuses some of the
    coalition and nobody else."""
    generator = np.random.default_rng(3)
    code = attacks.tardos(60, traced_length(3, 60, attacks.FAILURE), 1 / 60, generator)
    coalition = packed(code.rows[:3])
    traces = [
        run(
            attacks.tracing(code.shares, code.rows, 0.4),
            attacks.Pirates(coalition, strategy, generator),
        )
        for strategy in attacks.STRATEGIES.values()
    ]
    traces += [
        run(
            attacks.tracing(code.shares, code.rows, 0.4, rounded=rounded),
            ExactOracle(Rows(coalition)),
        )
        for rounded in (True, False)
    ]
    for accused in (each.accused() for each in traces):
        assert accused[:3].any()
        assert not accused[3:].any()


@pytest.mark.parametrize("block", [1, 2, 4])
def test_an_innocent_is_accused_as_seldom_as_the_tail_says(block: int) -> None:
    """Users 1 and 3 of three against 2, by enumeration: for their worst word at most the
    hypergeometric tail, and half of it at least."""
    code = attacks.BonehShaw(3, block, 0)
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
    """The exact tail of a false accusation is at most failure / n; of half the block, the wrong
    twin, it is more."""
    block = boneh_shaw_block(users, failure)
    assert boneh_shaw_false(users, block) <= Fraction(failure) / users
    assert boneh_shaw_false(users, block // 2) > Fraction(failure) / users


def test_boneh_shaw_finds_a_pirate() -> None:
    """Of four users somebody is always accused, an innocent in .01 of runs at most (1e-6). Wrong
    twin: users 2 and 4 who know the order frame user 3."""
    innocents, framed = 0, 0
    coalitions = [list(members) for size in range(1, 5) for members in combinations(range(4), size)]
    for seed in range(8):
        code, generator = (
            attacks.BonehShaw.safe(4, attacks.FAILURE, seed),
            np.random.default_rng(seed),
        )
        rows = code.rows
        framed += code.accused(attacks.marked(rows[[1, 3]], code.order // code.block == 3)) == 2
        for members, strategy in product(coalitions, attacks.STRATEGIES.values()):
            accused = code.accused(
                attacks.marked(rows[members], strategy(rows[members], generator))
            )
            assert accused >= 0
            innocents += accused not in members
    assert (
        stats.binom.sf(innocents - 1, 15 * 8 * len(attacks.STRATEGIES), attacks.FAILURE) > CERTAIN
    )
    assert framed == 8


def test_boneh_shaw_asks_like_any_attack() -> None:
    """Through oracles: pirates' words and an exact oracle's means give the accusation of the word
    itself. Only the ones of user i start in block i."""
    code = attacks.BonehShaw.safe(4, attacks.FAILURE, 3)
    coalition = packed(code.rows[[1, 3]])
    assert (
        run(
            code.tracing(0.5),
            attacks.Pirates(coalition, attacks.STRATEGIES["majority"], np.random.default_rng(1)),
        )
        == 3
    )
    assert (
        run(
            code.tracing(0.5),
            attacks.Pirates(coalition, attacks.STRATEGIES["all ones"], np.random.default_rng(1)),
        )
        == 1
    )
    assert run(code.tracing(0.5), ExactOracle(Rows(coalition))) in (1, 3)
    assert (
        code.rows[:, np.argsort(code.order)].sum(axis=1) == code.block * np.arange(4, 0, -1)
    ).all()


RATE = 0.01  # of strangers who score above a member


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


def everybody(d: int) -> Bools:
    """All rows of d bits, d <= 14."""
    return np.asarray((np.arange(1 << d)[:, None] >> np.arange(d) & 1).astype(np.bool_))


def chance_excess(p_values: Floats, sixteenths: list[int]) -> float:
    """The largest Pr[p-value <= t] / t over all t, exactly: rows have bit j with probability
    `sixteenths`[j] / 16, and are counted in whole numbers."""
    rows = everybody(len(sixteenths))
    weights = np.prod(np.where(rows, sixteenths, 16 - np.array(sixteenths)), axis=1, dtype=np.int64)
    order = np.argsort(p_values, kind="stable")
    upto, ordered = np.cumsum(weights[order]), p_values[order]
    # scores that differ by rounding are one score
    last = np.append(ordered[1:] > ordered[:-1] * (1 + 1e-12), True)
    return float(np.max(upto[last] / 16 ** len(sixteenths) / ordered[last]))


def test_p_values_are_p_values_for_every_word_of_eight_bits() -> None:
    """For all 256 words of 8 bits, over all 256 rows of an innocent: Pr[p-value <= t] <= t for
    every t. The normal tail, a wrong twin, exceeds it."""
    sixteenths = [1, 2, 4, 6, 8, 11, 13, 15]
    shares, normal = np.array(sixteenths) / 16, []
    for word in everybody(8):
        trace = attacks.traced(shares, word.astype(np.float64), everybody(8))
        assert chance_excess(trace.p_values, sixteenths) <= 1 + 1e-9
        normal.append(chance_excess(stats.norm.sf(trace.scores), sixteenths))
    assert max(normal) > 3


def table(n: int, d: int, seed: int) -> tuple[Floats, Bools]:
    """Shares of strangers, and 2 n rows of which the first n are the members."""
    generator = np.random.default_rng(seed)
    shares = generator.uniform(0.01, 0.99, d)
    return shares, generator.random((2 * n, d)) < shares


def half_scored(shares: Floats, means: Floats, suspects: Bools) -> Floats:
    """The wrong twin: scored against 1/2 in place of the strangers' shares."""
    weights = (2 * means - 1) / np.sqrt(shares * (1 - shares))
    return np.asarray(
        (suspects - shares) @ weights / np.sqrt(np.sum(weights**2 * shares * (1 - shares)))
    )


RUNS = 20
REACH = float(np.sqrt(-np.log(CERTAIN) / (2 * RUNS)))
"""How far a mean of 20 independent shares is from its expectation, except with probability 1e-6
(Hoeffding)."""


def shared(scores: list[Floats], n: int) -> float:
    """The share of the members who score above 99 % of the strangers, in several tables."""
    return attacks.traced_share(
        np.concatenate([each[:n] for each in scores]),
        np.concatenate([each[n:] for each in scores]),
        RATE,
    )


@pytest.mark.slow
def test_one_tracer_in_three_models() -> None:
    """Members are found behind exact means, nobody behind a curator or clients at eps = 1 (20
    tables, Hoeffding, 1e-6); the twin scores against 1/2."""
    n, d = 25, 625
    part = optimal_part(approximate(1.0, 1 / (10 * n)), d)
    scores_of: dict[str, list[Floats]] = {
        name: [] for name in ("exact", "curator", "local", "twin")
    }
    for seed in range(RUNS):
        shares, rows = table(n, d, seed)
        members = packed(rows[:n])
        attack = attacks.tracing(shares, rows, 0.1)
        scores_of["exact"].append(run(attack, ExactOracle(Rows(members))).scores)
        curated = curated_from_sq(attack, part.epsilon, n)
        scores_of["curator"].append(
            run(
                curated,
                TrustedOracle[Records](
                    members, Account(Pure(d * part.nano)), Draws(KeyedNoise(seed))
                ),
            ).scores
        )
        clients = PopulationOracle(Rows(members), KeyedNoise(seed), 0, 1.0)
        scores_of["local"].append(run(one_sign_each(attack, 1.0, n, seed), clients).scores)
        scores_of["twin"].append(half_scored(shares, rows[:n].mean(axis=0), rows))
    found_shares = {name: shared(scores, n) for name, scores in scores_of.items()}
    assert (
        found_shares["exact"]
        > 0.99 - REACH
        > max(found_shares["local"], found_shares["curator"], found_shares["twin"]) + 0.1
    )


def test_accusations_keep_to_their_failure() -> None:
    """Among 50 suspects of exact means every accused is a member in at least .99 of 150 tables, by
    a binomial test at 1e-6; unshared, .05 each accuse many."""
    careful = careless = 0
    for seed in range(150):
        shares, rows = table(25, 400, seed)
        trace = attacks.traced(shares, rows[:25].mean(axis=0), rows)
        careful += bool(trace.accused()[25:].any())
        careless += bool((trace.p_values[25:] < 0.05).any())
        assert trace.accused()[:25].any()
    assert stats.binom.sf(careful - 1, 150, 0.01) > CERTAIN
    assert stats.binom.sf(careless - 1, 150, 0.01) < CERTAIN


KEY = bytes(range(32))


def test_the_signers_rows_verify_and_no_others_do() -> None:
    """Over all 2^12 rows of 6 + 6 bits: of each message one tag, that of the hash computed by hand;
    under another key about as many as by chance."""
    signer, rows = attacks.Signer(KEY, 6, 6), np.arange(1 << 12, dtype=np.uint64)
    valid = rows[signer.verifies(rows)]
    assert sorted((valid & np.uint64(63)).tolist()) == list(range(64))
    by_hand = {
        m
        | (
            int.from_bytes(
                blake2b(m.to_bytes(8, "little"), key=KEY, digest_size=8).digest(), "little"
            )
            % 64
        )
        << 6
        for m in range(64)
    }
    assert set(valid.tolist()) == by_hand
    messages = np.array([3, 3, 60], dtype=np.uint64)
    table = signer.table(messages)
    assert signer.verifies(table.rows).all()
    assert (table.rows & np.uint64(63)).tolist() == [3, 3, 60]
    assert attacks.Signer(KEY[::-1], 6, 6).verifies(valid).sum() < 8


def test_everybody_reads_their_own_message() -> None:
    """All 600 bits of 5 users across a block of the stream are decrypted by their keys; with
    another's key a message is a fair coin (binomial, 1e-6)."""
    generator = np.random.default_rng(1)
    keys, messages = keys_of(generator, 5), generator.random((5, 600)) < 0.5
    queries = encrypted(keys, messages)
    read = np.stack([query.values(keys) for query in queries], axis=1)
    assert np.array_equal(read, messages)
    stolen = Records({**keys.columns, "user": np.roll(keys["user"], 1)})
    right = int(
        np.sum(
            np.stack([query.values(stolen) for query in queries], axis=1)
            == np.roll(messages, 1, axis=0)
        )
    )
    assert stats.binomtest(right, 3000).pvalue > CERTAIN
    assert stats.binomtest(int(np.sum(pads(keys, 0, 600))), 3000).pvalue > CERTAIN
    assert (
        stats.binomtest(int(np.sum(pads(keys, 0, 512) == pads(keys, 512, 1024))), 2560).pvalue
        > CERTAIN
    ), "no part of a stream is used twice"
    assert QUERIES.build("decrypted", queries[7].params()) == queries[7]
    assert np.array_equal(pads(keys, 500, 530), pads(keys, 0, 600)[:, 500:530])


def test_what_others_are_sent_does_not_show() -> None:
    """The coalition reads the same, whatever the others' rows are: the word is made of its own rows
    alone."""
    generator = np.random.default_rng(2)
    keys, messages = keys_of(generator, 6), generator.random((6, 40)) < 0.5
    other = np.vstack([messages[:2], ~messages[2:]])
    coalition = keys.take(slice(0, 2))
    assert [query.values(coalition).tolist() for query in encrypted(keys, messages)] == [
        query.values(coalition).tolist() for query in encrypted(keys, other)
    ]


def test_traitors_are_caught_and_a_curator_is_none() -> None:
    """Exact and pirate decoders give some of the coalition of 3 away and nobody else; a curator at
    eps = 1 nobody, and at 20 nats a query it does."""
    generator, c, users = np.random.default_rng(3), 3, 60
    keys, code = (
        keys_of(generator, users),
        attacks.tardos(users, traced_length(c, users, attacks.FAILURE), 1 / (20 * c), generator),
    )
    attack = attacks.traitor_tracing(code, keys, 0.5)
    coalition, d = keys.take(slice(0, c)), len(attack.queries)

    def accused(each: Pure) -> Bools:
        curated = TrustedOracle[Records](
            coalition, Account(Pure(d * each.nano)), Draws(KeyedNoise(4))
        )
        return run(curated_from_sq(attack, each.epsilon, c), curated).accused()

    decoders: list[Oracle[StatisticalQuery, float]] = [
        ExactOracle(Rows(coalition)),
        *(
            attacks.Pirates(coalition, attacks.STRATEGIES[name], generator)
            for name in ("coin flips", "minority", "interleaved")
        ),
    ]
    for result in [
        *(run(attack, decoder).accused() for decoder in decoders),
        accused(Pure(20 * 10**9)),
    ]:
        assert result[:c].any()
        assert not result[c:].any()
    assert not accused(optimal_part(approximate(1.0, 1 / (10 * c)), d)).any()


def test_bad_ciphertexts_are_refused() -> None:
    refuse(("hexadecimal", lambda: Decrypted(0, "zz")), ("number", lambda: Decrypted(-1, "00")))


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
    )
