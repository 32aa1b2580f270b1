"""PRSMA: its exact law on small databases under every failure pattern, and twins that are not
private."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import chain, combinations
from typing import TypeVar

import numpy as np
import pytest
from scipy.stats import hypergeom

from local_dp.curator.mechanism import Law, SmallDatabases, whole_weights
from local_dp.curator.oracle_efficient.perturbed import Attempt, Perturbation
from local_dp.curator.oracle_efficient.robust import (
    RobustRelease,
    Terms,
    apart,
    cuts,
    failing,
    piece_epsilon,
)
from local_dp.curator.oracle_efficient.separated import (
    FAIL,
    Certified,
    Conjunctions,
    Exhaustive,
    Fail,
    Weighted,
)
from local_dp.curator.selection.exponential import Labelled
from local_dp.draws import Draws
from local_dp.loss import ATTO, NANO, Pure, exp_epsilon, nano_of_ratio
from tests.support.inputs.refusals import refuse
from tests.support.mechanisms.paths import follows
from tests.support.runs.scripted import seeded

T = TypeVar("T")
TERMS = Terms(1.0, 0.05)  # six pieces


def subsets(things: list[T]) -> list[frozenset[T]]:
    return [
        frozenset(some)
        for some in chain.from_iterable(combinations(things, k) for k in range(len(things) + 1))
    ]


@dataclass(frozen=True)
class Toy:
    """Answers 0, 1 or 2 to so many `records`, by how many of them are 1; fails instead of the
    answers `lost` to so many ones."""

    lost: frozenset[tuple[int, int]]  # ones, answer
    records: int = 1
    more: int = 19

    @property
    def loss(self) -> Pure:
        """One more 1 takes the weight of 0 from 10 records + more - 10 to 10 records, at worst."""
        return Pure(nano_of_ratio(Fraction(10 * self.records + self.more - 10, 10 * self.records)))

    def law(self, database: Labelled) -> Law[int | Fail]:
        ones, n = int(database.x.sum()), len(database.x)
        law: dict[int | Fail, int] = {FAIL: 0}
        for answer, weight in enumerate(
            (self.more * (n - ones) + 10 * ones, 10 * (n - ones) + self.more * ones, 11 * n)
        ):
            outcome = FAIL if (ones, answer) in self.lost else answer
            law[outcome] = law.get(outcome, 0) + weight
        return law

    def attempt(self, database: Labelled, draws: Draws) -> int | Fail:
        law = self.law(database)
        return list(law)[draws.among(list(law.values()))]


def whole_pieces(most: int) -> list[frozenset[tuple[int, int]]]:
    """The patterns that fail whatever the answer, by the number of ones up to `most`."""
    return [
        frozenset((one, answer) for one in ones for answer in range(3))
        for ones in subsets(list(range(most + 1)))
    ]


def robust(toy: Toy, terms: Terms = TERMS) -> RobustRelease[int]:
    return RobustRelease(toy, toy.records, terms)


def binary(n: int) -> SmallDatabases[tuple[int, int], Labelled]:
    return SmallDatabases([(0, 0), (1, 0)], n, Labelled.of)


PATTERNS = subsets([(ones, answer) for ones in (0, 1) for answer in range(3)])
DELTA = Fraction(robust(Toy(frozenset())).loss.atto, ATTO)


@pytest.mark.parametrize(
    "patterns", [PATTERNS[::8], pytest.param(PATTERNS, marks=pytest.mark.long)], ids=["some", "all"]
)
def test_private_whatever_fails(patterns: list[frozenset[tuple[int, int]]]) -> None:
    """Three outcomes, six pieces of one record: all 64 failure patterns, all databases. The delta
    that is claimed is not empty: below 3/5."""
    worst = max(binary(6).worst_delta(robust(Toy(lost))) for lost in patterns)
    assert 0 < worst <= DELTA < Fraction(3, 5)


def test_private_on_random_pieces_of_two() -> None:
    releases = [robust(Toy(lost, records=2, more=14)) for lost in whole_pieces(2)]
    assert (
        0
        < max(binary(12).worst_delta(release) for release in releases)
        <= Fraction(releases[0].loss.atto, ATTO)
        < Fraction(3, 5)
    )


@dataclass(frozen=True)
class Conditioned(RobustRelease[int]):
    """Twin: conditioned on success. The answer is that of the first surviving piece."""

    def answer_law(self, laws: Sequence[Law[int | Fail]]) -> dict[int, Fraction]:
        shares: dict[int, Fraction] = {}
        none = Fraction(1)
        for law in laws:
            survives = (1 - failing(law)) ** self.terms.runs
            total = sum(weight for answer, weight in law.items() if not isinstance(answer, Fail))
            for answer, weight in law.items():
                if not isinstance(answer, Fail):
                    shares[answer] = shares.get(answer, Fraction(0)) + none * survives * Fraction(
                        weight, total
                    )
            none *= 1 - survives
        return shares


def test_conditioning_on_success_is_not_private() -> None:
    """One record decides whether anything survives."""
    assert (
        max(binary(6).worst_delta(Conditioned(Toy(lost), 1, TERMS)) for lost in whole_pieces(1))
        == 1
    )


@dataclass(frozen=True)
class Estimated(RobustRelease[int]):
    """Twin: the failure rate is estimated on all the data; an answer is given if no run fails
    there."""

    def law(self, database: Labelled) -> Law[int | None]:
        law = self.base.law(database)
        chance = (1 - failing(law)) ** self.terms.runs
        total = sum(weight for answer, weight in law.items() if not isinstance(answer, Fail))
        shares: dict[int | None, Fraction] = {
            a: chance * Fraction(w, max(1, total))
            for a, w in law.items()
            if not isinstance(a, Fail)
        }
        return whole_weights({**shares, None: 1 - chance})


def test_a_failure_rate_estimated_on_the_data_is_not_private() -> None:
    patterns = [frozenset((ones, answer) for answer in range(3)) for ones in range(7)]
    assert max(binary(6).worst_delta(Estimated(Toy(lost), 1, TERMS)) for lost in patterns) == 1
    assert max(binary(6).worst_delta(robust(Toy(lost))) for lost in patterns) <= DELTA


def answer_ratio(terms: Terms, others: int) -> float:
    """ln of the growth of an answer's probability if one more piece survives, whose law is twice
    that of all others."""
    release = robust(Toy(frozenset()), terms)
    other: Law[int | Fail] = {0: 1, 1: 3}
    with_it = release.answer_law([other] * others + [{0: 2, 1: 2}])[0]
    without = release.answer_law([other] * others + [{FAIL: 1}])[0]
    return math.log(with_it / without)


@pytest.mark.parametrize("epsilon", [1 / 2, 1 / 12])
def test_the_price_of_enough_survivors_is_exact(epsilon: float) -> None:
    """M = 1 / eps* others survive: eps* + ln((M + 2) / (M + 1)), the epsilon of the release; with
    half as many it is more."""
    terms, m = Terms(epsilon, 1e-3), round(1 / epsilon)
    assert terms.enough == m
    assert answer_ratio(terms, m) == pytest.approx(epsilon + math.log((m + 2) / (m + 1)), abs=1e-8)
    assert answer_ratio(terms, m) <= robust(Toy(frozenset()), terms).loss.epsilon < 2 * epsilon
    assert answer_ratio(terms, m // 2) > robust(Toy(frozenset()), terms).loss.epsilon
    prices = {
        k: RobustRelease(Toy(frozenset()), 1, Terms(1 / k, 1e-3)).loss.epsilon * k
        for k in (48, 480)
    }
    assert prices[48] == pytest.approx(1.97, abs=0.001)
    assert prices[48] < prices[480] < 2


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 0.1), (1, 0.05), (0.25, 0.02), (1 / 48, 1e-6)])
def test_terms_keep_what_they_say(epsilon: float, delta: float) -> None:
    """M survivors pass with delta* at most, and would not at a threshold one lower; all pieces fail
    to with delta* at most; R runs betray a bad piece."""
    terms = Terms(epsilon, delta)
    assert terms.pass_chance(terms.enough) <= Fraction(delta) < terms.pass_chance(terms.enough + 1)
    assert 1 - terms.pass_chance(terms.pieces) <= Fraction(delta)
    assert terms.pieces * (1 - delta) ** terms.runs <= delta
    growth = exp_epsilon(terms.nano)
    assert all(
        terms.pass_chance(t) < terms.pass_chance(t + 1) <= growth * terms.pass_chance(t)
        for t in range(0, terms.pieces, 1 + terms.pieces // 10)
    )


def test_cuts_are_random_partitions() -> None:
    """Of 3 ones and 2 zeros in two pieces of two: each way with its share of the 5! orders."""
    ways = {
        tuple(sorted(sum(x for x, _ in piece) for piece in pieces)): share
        for pieces, share in cuts(Labelled.of(((1, 0),) * 3 + ((0, 0),) * 2), 2, 2)
    }
    assert ways == {(0, 2): Fraction(1, 5), (1, 2): Fraction(2, 5), (1, 1): Fraction(2, 5)}


@dataclass(frozen=True)
class Biased:
    """Fails where the first example's label is 1."""

    exact: Exhaustive

    def minimise(self, data: Weighted) -> Certified | Fail:
        return FAIL if data.weights[0] < 0 else self.exact.minimise(data)


