"""Parity by naming suspects: in one round, and in a few with a list that shrinks."""

import math

import numpy as np
import pytest

from local_dp.bounds.interaction import few_rounds_plan, few_rounds_success
from local_dp.bounds.parity import parity_deny_success, parity_one_round_bound
from local_dp.errors import InputError
from local_dp.experiments.lab.minimal_clients import exact_recovery
from local_dp.interaction import Nonadaptive, run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.population import PopulationOracle
from local_dp.protocols.parity.parity import ParityDeny, ParityRounds
from local_dp.randomizers.signs.deny import Deny
from local_dp.tallies import Tally
from tests.support.theory.alike import Z_TAIL, check_alike

KINDS = [ParityDeny(d=5), ParityRounds(d=5), ParityRounds(d=5, rounds=3)]


@pytest.mark.parametrize("protocol", KINDS, ids=repr)
def test_user_level_and_aggregate_runs_succeed_alike(protocol: ParityDeny | ParityRounds) -> None:
    """Success over 100 simulated populations and 500 aggregate runs differ by less than 4.9 deviations (1e-6), and with a third of the clients by more."""
    check_alike(protocol, protocol.clients(1.0) * 2 // 3, 100, 500)


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_formulas_say_how_often_they_succeed(epsilon: float) -> None:
    """At d = 6 and near 80 % the formulas are within 3 hundredths, and 4.9 deviations of chance, of 1,000 drawn runs."""
    for protocol in (ParityDeny(d=6), ParityRounds(d=6), ParityRounds(d=6, rounds=4)):
        n = round(0.62 * protocol.clients(epsilon))
        if isinstance(protocol, ParityRounds):
            told = few_rounds_success(6, epsilon, n, few_rounds_plan(6, protocol.rounds))
        else:
            told = parity_deny_success(6, epsilon, n)
        assert abs(exact_recovery(protocol, epsilon, 3)(n, 1000) / 1000 - told) < 0.03 + Z_TAIL * math.sqrt(told * (1 - told) / 1000)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 12])
def test_learners_find_r_with_the_default_clients(d: int) -> None:
    """With the default number of clients, at least 15 of 20 runs are right where 95 % are promised (failure probability below 1e-4), for d from 1 to 12."""
    for protocol in (ParityDeny(d=d), *(ParityRounds(d=d, rounds=rounds) for rounds in (2, 3) if rounds <= d)):
        assert exact_recovery(protocol, 1.0, 4)(protocol.clients(1.0), 20) >= 15


def test_what_is_named_most_is_no_answer() -> None:
    """The least named parity is right in more than 80 of 100 runs; a server that took the most named one would be right in none of 100."""
    protocol = ParityDeny(d=5)
    n = protocol.clients(1.0)
    algorithm = protocol.algorithm(1.0, n)
    assert isinstance(algorithm, Nonadaptive)
    rng, law = np.random.default_rng(1), Deny(1.0, d=5).law(17)
    tallies = [Tally(rng.multinomial(n, law)[None, :]) for _ in range(100)]
    assert sum(algorithm.decode((tally,)) == 17 for tally in tallies) > 80
    assert not any(int(np.argmax(tally.counts)) == 17 for tally in tallies)


def test_models_rounds_and_budget() -> None:
    """Naming is non-interactive, the rounds are interactive and as many as asked for; every client answers once with epsilon."""
    assert (ParityDeny.model(), ParityRounds.model()) == ("LNI", "LI")
    for rounds in (2, 3, 4):
        protocol = ParityRounds(d=4, r=11, rounds=rounds)
        for seed in (1, 2):  # the same algorithm may be played again
            oracle = PopulationOracle(protocol.synthetic(3000, seed), KeyedNoise(seed), seed, 1.0)
            assert run(protocol.algorithm(1.0, 3000), oracle) == 11
            assert [summary.n for summary in oracle.rounds] == list(few_rounds_plan(4, rounds).sizes(3000))
            assert sum(summary.n for summary in oracle.rounds) == 3000
            assert oracle.ledger.max_spent == 1.0


def test_two_rounds_beat_any_one_round() -> None:
    """With as many clients as the bound asks of every one-round protocol at 90 %, two rounds succeed more often at d = 9 (1e-6), three at d = 7."""
    for d, rounds in ((9, 2), (7, 3)):
        n = round(parity_one_round_bound(d, 1.0, 0.9))
        found = exact_recovery(ParityRounds(d=d, rounds=rounds), 1.0, 5)(n, 2500)
        assert found > 2250 + Z_TAIL * math.sqrt(2500 * 0.09)


def test_bad_parameters_are_refused() -> None:
    """Rounds that d does not allow, and too few clients."""
    for rounds in (1, 5):
        with pytest.raises(InputError, match="rounds"):
            ParityRounds(d=4, rounds=rounds)
    with pytest.raises(InputError, match="too few"):
        ParityRounds(d=4, rounds=3).algorithm(1.0, 2)
    with pytest.raises(InputError, match="d is"):
        ParityDeny(d=13)
