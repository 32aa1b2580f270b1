"""The budget: charged before anything else, atomically, in whole nano-nats; nothing hostile changes
it."""

import math
from collections import Counter
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_dp.errors import InputError, RefusedError
from local_dp.ledger import Charge, Ledger
from local_dp.loss import (
    MAX_EPSILON,
    NANO,
    Approximate,
    Concentrated,
    Pure,
    exp_epsilon,
    nano_epsilon,
    nano_of_ratio,
    split_epsilon,
)
from local_dp.noise import Draw
from local_dp.oracles.local.asked import CHUNK, Cohort, LocalQuery
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.populations.finite import bernoulli
from local_dp.queries.tables import Question
from local_dp.randomizers.signs.binary_rr import BinaryRR
from tests.support.wrong import wrong

HOSTILE: list[Any] = [
    0, -1, 0.0, 1.0, 0.5, math.nan, math.inf, 1e308, True, None, "1", b"1", [1], {}, object(), 1j,
    np.int64(1), np.float64(1.0), np.bool_(True),
    2**64, 10**400, -(2**63), NANO + 1,
]  # fmt: skip
BUDGETS = (0.1, 0.3, 0.7, 1.0, math.log(3), 5.0)


def pay(ledger: Ledger, run: str, start: int, stop: int, nano: Any) -> None:
    ledger.charge(run, [Charge(start, stop, nano)])


def state(ledger: Ledger) -> dict[str, Any]:
    runs = {run: list(steps.spans()) for run, steps in ledger._runs.items()}
    return {
        "life": list(ledger._life.spans()),
        "runs": runs,
        "limits": (ledger.limit, ledger.lifetime),
    }


