"""Parity by naming suspects: in one round, and in a few with a list that shrinks."""

import math

import pytest

from local_dp.bounds.interaction import few_rounds_plan, few_rounds_success
from local_dp.bounds.parity import parity_deny_success, parity_one_round_bound
from local_dp.experiments.lab.minimal_clients import exact_recovery
from local_dp.protocols.parity.parity import ParityDeny, ParityRounds
from tests.support.long import short
from tests.support.theory.alike import Z_TAIL, check_alike

KINDS = [ParityDeny(d=5), ParityRounds(d=5), ParityRounds(d=5, rounds=3)]


@pytest.mark.parametrize("protocol", short(KINDS, lambda each: each == ParityRounds(d=5)), ids=repr)
def test_user_level_and_aggregate_runs_succeed_alike(protocol: ParityDeny | ParityRounds) -> None:
    """Success over 100 simulated populations and 500 aggregate runs differ by less than 4.9 deviations (1e-6), and with a third of the clients by more."""
    check_alike(protocol, protocol.clients(1.0) * 2 // 3, 100, 500)


@pytest.mark.parametrize("epsilon", [3.0, pytest.param(0.5, marks=pytest.mark.long)])
def test_the_formulas_say_how_often_they_succeed(epsilon: float) -> None:
    """At d = 6 and near 80 % the formulas are within 3 hundredths, and 4.9 deviations of chance, of 1,000 drawn runs."""
    for protocol in (ParityDeny(d=6), ParityRounds(d=6), ParityRounds(d=6, rounds=4)):
        n = round(0.62 * protocol.clients(epsilon))
        if isinstance(protocol, ParityRounds):
            told = few_rounds_success(6, epsilon, n, few_rounds_plan(6, protocol.rounds))
        else:
            told = parity_deny_success(6, epsilon, n)
        assert abs(exact_recovery(protocol, epsilon, 3)(n, 1000) / 1000 - told) < 0.03 + Z_TAIL * math.sqrt(told * (1 - told) / 1000)


@pytest.mark.parametrize(("d", "rounds"), [(7, 3), pytest.param(9, 2, marks=pytest.mark.long)])
def test_a_few_rounds_beat_any_one_round(d: int, rounds: int) -> None:
    """With as many clients as the bound asks of every one-round protocol at 90 %, two rounds succeed more often at d = 9 (1e-6), three at d = 7."""
    n = round(parity_one_round_bound(d, 1.0, 0.9))
    assert exact_recovery(ParityRounds(d=d, rounds=rounds), 1.0, 5)(n, 2500) > 2250 + Z_TAIL * math.sqrt(2500 * 0.09)