def test_failures_by_label_tell_the_label_unless_robust() -> None:
    """Alone they do with certainty; robust, within the delta that is said."""
    queries = Conjunctions(1)
    attempt = Attempt(Perturbation(queries, 0.5), Biased(Exhaustive(queries)))
    assert [failing(attempt.law(Labelled.of(((0, label),)))) for label in (0, 1)] == [0, 1]
    release = RobustRelease(attempt, 1, TERMS)
    assert SmallDatabases([(0, 0), (0, 1)], 6, Labelled.of).worst_delta(release) <= Fraction(
        release.loss.atto, ATTO
    )


@dataclass(frozen=True)
class Cheap(RobustRelease[int]):
    """At terms of so few pieces that they prove nothing."""

    def _delta(self) -> float:
        return 0.9


def test_release_draws_from_its_law() -> None:
    """By all paths of two pieces and two runs, where a run on a 1 may fail; not the law without
    failures."""
    database, terms = Labelled.of(((0, 0), (1, 0), (1, 0))), Terms(4.0, 0.7)
    release, other = (
        Cheap(Toy(lost), 1, terms) for lost in (frozenset([(1, 0)]), frozenset[tuple[int, int]]())
    )
    assert (terms.pieces, terms.runs) == (2, 2)
    assert follows(lambda draws: release.release(database, draws), release.law(database))
    assert not follows(lambda draws: release.release(database, draws), other.law(database))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.05), (0.25, 0.02), (0.1, 1e-3)])
