"""PRSMA: its exact law on small databases under every failure pattern, and twins that are not
private."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, product

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
from tests.support.wrong import wrong

TERMS = Terms(1.0, 0.05)  # six pieces


def patterns(ones: int, answers: list[tuple[int, ...]]) -> list[frozenset[tuple[int, int]]]:
    """All choices, for each number of ones below `ones`, of the answers that are lost; `answers`:
    the choices that there are."""
    return [
        frozenset((one, answer) for one, losses in enumerate(choices) for answer in losses)
        for choices in product(answers, repeat=ones)
    ]


@dataclass(frozen=True)
class Toy:
    """Answers 0, 1 or 2 to so many `records`, by how many of them are 1; fails instead of the
    answers `losses` to so many ones."""

    losses: frozenset[tuple[int, int]]  # ones, answer
    records: int = 1
    more: int = 19

    @property
    def loss(self) -> Pure:
        """One more 1 takes the weight of 0 from 10 records + more - 10 to 10 records, at worst."""
        return Pure(nano_of_ratio(Fraction(10 * self.records + self.more - 10, 10 * self.records)))

    def law(self, database: Labelled) -> Law[int | Fail]:
        ones, n = int(database.x.sum()), len(database.x)
        law: dict[int | Fail, int] = {FAIL: 0}
        zeros = n - ones
        weights = self.more * zeros + 10 * ones, 10 * zeros + self.more * ones, 11 * n
        for answer, weight in enumerate(weights):
            outcome = FAIL if (ones, answer) in self.losses else answer
            law[outcome] = law.get(outcome, 0) + weight
        return law

    def attempt(self, database: Labelled, draws: Draws) -> int | Fail:
        law = self.law(database)
        return list(law)[draws.among(list(law.values()))]


WHOLE: list[tuple[int, ...]] = [(), (0, 1, 2)]
SINGLE = [choice for size in range(4) for choice in combinations(range(3), size)]


def robust(toy: Toy, terms: Terms = TERMS) -> RobustRelease[int]:
    return RobustRelease(toy, toy.records, terms)


def binary(n: int) -> SmallDatabases[tuple[int, int], Labelled]:
    return SmallDatabases([(0, 0), (1, 0)], n, Labelled.of)


DELTA = Fraction(robust(Toy(frozenset())).loss.atto, ATTO)


@pytest.mark.parametrize(
    "failures",
    [patterns(2, SINGLE)[::8], pytest.param(patterns(2, SINGLE), marks=pytest.mark.long)],
    ids=["some", "all"],
)
def test_private_whatever_fails(failures: list[frozenset[tuple[int, int]]]) -> None:
    """Three outcomes, six pieces of one record: all 64 failure patterns, all databases. The delta
    that is claimed is not empty: below 3/5."""
    assert (
        0
        < max(binary(6).worst_delta(robust(Toy(each))) for each in failures)
        <= DELTA
        < Fraction(3, 5)
    )


def test_private_on_random_pieces_of_two() -> None:
    releases = [robust(Toy(failures, records=2, more=14)) for failures in patterns(3, WHOLE)]
    worst = max(binary(12).worst_delta(release) for release in releases)
    assert 0 < worst <= Fraction(releases[0].loss.atto, ATTO) < Fraction(3, 5)


def answers(law: Law[int | Fail]) -> dict[int, int]:
    return {answer: weight for answer, weight in law.items() if not isinstance(answer, Fail)}


@dataclass(frozen=True)
class Conditioned(RobustRelease[int]):
    """Twin: conditioned on success. The answer is that of the first surviving piece."""

    def answer_law(self, laws: Sequence[Law[int | Fail]]) -> dict[int, Fraction]:
        shares: dict[int, Fraction] = defaultdict(Fraction)
        none = Fraction(1)
        for law in laws:
            survives, total = (1 - failing(law)) ** self.terms.runs, sum(answers(law).values())
            for answer, weight in answers(law).items():
                shares[answer] += none * survives * Fraction(weight, total)
            none *= 1 - survives
        return shares


@dataclass(frozen=True)
class Estimated(RobustRelease[int]):
    """Twin: the failure rate is estimated on all the data; an answer is given if no run fails
    there."""

    def law(self, database: Labelled) -> Law[int | None]:
        law = self.base.law(database)
        chance, total = (1 - failing(law)) ** self.terms.runs, max(1, sum(answers(law).values()))
        shares: dict[int | None, Fraction] = {
            answer: chance * Fraction(weight, total) for answer, weight in answers(law).items()
        }
        return whole_weights({**shares, None: 1 - chance})


@pytest.mark.parametrize(("twin", "ones"), [(Conditioned, 2), (Estimated, 7)])
def test_conditioning_on_success_is_not_private(twin: type[RobustRelease[int]], ones: int) -> None:
    """One record decides whether anything survives, by the pieces or on all the data."""
    assert (
        max(
            binary(6).worst_delta(twin(Toy(failures), 1, TERMS))
            for failures in patterns(ones, WHOLE)
        )
        == 1
    )


@wrong(
    "local_dp.curator.oracle_efficient.robust:RobustRelease._epsilon",
    "self.terms.nano + nano_of_ratio(Fraction(enough + 2, enough + 1))",
    "self.terms.nano",
    "one survivor more changes whose answer is told, and that is not paid",
    at="0.5",
)
@pytest.mark.parametrize("epsilon", [1 / 2, 1 / 12])
def test_the_price_of_enough_survivors_is_exact(epsilon: float) -> None:
    """M = 1 / eps* others survive, and one more whose answer is twice as likely: eps* + ln((M + 2)
    / (M + 1)), the epsilon of the release."""
    m, release = round(1 / epsilon), robust(Toy(frozenset()), Terms(epsilon, 1e-3))
    others: list[Law[int | Fail]] = [{0: 1, 1: 3}] * m

    def ratio(others: list[Law[int | Fail]]) -> float:
        laws: list[Law[int | Fail]] = [{0: 2, 1: 2}, {FAIL: 1}]
        more, fewer = (release.answer_law([*others, law])[0] for law in laws)
        return math.log(more / fewer)

    assert release.terms.enough == m
    assert ratio(others) == pytest.approx(epsilon + math.log((m + 2) / (m + 1)), abs=1e-8)
    assert ratio(others) <= release.loss.epsilon < 2 * epsilon
    assert ratio(others[: m // 2]) > release.loss.epsilon


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 0.1), (1, 0.05), (0.25, 0.02), (1 / 48, 1e-6)])
def test_terms_keep_what_they_say(epsilon: float, delta: float) -> None:
    """M survivors pass with delta* at most, and would not at a threshold one lower; all pieces fail
    to with delta* at most; R runs betray a bad piece."""
    terms = Terms(epsilon, delta)
    assert terms.pass_chance(terms.enough) <= Fraction(delta) < terms.pass_chance(terms.enough + 1)
    assert 1 - terms.pass_chance(terms.pieces) <= Fraction(delta)
    assert terms.pieces * (1 - delta) ** terms.runs <= delta
    growth = exp_epsilon(terms.nano)
    for t in range(0, terms.pieces, 1 + terms.pieces // 10):
        chance = terms.pass_chance(t)
        assert chance < terms.pass_chance(t + 1) <= growth * chance


def test_cuts_are_random_partitions() -> None:
    """Of 3 ones and 2 zeros in two pieces of two: each way with its share of the 5! orders."""
    ways = dict[tuple[int, ...], Fraction]()
    for pieces, share in cuts(Labelled.of(((1, 0),) * 3 + ((0, 0),) * 2), 2, 2):
        ways[tuple(sorted(sum(x for x, _ in piece) for piece in pieces))] = share
    assert ways == {(0, 2): Fraction(1, 5), (1, 2): Fraction(2, 5), (1, 1): Fraction(2, 5)}


@dataclass(frozen=True)
class Biased:
    """Fails where the first example's label is 1."""

    def minimise(self, data: Weighted) -> Certified | Fail:
        return FAIL if data.weights[0] < 0 else Exhaustive(Conjunctions(1)).minimise(data)


