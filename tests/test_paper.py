"""Small statements of the paper, and corrections of it, that no other test holds: each by
enumeration (docs/limits.md, docs/theory/map.md)."""

import math
from itertools import product

import numpy as np
import pytest

from local_dp.arrays import Ints
from local_dp.bounds.channels import parity_interactive_bound
from local_dp.bounds.masked_parity import masked_parity_one_round_bound
from local_dp.bounds.posterior import posterior_budget
from local_dp.bounds.response import response_gain
from local_dp.cube import character
from local_dp.curator.parity import gf2
from local_dp.interaction import Nonadaptive, run
from local_dp.masked.population import Concept
from local_dp.masked.queries import MaskedBit
from local_dp.masked.statistical import MidpointOracle, two_round_learner
from local_dp.oracles.statistical.oracles import StatisticalQuery
from local_dp.populations.concepts import masked_parity


@pytest.mark.parametrize("d", [3, 4, 6])
def test_the_printed_query_has_mean_one_in_2d(d: int) -> None:
    """E1: E[g_j] is r_j / (2d), not 1 / 2^d, and E2: the signed query's mean is (-1)^(r_j) / (2d),
    so both tell r_j within 1/(2d) on the +-1 scale."""
    concepts = masked_parity(d)
    i, b = concepts.points.whole("i"), concepts.points.whole("b")
    for r, a, j in product(range(1 << d), (0, 1), range(d)):
        y = concepts.row(2 * r + a)
        literal = float(((i == j) & (b == 1) & (y == -1)).mean())
        signed = float(
            np.where((i == j) & (b == 1), y, character(1, concepts.points.words("x"))).mean()
        )
        assert literal == pytest.approx((r >> j & 1) / (2 * d))
        assert (
            signed
            == pytest.approx(MaskedBit(d, j).mean(r, a))
            == pytest.approx((1 - 2 * (r >> j & 1)) / (2 * d))
        )


@pytest.mark.parametrize("d", [3, 5, 6])
def test_d_need_not_be_a_power_of_two(d: int) -> None:
    """E3: with i uniform on 0..d-1 the two rounds of Section 5.1 learn the concepts exactly for d =
    3, 5, 6, also from a hostile oracle."""
    for r, a in product(range(0, 1 << d, 1 if d == 3 else 5), (0, 1)):
        assert run(two_round_learner(d), MidpointOracle(d, r, a)) == Concept(d, r, a)


@pytest.mark.parametrize("d", [4, 5])
def test_error_a_quarter_needs_no_interaction(d: int) -> None:
    """E6: d queries that are fixed beforehand reach error exactly 1/4 on every concept, whatever a
    legal oracle hides."""
    concepts = masked_parity(d)
    x, b = concepts.points.words("x"), concepts.points.whole("b")
    queries = tuple(StatisticalQuery(MaskedBit(d, j), 0.9 / (2 * d)) for j in range(d))

    def decode(answers: tuple[float, ...]) -> Ints:
        r = sum(1 << j for j, answer in enumerate(answers) if answer < 0)
        return np.where(b == 1, concepts.row(2 * r), character(r, x) * character(1, x))

    for r, a in product(range(1 << d), (0, 1)):
        hypothesis = run(Nonadaptive(queries, decode), MidpointOracle(d, r, a))
        assert float((hypothesis != concepts.row(2 * r + a)).mean()) == 0.25
    assert {Concept(d, 3, 0).error(Concept(d, 3, a)) for a in (0, 1)} == {0.0, 0.5}


def solutions(rows: tuple[int, ...], sides: tuple[int, ...], d: int) -> dict[int, float]:
    """The law of a uniform solution of <row, r> = side; nothing where there is none."""
    system = gf2.solve(
        np.array(rows, dtype=np.uint64).reshape(-1, 1), np.array(sides, dtype=np.uint8), d
    )
    if system is None:
        return {}
    picks = {int(system.pick(np.array([coins], dtype=np.uint64))[0]) for coins in range(1 << d)}
    assert len(picks) == 1 << system.dimension
    return dict.fromkeys(picks, 1 / len(picks))


def growths(d: int, equations: int) -> set[float]:
    """Pr[h | T and one more example] / Pr[h | T] over all sets T of up to 2 examples, all further
    ones, which bring so many equations each, and all h."""
    examples = list(product(range(1 << d), (0, 1)))
    ratios = set()
    for size in range(3):
        for database in product(examples, repeat=size):
            before = solutions(tuple(x for x, _ in database), tuple(y for _, y in database), d)
            for more in product(examples, repeat=equations):
                after = solutions(
                    tuple(x for x, _ in (*database, *more)),
                    tuple(y for _, y in (*database, *more)),
                    d,
                )
                assert after.keys() <= before.keys()  # a further equation adds no solution
                ratios |= {after.get(h, 0.0) / share for h, share in before.items()}
    return ratios


def test_one_more_example_at_most_doubles_a_hypothesis() -> None:
    """Claim 3.3, on every consistent and inconsistent database of 3 examples over {0,1}^2: the
    factor is 0, 1 or 2. A learner whose examples bring two equations each breaks it: 4."""
    assert growths(2, 1) == {0.0, 1.0, 2.0}
    assert max(growths(2, 2)) == 4.0


@pytest.mark.parametrize("epsilon", [0.3, 1.0, math.log(3), 1.5])
def test_the_parity_bounds_have_the_proofs_constants(epsilon: float) -> None:
    """Limits 3.3 and 4.2: the greatest (E - 1)(A - 1) / (2 A^2) is 1/C^2 up to epsilon ln 3 and not
    beyond; I_up is its counterpart with b = 1 beside it."""
    growth = math.exp(epsilon)
    high = np.linspace(1, (growth + 1) / 2, 200_001)
    information = float(((growth - 1) * (high - 1) / (2 * high**2)).max())
    assert (information == pytest.approx(response_gain(epsilon) ** -2)) is (
        epsilon <= math.log(3) + 1e-12
    )
    c = (-math.log1p(-1 / response_gain(epsilon)) - 1 / response_gain(epsilon)) * response_gain(
        epsilon
    ) ** 2
    assert parity_interactive_bound(8, epsilon, 0.9) == pytest.approx(
        (math.log(2**-8 / 0.9) / 2**8 + (1 - 2**-8) * math.log((1 - 2**-8) / 0.1))
        * 2**8
        / (c * information)
    )
    masked = float(((growth - 1) * (high - 1) / (high * (high + 1))).max())
    apart = (growth - 1) / (growth + 3)
    budget = posterior_budget(apart, min(masked / 4, apart**2), 0.9)
    assert masked_parity_one_round_bound(8, epsilon, 0.9) == pytest.approx(2**10 * budget / masked)
