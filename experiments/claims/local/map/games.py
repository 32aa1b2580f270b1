"""The games behind the map: statistical queries against oracles that hide what they may, one for
masked parity and one for parity."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from numpy.random import default_rng

from local_dp.bounds.masked_parity import coset_tolerance, success_bound
from local_dp.bounds.parity import parities_told, parity_sq_queries, parity_sq_success
from local_dp.experiments.lab.parts import Check, Row, Rows
from local_dp.hardness import adversary
from local_dp.hardness.certificates import verify_certificate
from local_dp.interaction import run
from local_dp.masked.population import Concept
from local_dp.masked.statistical import (
    MidpointOracle,
    NonadaptiveLearner,
    bent_learner,
    coset_learner,
    exact_success,
    hidden_set_certificate,
    spectrum,
    two_round_learner,
)
from local_dp.oracles.statistical.oracles import StatisticalQuery
from local_dp.queries.examples import ParityCoset

BELOW = 1 - 1e-9  # just inside a threshold tolerance


@dataclass(frozen=True)
class Single:
    """One round: its exact success over all concepts, its wins against the oracle itself, and what
    certificate and theorem allow."""

    learner: str
    queries: int
    wins: int
    success: str
    certified: str
    bound: float


class Played(Row):
    played: int  # against the oracle that hides the mask
    wins: int  # in two rounds
    tolerance: float
    one_round: list[Single]


class WorstCase(Row):
    """Masked parity against the oracle that hides what it may: two rounds of queries play it, and
    so does one round of as many, as precise."""

    d: int
    targets: int

    def measure(self, seed: int) -> Played:
        d, tolerance = self.d, 0.9 / (2 * self.d)
        masks = default_rng([seed, 200, d]).integers(1 << d, size=self.targets).tolist()
        concepts = [Concept(d, r, a) for r in masks for a in (0, 1)]
        wins = _wins(two_round_learner(d), concepts)
        even = range(0, d + 1, 2)
        finest = max(k for k in even if coset_tolerance(k) > tolerance)
        bent, coset = bent_learner(d, tolerance), coset_learner(d, tolerance, finest, 1)
        single = [
            _one_round("one bent query", bent, d, tolerance, concepts),
            _one_round("one bent-coset query", coset, d, tolerance, concepts),
        ]
        return Played(len(concepts), wins, tolerance, single)


def _wins(learner: Any, concepts: list[Concept]) -> int:
    return sum(
        run(learner, MidpointOracle(concept.d, concept.r, concept.a)) == concept
        for concept in concepts
    )


def _one_round(
    name: str, learner: NonadaptiveLearner, d: int, tolerance: float, concepts: list[Concept]
) -> Single:
    queries = learner.queries
    proof = verify_certificate(hidden_set_certificate(queries, d))
    success = exact_success(learner, tuple(spectrum(query, d) for query in queries))
    # nothing is within an invalid certificate
    limit = proof.figures["success_at_most"] if proof.valid else "0"
    bound = success_bound(d, len(queries), tolerance)
    return Single(name, len(queries), _wins(learner, concepts), str(success), limit, bound)


def worst_case_check(rows: Rows[WorstCase, Played], most: float) -> Check:
    """Two rounds always win; one round, played, wins exactly what its certificate allows, which the
    theorem keeps below `most`."""
    truths, parts = [bool(rows)], []
    for point, play in rows:
        truths.append(play.wins == play.played)
        parts.append(
            f"at d = {point.d} and tolerance {play.tolerance:.3f}, {play.wins} of {play.played} "
            "won in two rounds"
        )
        for single in play.one_round:
            success, limit = Fraction(single.success), Fraction(single.certified)
            truths.append(success == limit <= single.bound < most)
            # all masks are hidden: one of each pair (r, 0), (r, 1) is won
            truths.append(success != Fraction(1, 2) or 2 * single.wins == play.played)
            limits = f"{float(limit):.3f} certified, no learner more than {single.bound:.3f}"
            parts.append(
                f"in one round, with {single.queries} queries of which {single.learner} is about "
                f"the mask, {float(success):.3f} of all concepts ({single.wins} of the "
                f"{play.played}), {limits}"
            )

    return Check(
        (
            "Against the worst-case oracle two rounds of queries always win, and one round of as "
            "many, as precise, does not"
        ),
        all(truths),
        "; ".join(parts),
    )


@dataclass(frozen=True)
class Cosets:
    """Bent cosets of size 2^k, just below their tolerance or at it: the targets found, and the most
    queries."""

    k: int
    below: bool
    tolerance: float
    wins: int
    queries: int


@dataclass(frozen=True)
class FewQueries:
    """2^(d/3) queries of tolerance 2^(-d/3), the values of Blum et al.: the best bent cosets,
    against a target they do not meet."""

    d: int
    queries: int
    tolerance: float
    silent: bool
    alive: int
    success_at_most: str | None


class GamePlay(Row):
    # (queries about single parities, the share of all parities that they find)
    single: list[tuple[int, str]]
    cosets: list[Cosets]
    few: FewQueries


class ParityGame(Row):
    """Parity against the oracle that reveals nothing while it may. For every target, one learner
    queries single parities and one queries bent cosets."""

    d: int

    def measure(self, seed: int) -> GamePlay:
        d = self.d
        counts = sorted({1, 1 << d // 2, (1 << d) - 2, (1 << d) - 1, 1 << d})
        single = []
        for count in counts:
            success = adversary.exact_success(adversary.all_parities(d, 0.9, count), d)
            single.append((count, str(success)))
        cosets = [_play_cosets(d, k, below) for k in range(2, d + 1, 2) for below in (True, False)]
        return GamePlay(single, cosets, _few_queries(3 * math.ceil(d / 3), seed))


def _play_cosets(d: int, k: int, below: bool) -> Cosets:
    tolerance, wins, queries = 2.0 ** (-k / 2) * (BELOW if below else 1.0), 0, 0
    for target in range(1 << d):
        oracle = adversary.SilentOracle(d, target)
        wins += run(adversary.bent_cosets(d, tolerance, k), oracle) == target
        queries = max(queries, oracle.queries)
    return Cosets(k, below, tolerance, wins, queries)


def _few_queries(d: int, seed: int) -> FewQueries:
    tolerance, count = 2.0 ** (-d / 3), 1 << d // 3
    k = max(k for k in range(0, d, 2) if 2.0 ** (-k / 2) > tolerance)
    target = int(default_rng([seed, 201, d]).integers(count << k, 1 << d))
    oracle = adversary.SilentOracle(d, target)
    queries = (StatisticalQuery(ParityCoset(d, k, s), tolerance) for s in range(count))
    answers = oracle.answer(tuple(queries))
    certificate = oracle.certificate()
    proof = None if certificate is None else verify_certificate(certificate)
    most = proof.figures["success_at_most"] if proof is not None and proof.valid else None
    return FewQueries(d, count, tolerance, not any(answers), int(oracle.alive.sum()), most)


def parity_game_check(rows: Rows[ParityGame, GamePlay]) -> Check:
    """Whether each play ends as the bound says: it is reached exactly by asking one by one, and
    within k queries by bent cosets at their tolerance."""
    truths, parts = [bool(rows)], []
    for point, play in rows:
        d = point.d
        for count, success in play.single:
            share = Fraction(success)
            truths.append(share == parity_sq_success(d, count, 0.9))
            truths.append((share == 1) == (count >= (1 << d) - 1))
        shares = ", ".join(f"{success} by {count}" for count, success in play.single)
        parts.append(
            f"at d = {d} and tolerance 0.9, the share of all parities found by asking about so "
            f"many of them is {shares}"
        )
        for row in play.cosets:
            truths.append(row.wins == (1 << d if row.below else 1))
            if row.below:
                least = parity_sq_queries(d, row.tolerance)
                truths.append(least <= row.queries <= least + row.k)
                parts.append(
                    f"just below tolerance 2^-{row.k // 2}, {row.queries} bent queries find all "
                    f"and {least} are needed; at it, they find none but a guess"
                )
        few = play.few
        truths.append(_few_find_nothing(few))
        parts.append(
            f"at d = {few.d}, {few.queries} queries of tolerance {few.tolerance:g} leave "
            f"{few.alive} parities, by a checked certificate"
        )
    return Check(
        (
            "Statistical queries find no more parities than (q (⌈1/τ²⌉ - 1) + 1) / 2^d, in "
            "however many rounds, so q/τ² is about 2^d: played, and met"
        ),
        all(truths),
        "; ".join(parts),
    )


def _few_find_nothing(few: FewQueries) -> bool:
    """True if the oracle stayed silent, and a certificate bounds the success as the theorem
    does."""
    if few.success_at_most is None or not few.silent:
        return False
    least = (1 << few.d) - few.queries * parities_told(few.tolerance)
    limit = Fraction(1, max(1, min(least, adversary.NAMED)))
    most = parity_sq_success(few.d, few.queries, few.tolerance)
    return few.alive >= least > 1 and Fraction(few.success_at_most) <= limit and most < 1
