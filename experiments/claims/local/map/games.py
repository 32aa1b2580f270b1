"""The games behind the map: statistical queries against oracles that hide what they may, one for masked parity and one for parity."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from local_dp.bounds.masked_parity import coset_tolerance, success_bound
from local_dp.bounds.parity import parities_told, parity_sq_queries, parity_sq_success
from local_dp.experiments.lab.claim import Check, Measurement, Point
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

Row = tuple[Point, Measurement]
BELOW = 1 - 1e-9  # just inside a threshold tolerance


def measure_worst_case(d: int, targets: int, seed: int) -> Measurement:
    """Masked parity against the oracle that hides what it may: two rounds of queries play it, and so does one round of as many, as precise."""
    tolerance = 0.9 / (2 * d)
    masks = np.random.default_rng([seed, 200, d]).integers(1 << d, size=targets).tolist()
    concepts = [Concept(d, r, a) for r in masks for a in (0, 1)]
    finest = next(k for k in range(d - d % 2, -1, -2) if coset_tolerance(k) > tolerance)
    single = {"one bent query": bent_learner(d, tolerance), "one bent-coset query": coset_learner(d, tolerance, finest, 1)}
    return {
        "played": len(concepts),
        "wins": _wins(two_round_learner(d), concepts),
        "tolerance": tolerance,
        "one_round": [{"learner": name, **_one_round(learner, d, tolerance, concepts)} for name, learner in single.items()],
    }


def _wins(learner: Any, concepts: list[Concept]) -> int:
    return sum(run(learner, MidpointOracle(concept.d, concept.r, concept.a)) == concept for concept in concepts)


def _one_round(learner: NonadaptiveLearner, d: int, tolerance: float, concepts: list[Concept]) -> Measurement:
    """Its exact success over all concepts, its wins against the oracle itself, and what certificate and theorem allow."""
    checked = verify_certificate(hidden_set_certificate(learner.queries, d))
    return {
        "queries": len(learner.queries),
        "wins": _wins(learner, concepts),
        "success": str(exact_success(learner, tuple(spectrum(query, d) for query in learner.queries))),
        "certified": checked.figures["success_at_most"] if checked.valid else "0",  # nothing is within an invalid certificate
        "bound": success_bound(d, len(learner.queries), tolerance),
    }


def worst_case_check(rows: list[Row], most: float) -> Check:
    """Two rounds always win; one round, played, wins exactly what its certificate allows, which the theorem keeps below `most`."""
    shown, said = bool(rows), []
    for point, found in rows:
        shown = shown and found["wins"] == found["played"]
        said.append(f"at d = {point['d']} and tolerance {found['tolerance']:.3f}, {found['wins']} of {found['played']} won in two rounds")
        for single in found["one_round"]:
            success, certified = Fraction(single["success"]), Fraction(single["certified"])
            shown = shown and success == certified <= single["bound"] < most
            said.append(
                f"in one round, with {single['queries']} queries of which {single['learner']} is about the mask, {float(success):.3f} of all concepts "
                f"({single['wins']} of the {found['played']}), {float(certified):.3f} certified, no learner more than {single['bound']:.3f}"
            )
            if success == Fraction(1, 2):  # all masks are hidden: one of each pair (r, 0), (r, 1) is won
                shown = shown and 2 * single["wins"] == found["played"]
    return Check("Against the worst-case oracle two rounds of queries always win, and one round of as many, as precise, does not", shown, "; ".join(said))


def measure_parity_game(d: int, seed: int) -> Measurement:
    """Parity against the oracle that reveals nothing while it may. For every target, one learner queries single parities and one queries bent cosets."""
    counts = sorted({1, 1 << d // 2, (1 << d) - 2, (1 << d) - 1, 1 << d})
    single = [(asked, str(adversary.exact_success(adversary.all_parities(d, 0.9, asked), d))) for asked in counts]
    cosets = []
    for k in range(2, d + 1, 2):
        for part in (BELOW, 1.0):
            tolerance, wins, queries = 2.0 ** (-k / 2) * part, 0, 0
            for target in range(1 << d):
                oracle = adversary.SilentOracle(d, target)
                wins += run(adversary.bent_cosets(d, tolerance, k), oracle) == target
                queries = max(queries, oracle.queries)
            cosets.append({"k": k, "below": part < 1, "tolerance": tolerance, "wins": wins, "queries": queries})
    return {"single": single, "cosets": cosets, "few": _few_queries(3 * math.ceil(d / 3), seed)}


def _few_queries(d: int, seed: int) -> Measurement:
    """2^(d/3) queries of tolerance 2^(-d/3), the values of Blum et al.: the best bent cosets, against a target they do not meet."""
    tolerance, asked = 2.0 ** (-d / 3), 1 << d // 3
    k = max(k for k in range(0, d, 2) if 2.0 ** (-k / 2) > tolerance)
    oracle = adversary.SilentOracle(d, int(np.random.default_rng([seed, 201, d]).integers(asked << k, 1 << d)))
    answers = oracle.answer(tuple(StatisticalQuery(ParityCoset(d, k, s), tolerance) for s in range(asked)))
    certificate = oracle.certificate()
    checked = None if certificate is None else verify_certificate(certificate)
    return {
        "d": d,
        "queries": asked,
        "tolerance": tolerance,
        "silent": not any(answers),
        "alive": int(oracle.alive.sum()),
        "success_at_most": checked.figures["success_at_most"] if checked is not None and checked.valid else None,
    }


def parity_game_check(rows: list[Row]) -> Check:
    """Whether each play ends as the bound says: it is reached exactly by asking one by one, and within k queries by bent cosets at their tolerance."""
    shown, said = bool(rows), []
    for point, found in rows:
        d = point["d"]
        for asked, success in found["single"]:
            shown = shown and Fraction(success) == parity_sq_success(d, asked, 0.9) and (Fraction(success) == 1) == (asked >= (1 << d) - 1)
        asked_and_found = ", ".join(f"{success} by {asked}" for asked, success in found["single"])
        said.append(f"at d = {d} and tolerance 0.9, the share of all parities found by asking about so many of them is {asked_and_found}")
        for row in found["cosets"]:
            least = parity_sq_queries(d, row["tolerance"])
            shown = shown and (row["wins"] == 1 << d and least <= row["queries"] <= least + row["k"] if row["below"] else row["wins"] == 1)
            if row["below"]:
                said.append(
                    f"just below tolerance 2^-{row['k'] // 2}, {row['queries']} bent queries find all and {least} are needed; at it, they find none but a guess"
                )
        few = found["few"]
        most = parity_sq_success(few["d"], few["queries"], few["tolerance"])
        least_alive = (1 << few["d"]) - few["queries"] * parities_told(few["tolerance"])
        certified = few["success_at_most"] is not None and Fraction(few["success_at_most"]) <= Fraction(1, max(1, min(least_alive, adversary.NAMED)))
        shown = shown and few["silent"] and few["alive"] >= least_alive > 1 and certified and most < 1
        said.append(f"at d = {few['d']}, {few['queries']} queries of tolerance {few['tolerance']:g} leave {few['alive']} parities, by a checked certificate")
    return Check(
        "Statistical queries find no more parities than (q (⌈1/τ²⌉ - 1) + 1) / 2^d, in however many rounds, so q/τ² is about 2^d: played, and met",
        shown,
        "; ".join(said),
    )
