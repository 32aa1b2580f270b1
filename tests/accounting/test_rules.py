"""What many losses come to together, by every rule: against golden figures, closed forms, an
established accountant and brute force in fractions."""

import math
from collections import Counter
from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_dp.accounting.laws import Exact, Summed, binomial_curve, on_mesh
from local_dp.accounting.losses import (
    DiscreteGaussian,
    Gaussian,
    Lattice,
    conversion,
    discrete_laplace,
    gaussian_delta,
    gaussian_epsilon,
    response,
    rho_within,
)
from local_dp.accounting.rules import RULES, Losses, delta, epsilon, losses_of
from local_dp.loss import ATTO, NANO, Approximate, Concentrated, Pure, exp_epsilon, nano_epsilon
from tests.support.inputs.refusals import refuse
from tests.support.long import short
from tests.support.wrong import wrong

ABOVE = 1e-3  # nats that the exact rule may be too large by


def price(terms: str, delta: float, rule: str = "exact") -> float:
    return epsilon(losses_of(terms), delta, rule)


@pytest.mark.parametrize(("terms", "expected"), [
    ("pure 0.1 x 100", [10, 6.31, 5.76, 5.22, 4.775]),
    ("pure 0.01 x 10000", [100, 6.26, 5.76, 5.22, 4.886]),
])  # fmt: skip
def test_golden_figures(terms: str, expected: list[float]) -> None:
    """A hundred steps of .1 and ten thousand of .01 beside delta 1e-6: basic, advanced, tanh form,
    zCDP, exact."""
    digits = [0, 2, 2, 2, 3]
    assert [
        round(price(terms, 1e-6, rule), places) for rule, places in zip(RULES, digits, strict=True)
    ] == expected