@pytest.mark.parametrize("records", [1, 10**6])
def test_the_delta_is_that_of_the_proof(epsilon: float, delta: float, records: int) -> None:
    """g + apart + (1 + e^epsilon) (K (1 - delta*)^R + delta*), in 50 digits and rounded up by at
    most 1e-8 of it."""
    terms = Terms(epsilon, delta)
    base = Attempt(
        Perturbation(Conjunctions(1), piece_epsilon(terms, records) if records > 1 else 0.5),
        Exhaustive(Conjunctions(1)),
    )
    release = RobustRelease(base, records, terms)
    with localcontext(prec=50):
        star, growth = Decimal(delta), (Decimal(release.loss.nano) / NANO).exp()
        unlike = terms.pieces * (1 - star) ** terms.runs + star
        passed = terms.pass_chance(terms.enough)
        exact = (
            Decimal(passed.numerator) / passed.denominator
            + Decimal(apart(base.loss.epsilon, records, terms.pieces))
            + (1 + growth) * unlike
        )
        assert exact <= Decimal(release.loss.atto) / ATTO <= exact * (1 + Decimal(10) ** -8)


def test_disagreement_has_a_small_delta_at_the_papers_epsilon() -> None:
    """eps' = 1 / sqrt(8 l ln(2 K / delta*)): below delta* for pieces of 1,000 and 10^6; nothing
    where no two pieces can disagree; 1 where nothing is known."""
    for records in (10**3, 10**6):
        epsilon = 1 / math.sqrt(8 * records * math.log(2 * 41 / 0.02))
        assert 0 < apart(epsilon, records, 41) < 0.02
        assert apart(2 * epsilon, records, 41) > 0.02
        terms = Terms(0.25, 0.02)
        assert (
            apart(piece_epsilon(terms, records), records, terms.pieces)
            <= 0.02
            < apart(1.001 * piece_epsilon(terms, records), records, terms.pieces)
        )
        assert piece_epsilon(terms, records) > 1.25 * epsilon
    assert apart(0.3, 2, 41) == 0
    assert apart(0.01, 10**4, 41) == 1


@pytest.mark.parametrize(("records", "epsilon"), [(100, 0.03), (100, 0.02), (400, 0.01)])
def test_disagreement_is_counted_exactly(records: int, epsilon: float) -> None:
    """For a base that answers 0 with probability e^(eps (ones - l)) / 2, on two random halves of a
    balanced table. Of each answer take E[the larger probability, where the two are more than a
    factor 2 e^-eps apart]. Both together are positive and at most `apart`."""
    ones = np.arange(records + 1)
    chance = hypergeom(2 * records, records, records).pmf(ones)
    disagree = 0.0
    zero = np.exp(epsilon * (ones - records)) / 2
    for here in (zero, 1 - zero):
        there = here[::-1]  # the other half has the other ones
        differ = np.abs(np.log(here / there)) > math.log(2) - epsilon
        disagree += float((chance * np.maximum(here, there))[differ].sum())
    assert 0 < disagree < apart(epsilon, records, 2) < 0.9


def test_bad_input() -> None:
    toy = Toy(frozenset())
    refuse(
        ("delta comes to 1", lambda: RobustRelease(toy, 1, Terms(1.0, 0.3))),
        ("need 6", lambda: RobustRelease(toy, 1, TERMS).release(Labelled.of(((0, 0),)), seeded(0))),
        ("epsilon is 0", lambda: Terms(0.0, 0.1)),
        ("delta is 1", lambda: Terms(1.0, 1.0)),
    )
