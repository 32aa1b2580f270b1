"""Traitor tracing: who gave away the keys, from the decoder alone."""

import numpy as np
from scipy import stats

from local_dp.accounting.rules import optimal_part
from local_dp.arrays import Bools
from local_dp.attacks.tracing import FAILURE, STRATEGIES, Pirates, tardos, traitor_tracing
from local_dp.bounds.attacks import traced_length
from local_dp.curator.account import Account, TrustedOracle
from local_dp.draws import Draws
from local_dp.interaction import Oracle, run
from local_dp.loss import Pure, approximate
from local_dp.noise import KeyedNoise
from local_dp.oracles.statistical.oracles import ExactOracle, StatisticalQuery
from local_dp.populations.table import Rows
from local_dp.queries.registry import QUERIES
from local_dp.queries.subsets import Decrypted, encrypted, keys_of, pads
from local_dp.records import Records
from local_dp.theorems.curated import curated_from_sq
from tests.support.inputs.refusals import refuse

CERTAIN = 1e-6


def test_everybody_reads_their_own_message() -> None:
    """All 600 bits of 5 users across a block of the stream are decrypted by their keys; with another's key a message is a fair coin (binomial, 1e-6)."""
    generator = np.random.default_rng(1)
    keys, messages = keys_of(generator, 5), generator.random((5, 600)) < 0.5
    queries = encrypted(keys, messages)
    read = np.stack([query.values(keys) for query in queries], axis=1)
    assert np.array_equal(read, messages)
    stolen = Records({**keys.columns, "user": np.roll(keys["user"], 1)})
    right = int(np.sum(np.stack([query.values(stolen) for query in queries], axis=1) == np.roll(messages, 1, axis=0)))
    assert stats.binomtest(right, 3000).pvalue > CERTAIN
    assert stats.binomtest(int(np.sum(pads(keys, 0, 600))), 3000).pvalue > CERTAIN
    assert stats.binomtest(int(np.sum(pads(keys, 0, 512) == pads(keys, 512, 1024))), 2560).pvalue > CERTAIN, "no part of a stream is used twice"
    assert QUERIES.build("decrypted", queries[7].params()) == queries[7]
    assert np.array_equal(pads(keys, 500, 530), pads(keys, 0, 600)[:, 500:530])


def test_what_others_are_sent_does_not_show() -> None:
    """The coalition reads the same, whatever the others' rows are: the word is made of its own rows alone."""
    generator = np.random.default_rng(2)
    keys, messages = keys_of(generator, 6), generator.random((6, 40)) < 0.5
    other = np.vstack([messages[:2], ~messages[2:]])
    coalition = keys.take(slice(0, 2))
    assert [query.values(coalition).tolist() for query in encrypted(keys, messages)] == [query.values(coalition).tolist() for query in encrypted(keys, other)]


def test_traitors_are_caught_and_a_curator_is_none() -> None:
    """3 of 60, 6 c^2 ln(N / .01) ciphertexts: exact and pirate decoders give some of the coalition away and nobody else.

    A curator at eps = 1, delta = 1 / (10 c) answers the same queries and gives nobody away; at 20 nats a query it does.
    """
    generator, c, users = np.random.default_rng(3), 3, 60
    keys, code = keys_of(generator, users), tardos(users, traced_length(c, users, FAILURE), 1 / (20 * c), generator)
    attack = traitor_tracing(code, keys, 0.5)
    coalition, d = keys.take(slice(0, c)), len(attack.queries)

    def accused(each: Pure) -> Bools:
        curated = TrustedOracle[Records](coalition, Account(Pure(d * each.nano)), Draws(KeyedNoise(4)))
        return run(curated_from_sq(attack, each.epsilon, c), curated).accused()

    decoders: list[Oracle[StatisticalQuery, float]] = [
        ExactOracle(Rows(coalition)),
        *(Pirates(coalition, STRATEGIES[name], generator) for name in ("coin flips", "minority", "interleaved")),
    ]
    for result in [*(run(attack, decoder).accused() for decoder in decoders), accused(Pure(20 * 10**9))]:
        assert result[:c].any()
        assert not result[c:].any()
    assert not accused(optimal_part(approximate(1.0, 1 / (10 * c)), d)).any()


def test_bad_ciphertexts_are_refused() -> None:
    refuse(("hexadecimal", lambda: Decrypted(0, "zz")), ("number", lambda: Decrypted(-1, "00")))