@pytest.mark.parametrize("charge", HOSTILE, ids=[f"{place}" for place in range(len(HOSTILE))])
def test_a_hostile_charge_leaves_the_ledger_unchanged(charge: Any) -> None:
    """Values that are no affordable whole number of nano-nats are refused and leave no trace."""
    ledger = Ledger(1.0)
    pay(ledger, "run", 0, 10, NANO // 4)
    before = repr(state(ledger))
    for run in ("run", "other"):
        with pytest.raises(RefusedError) as refusal:
            pay(ledger, run, 3, 7, charge)
        assert refusal.value.code == "budget"
    assert repr(state(ledger)) == before
    pay(ledger, "run", 0, 10, 3 * NANO // 4)


@pytest.mark.parametrize(("start", "stop"), [(5, 5), (7, 3), (-1, 4), (-4, -1), (0, 0)])
def test_a_charge_to_nobody_is_refused(start: int, stop: int) -> None:
    ledger = Ledger(1.0)
    before = repr(state(ledger))
    with pytest.raises(RefusedError, match="nobody"):
        pay(ledger, "run", start, stop, 1)
    assert repr(state(ledger)) == before


@pytest.mark.parametrize(
    "epsilon",
    [
        value
        for value in HOSTILE
        if not (type(value) in (int, float) or isinstance(value, np.float64))
    ],
)
def test_an_epsilon_of_another_type_is_an_input_error(epsilon: Any) -> None:
    with pytest.raises(InputError):
        nano_epsilon(epsilon)


@pytest.mark.parametrize(
    "epsilon",
    [
        0,
        -5,
        0.0,
        math.nan,
        math.inf,
        -math.inf,
        5e-324,
        1e-17,
        9e-10,
        24.001,
        25,
        2**63,
        10**400,
        1e308,
    ],
)
def test_an_epsilon_out_of_range_is_a_one_line_input_error(epsilon: float) -> None:
    with pytest.raises(InputError) as error:
        nano_epsilon(epsilon)
    assert "\n" not in str(error.value)
    assert "nats" in str(error.value)


@settings(max_examples=300)
@given(st.floats(1e-9, MAX_EPSILON))
def test_nano_epsilon_rounds_down(epsilon: float) -> None:
    """Whole nano-nats never exceed epsilon by more than 1e-12 nats, and lose less than one."""
    nano = nano_epsilon(epsilon)
    assert 0 < nano <= epsilon * NANO + 1.001e-3
    assert nano > epsilon * NANO - 1 - 1e-6
    assert nano_epsilon(nano / NANO) == nano


@wrong(
    "local_dp.loss:split_epsilon",
    "nano_epsilon(epsilon) // parts",
    "-(-nano_epsilon(epsilon) // parts)",
    "equal parts of a budget add up to more than it",
    at="0.1",
)
@wrong(
    "local_dp.ledger:Ledger.check",
    "most + nano",
    "most",
    "the charge itself is not counted",
    at="0.1",
)
@pytest.mark.parametrize("budget", BUDGETS)
def test_a_budget_in_k_equal_parts_accepts_exactly_k(budget: float) -> None:
    for k in range(2, 60):
        ledger, part = Ledger(budget), nano_epsilon(split_epsilon(budget, k))
        for _ in range(k):
            pay(ledger, "run", 0, 3, part)
        before = ledger.max_spent
        with pytest.raises(RefusedError):
            pay(ledger, "run", 2, 3, part)
        assert ledger.max_spent == before <= budget


class PlainLedger:  # the model: one dictionary entry a client, checked client by client
    def __init__(self, limit: int, lifetime: int) -> None:
        self.limit, self.lifetime = limit, lifetime
        self.run, self.life = Counter[tuple[str, int]](), Counter[int]()
        self.payments: set[tuple[str, int]] = set()

    def charge(self, run: str, charges: list[Charge]) -> bool:
        """Adds up what each client owes, and takes it from all or from none."""
        due, payments = Counter[int](), set(self.payments)
        for charge in charges:
            if charge.start >= charge.stop:
                return False
            for client in range(charge.start, charge.stop):
                if not charge.label or (charge.label, client) not in payments:
                    due[client] += charge.nano
            payments |= {
                (charge.label, client)
                for client in range(charge.start, charge.stop)
                if charge.label
            }
        if any(
            self.run[run, client] + nano > self.limit or self.life[client] + nano > self.lifetime
            for client, nano in due.items()
        ):
            return False
        self.payments = payments
        self.life += due
        self.run += Counter({(run, client): nano for client, nano in due.items()})
        return True


CHARGE = st.builds(
    Charge,
    st.integers(0, 30),
    st.integers(0, 30),
    st.integers(1, 6),
    st.sampled_from(["", "", "", "weekly", "daily"]),
)
ROUNDS = st.lists(st.tuples(st.sampled_from("abc"), st.lists(CHARGE, max_size=4)), max_size=20)


@settings(max_examples=100)
@given(rounds=ROUNDS, lifetime=st.integers(10, 25))
def test_the_ledger_is_a_dictionary_of_clients(
    rounds: list[tuple[str, list[Charge]]], lifetime: int
) -> None:
    """Over any rounds of any charges, overlapping and memoised ones among them, the ledger accepts
    and refuses what a plain per-client model does."""
    ledger, model = Ledger(10 / NANO, lifetime / NANO), PlainLedger(10, lifetime)
    for run, charges in rounds:
        is_accepted = False
        with suppress(RefusedError):
            ledger.charge(run, charges)
            is_accepted = True
        assert is_accepted == model.charge(run, charges)
        assert ledger.max_spent == max(model.life.values(), default=0) / NANO <= lifetime / NANO
        for client in range(31):
            assert ledger._life.most(client, client + 1) == model.life[client]


@wrong(
    "local_dp.ledger:Ledger.check",
    "due.spans()",
    "((each.start, each.stop, each.nano) for each in charges)",
    "what one client pays in a round is checked one charge at a time",
)
def test_overlapping_charges_are_added_up_before_they_are_checked() -> None:
    """Three asks of .4 to one client exceed a budget of 1 together, though no two of them do, and
    then nobody is charged."""
    ledger = Ledger(1.0)
    part = 4 * NANO // 10
    with pytest.raises(RefusedError, match=r"epsilon 1\.2 on top of 0"):
        ledger.charge("run", [Charge(0, 5, part), Charge(4, 9, part), Charge(3, 6, part)])
    assert ledger.max_spent == 0
    ledger.charge("run", [Charge(0, 5, part), Charge(4, 9, part)])
    assert ledger.max_spent == 0.8


@wrong(
    "local_dp.ledger:Ledger._due",
    "what != charge.what",
    "False",
    "a memoised answer's label may stand for two questions",
)
def test_a_label_stands_for_one_thing() -> None:
    """A memoised answer is paid for once by each client; the same label for another question is
    refused, and leaves no trace."""
    ledger = Ledger(1.0)
    ledger.charge("run", [Charge(0, 5, NANO, "weekly", b"q")])
    ledger.charge("run", [Charge(0, 9, NANO, "weekly", b"q")])
    with pytest.raises(RefusedError) as refusal:
        ledger.charge("run", [Charge(20, 30, NANO, "weekly", b"another")])
    assert refusal.value.code == "equivocation"
    assert ledger.max_spent == 1.0


def test_the_ledger_grows_with_cohorts_not_with_clients() -> None:
    ledger = Ledger(1.0)
    for round in range(3):
        pay(ledger, "run", round * 10**9, (round + 1) * 10**9, NANO)
    assert len(ledger._life._starts) <= 4


def test_an_oracle_charges_before_it_samples() -> None:
    class Exploding:
        def words(self, which: Draw, start: int, stop: int, bits: int) -> np.ndarray:
            raise AssertionError("sampled before the charge")

    oracle = PopulationOracle(bernoulli("yes", 0.5, CHUNK, 1), Exploding(), 1, 1.0)
    with pytest.raises(RefusedError, match="exceeds the run budget"):
        oracle.answer((LocalQuery(Question("yes == 1"), BinaryRR(1.5), Cohort(0, 10)),))
    assert oracle.rounds == []
    overlapping = tuple(
        LocalQuery(Question("yes == 1"), BinaryRR(0.6), Cohort(start, start + 10))
        for start in (0, 9)
    )
    with pytest.raises(RefusedError, match=r"epsilon 1\.2 on top of 0"):
        oracle.answer(overlapping)
    assert oracle.ledger.max_spent == 0.0


@given(st.integers(1, 24 * 10**9))
def test_a_computed_loss_is_the_least_that_covers_its_ratio(nano: int) -> None:
    """e^epsilon itself costs epsilon and no more; anything above costs a nano-nat more."""
    assert nano_of_ratio(exp_epsilon(nano)) == nano
    assert nano_of_ratio(exp_epsilon(nano) * (1 + Fraction(1, 10**30))) == nano + 1


def test_e_to_a_part_of_a_nano() -> None:
    """The exponential of a fraction of nano-nats lies just below e^epsilon, and its powers below
    the exponential of the whole."""
    third = exp_epsilon(Fraction(10**9, 3))
    assert float(third) == pytest.approx(math.exp(1 / 3), rel=1e-15)
    assert exp_epsilon(10**9) * (1 - Fraction(1, 10**40)) < third**3 < exp_epsilon(10**9)


def test_losses_add_up_and_are_never_negative() -> None:
    """Epsilons and deltas add; a loss below 0, which would be a refund, and one that is no whole
    number are refused."""
    assert Pure(2) + Pure(3) == Pure(5)
    assert Pure(2) + Approximate(3, 4) == Approximate(3, 4) + Pure(2) == Approximate(5, 4)
    assert str(Pure(5 * 10**8)) == "epsilon 0.5"
    assert str(Approximate(10**9, 10**12)) == "epsilon 1 and delta 1e-06"
    for build in (
        lambda: Pure(-1),
        lambda: Pure(True),
        lambda: Approximate(1, -1),
        lambda: Approximate(-1, 1),
    ):
        with pytest.raises(InputError, match="0 or more"):
            build()


@wrong(
    "local_dp.loss:Concentrated.__add__",
    "-other.nano ** 2 // 2",
    "-other.nano ** 2 // 4",
    "a pure loss has rho eps^2 / 2, and half of it is paid",
)
def test_concentrated_losses_add_up() -> None:
    """Rhos add; a pure loss e adds e^2 / 2, rounded up to 1e-18, from either side; an approximate
    one adds to none."""
    assert Concentrated(2) + Concentrated(3) == Concentrated(5)
    assert Concentrated(1) + Pure(3) == Pure(3) + Concentrated(1) == Concentrated(6)
    assert str(Concentrated(5 * 10**17)) == "rho 0.5"
    with pytest.raises(TypeError):
        Concentrated(1) + Approximate(1, 1)  # type: ignore[operator]
    with pytest.raises(InputError, match="0 or more"):
        Concentrated(-1)
