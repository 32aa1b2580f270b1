"""Tracing: p-values proved by enumeration, and who is found from means in three models."""

from functools import partial
from hashlib import blake2b

import numpy as np
from scipy import stats

from local_dp.accounting.rules import optimal_part
from local_dp.arrays import Bools, Floats
from local_dp.attacks.tracing import Signer, Traced, traced, traced_share, tracing
from local_dp.curator.account import Account, TrustedOracle
from local_dp.draws import Draws
from local_dp.interaction import run
from local_dp.loss import Pure, approximate
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.population import PopulationOracle
from local_dp.oracles.statistical.oracles import ExactOracle
from local_dp.populations.table import Rows
from local_dp.queries.encoded import Bit, packed
from local_dp.queries.registry import QUERIES
from local_dp.records import Records
from local_dp.theorems.curated import curated_from_sq
from local_dp.theorems.local_from_sq import one_query_each
from tests.support.inputs.refusals import refuse

FAILURE = 1e-6
RATE = 0.01  # of strangers who score above a member


def test_a_packed_row_has_its_bits() -> None:
    """Every bit of 3 rows of 130 is read back from its word; the query travels as data, and a bit that is none is refused."""
    bits = np.random.default_rng(1).random((3, 130)) < 0.5
    table = packed(bits)
    assert len(table.columns) == 3
    assert all(Bit(number).values(table).tolist() == bits[:, number].tolist() for number in range(130))
    assert QUERIES.build("bit", {"number": 129}) == Bit(129)


def everybody(d: int) -> Bools:
    """All rows of d bits, d <= 14."""
    return np.asarray((np.arange(1 << d)[:, None] >> np.arange(d) & 1).astype(np.bool_))


def chance_excess(p_values: Floats, sixteenths: list[int]) -> float:
    """The largest Pr[p-value <= t] / t over all t, exactly: rows have bit j with probability `sixteenths`[j] / 16, and are counted in whole numbers."""
    rows = everybody(len(sixteenths))
    weights = np.prod(np.where(rows, sixteenths, 16 - np.array(sixteenths)), axis=1, dtype=np.int64)
    order = np.argsort(p_values, kind="stable")
    upto, ordered = np.cumsum(weights[order]), p_values[order]
    last = np.append(ordered[1:] > ordered[:-1] * (1 + 1e-12), True)  # scores that differ by rounding are one score
    return float(np.max(upto[last] / 16 ** len(sixteenths) / ordered[last]))


def test_p_values_are_p_values_for_every_word_of_eight_bits() -> None:
    """For all 256 words of 8 bits, over all 256 rows of an innocent: Pr[p-value <= t] <= t for every t. The normal tail, a wrong twin, exceeds it."""
    sixteenths = [1, 2, 4, 6, 8, 11, 13, 15]
    shares, normal = np.array(sixteenths) / 16, []
    for word in everybody(8):
        trace = traced(shares, word.astype(np.float64), everybody(8))
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
    return np.asarray((suspects - shares) @ weights / np.sqrt(np.sum(weights**2 * shares * (1 - shares))))


RUNS = 20
REACH = float(np.sqrt(-np.log(FAILURE) / (2 * RUNS)))
"""How far a mean of 20 independent shares is from its expectation, except with probability 1e-6 (Hoeffding)."""


def shared(scores: list[Floats], n: int) -> float:
    """The share of the members who score above 99 % of the strangers, in several tables."""
    return traced_share(np.concatenate([each[:n] for each in scores]), np.concatenate([each[n:] for each in scores]), RATE)