def test_failures_by_label_tell_the_label_unless_robust() -> None:
    """Alone they do with certainty; robust, within the delta that is said."""
    attempt = Attempt(Perturbation(Conjunctions(1), 0.5), Biased())
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
        Cheap(Toy(failures), 1, terms)
        for failures in (frozenset([(1, 0)]), frozenset[tuple[int, int]]())
    )
    assert (terms.pieces, terms.runs) == (2, 2)
    assert follows(lambda draws: release.release(database, draws), release.law(database))
    assert not follows(lambda draws: release.release(database, draws), other.law(database))


@wrong(
    "local_dp.curator.oracle_efficient.robust:RobustRelease._delta",
    "1 + math.exp(self._epsilon().epsilon)",
    "math.exp(self._epsilon().epsilon)",
    "a bad event counts on both databases",
    at="1-0.5-0.05",
)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.05), (0.25, 0.02), (0.1, 1e-3)])
@pytest.mark.parametrize("records", [1, 10**6])
def test_the_delta_is_that_of_the_proof(epsilon: float, delta: float, records: int) -> None:
    """g + apart + (1 + e^epsilon) (K (1 - delta*)^R + delta*), in 50 digits and rounded up by at
    most 1e-8 of it."""
    terms = Terms(epsilon, delta)
    each = 0.125 / math.sqrt(records) if records > 1 else 0.5
    base = Attempt(Perturbation(Conjunctions(1), each), Exhaustive(Conjunctions(1)))
    release = RobustRelease(base, records, terms)
    with localcontext(prec=50):
        star, growth = Decimal(delta), (Decimal(release.loss.nano) / NANO).exp()
        unlike = terms.pieces * (1 - star) ** terms.runs + star
        chance = terms.pass_chance(terms.enough)
        exact = (
            Decimal(chance.numerator) / chance.denominator
            + Decimal(apart(base.loss.epsilon, records, terms.pieces))
            + (1 + growth) * unlike
        )
        assert exact <= Decimal(release.loss.atto) / ATTO <= exact * (1 + Decimal(10) ** -8)


@pytest.mark.parametrize(("records", "epsilon"), [(100, 0.03), (400, 0.01)])
def test_disagreement_is_counted_exactly(records: int, epsilon: float) -> None:
    """For a base that answers 0 with probability e^(eps (ones - l)) / 2, on two random halves of a
    balanced table. Of each answer take E[the larger probability, where the two are more than a
    factor 2 e^-eps apart]. Both together are positive and at most `apart`."""
    ones, disagree = np.arange(records + 1), 0.0
    chance = hypergeom(2 * records, records, records).pmf(ones)
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
