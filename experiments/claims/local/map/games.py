"""The game behind the map: statistical queries about a parity against an oracle that hides what it
may. Experiment theorem-5.1 plays the one for masked parity."""

import math
from dataclasses import dataclass
from fractions import Fraction

from numpy.random import default_rng

from local_dp.bounds.parity import parities_told, parity_sq_queries, parity_sq_success
from local_dp.experiments.lab.parts import Check, Row, Rows
from local_dp.hardness import adversary
from local_dp.hardness.certificates import verify_certificate
from local_dp.interaction import run
from local_dp.oracles.statistical.oracles import StatisticalQuery
from local_dp.queries.examples import ParityCoset

BELOW = 1 - 1e-9  # just inside a threshold tolerance


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
        "Statistical queries find no more parities than (q (⌈1/τ²⌉ - 1) + 1) / 2^d, in "
        "however many rounds, so q/τ² is about 2^d: played, and met",
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