@wrong(
    "local_dp.accounting.rules:_up",
    "math.ceil(Fraction(repr(number)) * units)",
    "check(number)",
    "many small losses come to half of what they are",
)
def test_what_a_mechanism_loses_is_rounded_up() -> None:
    """Epsilons to 1e-9 and deltas to 1e-18: a hundred million answers of 1.9e-9 are 0.2 in all, not
    0.1, and a million deltas of 1.9e-18 exceed 1.5e-12."""
    assert losses_of(
        "pure 0.0000000019 + discrete-laplace 2.5e-9 + approximate 0.1 1.9e-18"
    ) == Counter([Pure(2), discrete_laplace(3), Approximate(NANO // 10, 2)])
    for digits in (1, 0.7, 0.1234567894, 24):
        assert 0 <= epsilon(losses_of(f"pure {digits}"), 1e-6, "basic") - digits < 1e-9
    assert price("discrete-laplace 0.0000000019 x 100000000", 1e-6, "basic") >= 0.19
    assert math.isinf(price("approximate 1 1.9e-18 x 1000000", 1.5e-12))


@wrong(
    "local_dp.accounting.laws:Atoms.on_mesh",
    "np.minimum(1.0, np.expm1(-over) / math.expm1(-mesh))",
    "0.0",
    "a loss between two points of the mesh counts as the lower one: prices fall below what is "
    "spent",
    at="1e-15-0.2",
)
@pytest.mark.parametrize("sigma", short([0.2, 5, 1000], lambda sigma: sigma > 1))
@pytest.mark.parametrize("rare", [1e-15, 0.01])
def test_exact_is_the_closed_gaussian_price(sigma: float, rare: float) -> None:
    """At most .001 above and never below, for one answer and for 16 of four times the noise, which
    are the same; delta within a thousandth."""
    closed = gaussian_epsilon(1 / sigma, rare)
    curve = Summed.of({Gaussian.of_sigma(sigma): 1}).curve(-math.log(rare))
    assert closed <= curve.epsilon(rare) <= closed + ABOVE
    assert epsilon({Gaussian.of_sigma(sigma * 4): 16}, rare) == pytest.approx(closed, rel=1e-9)
    exact = gaussian_delta(1 / sigma, closed)
    assert exact * (1 - 1e-9) <= delta({Gaussian.of_sigma(sigma): 1}, closed) <= exact * (1 + ABOVE)


# terms, delta, and what dp_accounting 0.6.0 says: its optimistic and its pessimistic estimate on a
# mesh of 2e-6
ACCOUNTED = [
    ("pure 0.1 x 50 + pure 0.25 x 20", 1e-6, 6.2859434, 6.2860835),
    ("discrete-laplace 0.5 4 x 20", 1e-6, 9.7175147, 9.7175148),
    ("discrete-laplace 1 10 x 8", 1e-8, 7.9999982, 7.9999983),
    ("gaussian 5 x 10", 1e-6, 2.9215905, 2.9216006),
    ("discrete-gaussian 5 x 20", 1e-6, 4.3061528, 4.3061689),
    ("pure 0.1 x 20 + gaussian 4 x 5 + discrete-laplace 0.3 3 x 6", 1e-6, 4.5337739, 4.533819),
    (
        "pure 0.2 x 10 + discrete-gaussian 6 x 12 + gaussian 10 x 7 + discrete-laplace 0.4 2 x 5",
        1e-5,
        5.1231669,
        5.1232253,
    ),
]


@wrong(
    "local_dp.accounting.laws:transformed",
    "np.fft.rfft(counts) ** part.count",
    "np.fft.rfft(counts) ** max(1, part.count - 1)",
    "one of several equal parts is not paid for",
    at="pure 0.1 x 50 + pure 0.25 x 20",
)
@pytest.mark.parametrize(
    ("terms", "rare", "low", "high"), ACCOUNTED, ids=[terms for terms, *_ in ACCOUNTED]
)
def test_exact_is_between_another_accountants_estimates(
    terms: str, rare: float, low: float, high: float
) -> None:
    """Never below the established accountant's lower estimate, and above its upper one by the cost
    of the mesh at most."""
    assert low <= price(terms, rare) <= high + ABOVE / 2


@settings(max_examples=8, derandomize=True)
@given(
    st.lists(
        st.tuples(st.integers(1, 12), st.integers(1, 3)),
        min_size=2,
        max_size=4,
        unique_by=lambda part: part[0],
    ),
    st.integers(0, 40),
    st.integers(0, 10**15),
)
def test_unequal_parts_are_brute_force_in_fractions(
    parts: list[tuple[int, int]], whole: int, atto: int
) -> None:
    """The transform's delta of unequal pure parts and an approximate one is that of the convolution
    in fractions, 1e-6 above at most; so is epsilon."""
    nano = NANO // 10
    growth = exp_epsilon(nano)
    one = response(growth, 2, Fraction(atto, ATTO))
    laws = [response(growth, steps).times(count) for steps, count in parts] + [one]
    exact = sum(laws[1:], laws[0])
    losses: Counter[Pure | Approximate] = Counter(
        {Pure(steps * nano): count for steps, count in parts}
    )
    losses[Approximate(2 * nano, atto)] += 1
    epsilon_asked = whole * 0.1 + 0.05
    truth = float(exact.delta(exp_epsilon(round(epsilon_asked * NANO))))
    assert truth * (1 - 1e-12) <= delta(losses, epsilon_asked) <= truth * (1 + 1e-6) + 1e-15
    if truth > 2 * atto / ATTO + 1e-9:
        assert epsilon(losses, truth) == pytest.approx(epsilon_asked, abs=1e-6)


@pytest.mark.parametrize("parts", [1, 5, 40])
def test_the_log_domain_is_the_fractions(parts: int) -> None:
    """The curve in floats is never below the one in fractions, and a millionth above at most; its
    epsilon spends delta, and a little less does not fit."""
    nano = 7 * NANO // 10
    curve = binomial_curve(Pure(nano), parts)
    exact = response(exp_epsilon(nano)).times(parts)
    for whole in (0, nano // 3, nano, parts * nano // 2):
        truth = float(exact.delta(exp_epsilon(whole)))
        assert truth * (1 - 1e-12) <= curve.delta(whole / NANO) <= truth * (1 + 1e-6)
    least = curve.epsilon(1e-3)
    cost = exact.delta(exp_epsilon(math.ceil(least * NANO)))
    less = math.floor((least - 1e-6) * NANO)
    assert cost <= Fraction(1, 1000) < exact.delta(exp_epsilon(max(0, less)))


@pytest.mark.parametrize(("each", "parts"), [(0.01, 10**4), (0.001, 10**6), (0.3, 7)])
@pytest.mark.parametrize("rare", [1e-15, 0.1])
def test_the_transform_is_the_binomial_curve(each: float, parts: int, rare: float) -> None:
    """Equal parts have one price by the transform and by the binomial curve: 7 and a million of
    them, small and large delta."""
    part = Pure(nano_epsilon(each))
    closed = binomial_curve(part, parts).epsilon(rare)
    assert closed <= Summed.of({part: parts}).epsilon(rare) <= closed + 1e-6


def test_a_million_parts_are_nearly_gaussian() -> None:
    """A million unequal parts on no common mesh cost within .001 of their limit, the closed
    Gaussian price; normal noise much narrower than the mesh keeps its mass."""
    masses = on_mesh(Gaussian(10**6), 1e-3)[1]
    assert 1 <= masses.sum() < 1 + 1e-9
    losses = {Pure(1_234_567): 500_000, Pure(765_432): 500_000}
    mu = math.sqrt(sum(count * part.epsilon**2 for part, count in losses.items()))
    assert epsilon(losses, 1e-6) == pytest.approx(gaussian_epsilon(mu, 1e-6), abs=ABOVE)
    assert epsilon({DiscreteGaussian.of_sigma(1000): 10**6}, 1e-6) == pytest.approx(
        gaussian_epsilon(1, 1e-6), abs=ABOVE
    )


@pytest.mark.parametrize("part", [DiscreteGaussian.of_sigma(5), Pure(NANO)])
def test_a_tiny_delta_has_a_price(part: Exact) -> None:
    """Beside 1e-120 that of normal noise is closed, and a sum's the least of all rules."""
    noise = Gaussian.of_sigma(9)
    assert epsilon({noise: 9}, 1e-120) == pytest.approx(gaussian_epsilon(1 / 3, 1e-120))
    prices = [epsilon({noise: 1, part: 3}, 1e-120, rule) for rule in RULES]
    assert prices[-1] == min(prices[:-1]) <= max(prices) < math.inf
    assert binomial_curve(Pure(NANO), 10**6).delta(1.0) == 1.0  # below the losses that are kept


def test_losses_of_nothing_cost_nothing() -> None:
    """An epsilon of 0 adds none; of several small chances of a full disclosure, that of any
    counts."""
    leaky = {Approximate(0, ATTO // 1000): 2}
    assert [epsilon({Pure(0): 3}, 1e-6, rule) for rule in ("basic", "tanh", "exact")] == [0.0] * 3
    assert [epsilon(leaky, rare) for rare in (1.9991e-3, 1.9989e-3)] == [0, math.inf]
    assert delta(leaky, 0.0) == pytest.approx(1 - 0.999**2, rel=1e-9)


def test_the_most_rho_within_a_budget() -> None:
    """It is converted to no more than epsilon, and a billionth more of it to more."""
    most = rho_within(Approximate(NANO, ATTO // 10**6)).rho
    assert conversion(most, 1e-6) <= 1 < conversion(most * (1 + 1e-9), 1e-6)


def test_concentrated_losses_are_converted() -> None:
    """Rhos add up in the zCDP rule, pure parts with eps^2 / 2; elsewhere a rho is converted beside
    its share of delta."""
    assert conversion(0.5, 1e-6) == pytest.approx(5.2215, abs=1e-4)
    mixed: Losses = {Concentrated(ATTO // 4): 1, Pure(NANO // 10): 50}
    alone = epsilon({Gaussian.of_sigma(1): 1}, 1e-6, "zcdp")
    assert epsilon(mixed, 1e-6, "zcdp") == conversion(0.5, 1e-6) == alone
    each = conversion(0.25, 1e-6)
    one: Losses = {Concentrated(ATTO // 4): 1}
    assert epsilon(one, 1e-6, "basic") == pytest.approx(each, rel=1e-11)
    assert epsilon(one, 2e-6, "advanced") == pytest.approx(
        each * (math.sqrt(-2 * math.log(1e-6)) + math.expm1(each)), rel=1e-11
    )


def test_what_no_delta_pays_for() -> None:
    """Where the parts' own deltas come to as much, no rule but the exact one at more finds an
    epsilon; no rule promises what costs more."""
    leaky = {Approximate(NANO // 10, ATTO // 1000): 10}
    # of ten chances of .001, the exact rule knows that two may fall together
    rares = (1e-4, 1e-2 - 1e-5, 1e-2 + 1e-9)
    enough = [epsilon(leaky, rare, rule) < math.inf for rare in rares for rule in RULES]
    assert enough == [False] * 9 + [True] * 6
    assert delta({Pure(NANO): 2}, 1.0, "basic") == 1.0
    assert delta({Pure(NANO): 2}, 2.0, "basic") == 1e-18


def test_bad_input() -> None:
    """A delta of 0 or 1, an epsilon below 0, an unknown rule, no losses, no count."""
    one: dict[Pure, int] = {Pure(NANO): 1}
    mixed: Losses = {Concentrated(ATTO // 4): 1, Pure(NANO // 10): 50}
    losses: list[tuple[str, Losses]] = [
        ("at least one", {}),
        ("is 0; give", {Pure(NANO): 0}),
        ("whole number", {Lattice(Fraction(2), 0, (1,)): 10**9}),
        ("no worst law", mixed),
    ]
    refuse(
        *(
            ("strictly between 0 and 1", partial(epsilon, one, rare))
            for rare in (0.0, 1.0, math.nan)
        ),
        ("0 or more", lambda: delta(one, -1.0)),
        ("no rule 'exakt'; did you mean 'exact'", lambda: epsilon(one, 1e-6, "exakt")),
        ("worth no rho", lambda: rho_within(Approximate(NANO, 0))),
        *((word, partial(epsilon, bad, 1e-6)) for word, bad in losses),
    )


def test_bad_terms() -> None:
    bad = {
        "nope 1": "no kind of mechanism 'nope'",
        "discrete-laplce 1": "did you mean 'discrete-laplace'",
        "pure": "of the form 'pure EPSILON'",
        "pure 1 2": "of the form 'pure EPSILON'",
        "discrete-laplace": r"'discrete-laplace EPSILON \[SENSITIVITY\]'",
        "pure 1 +": "a term is empty",
        "": "a term is empty",
        "x 3": "a term is empty",
        "pure a": "'a' is no number",
        "pure nan": "epsilon is nan",
        "pure 1 x 0": "the count is 0",
        "pure 1 x 2.5": "the count is '2.5'",
        "gaussian 0": "sigma is 0",
        "discrete-laplace 1 1000": "the sensitivity is 1000",
        "approximate 0.1 1": "delta is 1",
    }
    refuse(*((word, partial(losses_of, terms)) for terms, word in bad.items()))


def test_terms_are_counted() -> None:
    assert losses_of("pure 0.1 x 1e4 + pure .1+gaussian 1e+1 × 2") == {
        Pure(NANO // 10): 10_001,
        Gaussian.of_sigma(10): 2,
    }
    assert losses_of("Discrete-Gaussian 2 * 3 + discrete-laplace 0.5 2") == {
        DiscreteGaussian.of_sigma(2): 3,
        discrete_laplace(NANO // 2, 2): 1,
    }