def test_one_tracer_in_three_models() -> None:
    """n = 25, d = 625, at most 1 % of strangers above: members are found behind exact means, nobody behind a curator's or the clients' at eps = 1.

    Expected .99, .01, .01; each mean of 20 tables is held to Hoeffding's reach at 1e-6, and the twin scored against 1/2 finds too few behind exact means.
    """
    n, d = 25, 625
    part = optimal_part(approximate(1.0, 1 / (10 * n)), d)
    scores_of: dict[str, list[Floats]] = {name: [] for name in ("exact", "curator", "local", "twin")}
    for seed in range(RUNS):
        shares, rows = table(n, d, seed)
        members = packed(rows[:n])
        attack = tracing(shares, rows, 0.1)
        scores_of["exact"].append(run(attack, ExactOracle(Rows(members))).scores)
        curated = curated_from_sq(attack, part.epsilon, n)
        scores_of["curator"].append(run(curated, TrustedOracle[Records](members, Account(Pure(d * part.nano)), Draws(KeyedNoise(seed)))).scores)
        clients = PopulationOracle(Rows(members), KeyedNoise(seed), 0, 1.0)
        scores_of["local"].append(run(one_query_each(attack, 1.0, n, seed), clients).scores)
        scores_of["twin"].append(half_scored(shares, rows[:n].mean(axis=0), rows))
    found_shares = {name: shared(scores, n) for name, scores in scores_of.items()}
    assert found_shares["exact"] > 0.99 - REACH > max(found_shares["local"], found_shares["curator"], found_shares["twin"]) + 0.1


def test_accusations_keep_to_their_failure() -> None:
    """Among 50 suspects of exact means every accused is a member in at least .99 of 150 tables, by a binomial test at 1e-6; unshared, .05 each accuse many."""
    careful = careless = 0
    for seed in range(150):
        shares, rows = table(25, 400, seed)
        trace = traced(shares, rows[:25].mean(axis=0), rows)
        careful += bool(trace.accused()[25:].any())
        careless += bool((trace.p_values[25:] < 0.05).any())
        assert trace.accused()[:25].any()
    assert stats.binom.sf(careful - 1, 150, 0.01) > FAILURE
    assert stats.binom.sf(careless - 1, 150, 0.01) < FAILURE


KEY = bytes(range(32))


def test_the_signers_rows_verify_and_no_others_do() -> None:
    """Over all 2^12 rows of 6 + 6 bits: of each message one tag, that of the hash computed by hand; under another key about as many as by chance."""
    signer, rows = Signer(KEY, 6, 6), np.arange(1 << 12, dtype=np.uint64)
    valid = rows[signer.verifies(rows)]
    assert sorted((valid & np.uint64(63)).tolist()) == list(range(64))
    by_hand = {m | (int.from_bytes(blake2b(m.to_bytes(8, "little"), key=KEY, digest_size=8).digest(), "little") % 64) << 6 for m in range(64)}
    assert set(valid.tolist()) == by_hand
    messages = np.array([3, 3, 60], dtype=np.uint64)
    table = signer.table(messages)
    assert signer.verifies(table.rows).all()
    assert (table.rows & np.uint64(63)).tolist() == [3, 3, 60]
    assert Signer(KEY[::-1], 6, 6).verifies(valid).sum() < 8


def test_bad_input() -> None:
    """Rows of another length, shares of 0 or 1, by which nobody can be traced, a false positive rate of 0, keys and tags of a wrong size."""
    shapes: list[tuple[list[float], tuple[int, ...]]] = [([0.5], (2, 2)), ([0.0, 0.5], (2, 2)), ([0.5, 0.5], (2,))]
    refuse(
        *(("strictly between 0 and 1", partial(tracing, np.array(shares), np.ones(shape, dtype=np.bool_), 0.1)) for shares, shape in shapes),
        ("false positive rate", lambda: traced_share(np.zeros(3), np.zeros(3), 0.0)),
        ("false accusation", lambda: Traced(np.zeros(1), np.ones(1)).accused(0.0)),
        ("the key has 5 bytes", lambda: Signer(b"short")),
        ("bits of a message", lambda: Signer(KEY, message=0)),
        ("bits of a tag", lambda: Signer(KEY, tag=33)),
        ("bit's number", lambda: Bit(-1)),
    )
