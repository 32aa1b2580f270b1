"""Theorem 5.1 of KLNRS, played: the learner it says cannot exist, and the corrected bound with its matching family (limits 3.1, E4 and E5)."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np

from local_dp.bounds.masked_parity import coset_tolerance, success_bound
from local_dp.experiments.lab.calibration import intervals_check
from local_dp.experiments.lab.chapters import LOCAL_MODEL, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table
from local_dp.experiments.lab.intervals import wilson
from local_dp.hardness.adversary import described
from local_dp.hardness.certificates import verify_certificate
from local_dp.interaction import run
from local_dp.masked.population import Concept, MaskedParityPopulation
from local_dp.masked.statistical import (
    MidpointOracle,
    NonadaptiveLearner,
    Spectrum,
    bent_learner,
    coset_learner,
    exact_success,
    hidden_set,
    hidden_set_certificate,
    parity_learner,
    random_learner,
    spectrum,
    two_round_learner,
)
from local_dp.oracles.statistical.oracles import Bias, BiasedOracle, StatisticalQuery, against, downward, legal, upward

BELOW: Final = 1 - 1e-9  # just inside the threshold tolerance
BIASES: Final[dict[str, Bias]] = {"up": upward, "down": downward, "against the sign": against}
BIASED_TARGETS: Final = 40
TOLERANCES: Final = tuple(2.0**-e * BELOW for e in (2, 3, 4, 5))
SHOWN: Final = TOLERANCES[1]  # in the figure of success: where cosets with k = 4 meet the bound
FLIP: Final = (Fraction(1), Fraction(1, 2))
FORGED_D: Final = 12  # above it one forgery is tried, as a check takes seconds
FAMILIES: Final[dict[str, Callable[[int, float, int], NonadaptiveLearner]]] = {
    "random functions": lambda d, tau, q: random_learner(d, tau, q, seed=1),
    "parities": parity_learner,
    "bent cosets, k = 4": lambda d, tau, q: coset_learner(d, tau, 4, q),
}
Row = tuple[Point, Measurement]


def printed_tolerance(d: int) -> float:
    """The tolerance 2^(-2d/3) of the printed theorem."""
    return float(2.0 ** (-2 * d / 3))


class Theorem51(Experiment[Point, Measurement]):
    """Points: the bent learner against the midpoint and the biased oracles, the matching family at its threshold, other learners, the adaptive learner."""

    name: ClassVar[str] = "theorem-5.1"
    chapter: ClassVar[Chapter] = LOCAL_MODEL
    title: ClassVar[str] = "A published impossibility theorem, refuted by running the impossible learner, and repaired"
    claim: ClassVar[str] = (
        "A masked parity hides one bit behind a string r of d bits. The paper says that statistical queries chosen in advance need about 2^d of them to learn "
        "it at the tolerance 2^(-2d/3). In fact d + 1 are enough for even d from 8 on. What is true: q queries of tolerance tau succeed with probability "
        "at most 1/2 + q / (8 tau^2 2^d), and a family of learners meets that. Two rounds need d + 1 queries and only the tolerance 1/(2d)."
    )
    source: ClassVar[str] = "Kasiviswanathan et al. 2008, Theorem 5.1; refuted and corrected (limits 3.1, E4 and E5)"

    def points(self, scale: Scale) -> list[Point]:
        full = scale == "full"
        points: list[Point] = [{"kind": "printed", "d": d} for d in ((4, 8, 9, 10, 12, 16) if full else (4, 8, 10, 16))]
        points += [{"kind": "biased", "d": d} for d in (4, 8, 10, 16, 20, 32)]
        for d, smallest in ((8, 0), (10, 2), (12, 4)) if full else ((8, 2), (10, 6)):
            points += [{"kind": "frontier", "d": d, "k": k} for k in range(smallest, d + 1, 2)]
        points += [{"kind": "sweep", "d": d, "family": family} for d in ((6, 8, 10) if full else (6, 8)) for family in FAMILIES]
        points += [{"kind": "adaptive", "d": d, "targets": 24} for d in ((8, 10) if full else (8,))]
        return points

    def measure(self, point: Point, seed: int) -> Measurement:
        return _MEASURES[point["kind"]](point, seed)

    def conclude(self, measurements: list[Row], scale: Scale) -> Finding:
        kinds = {kind: [row for row in measurements if row[0]["kind"] == kind] for kind in _MEASURES}
        checks = [_refuted(kinds["printed"], kinds["biased"]), _lost(kinds["printed"], kinds["biased"])]
        checks += [_bounded(_settings(measurements)), _tight(kinds["frontier"]), _certified(measurements), _interactive(kinds["adaptive"]), intervals_check()]
        certificates = {f"certificate bent d {point['d']}": measured["certificate"] for point, measured in kinds["printed"]}
        tables = [_printed_table(kinds["printed"]), _biased_table(kinds["biased"])]
        return Finding(checks, tables, _figures(kinds), [_NOTE], certificates, headline=_headline(kinds["printed"], _settings(measurements)))


_NOTE = (
    "Success is exact against the midpoint oracle: every one of the 2^(d+1) concepts is played. Queries are counted without the d queries for r, which tell "
    "nothing of a and which the midpoint oracle answers exactly (at tolerances of 1/(2d) and more, "
    "other oracles can hide r as well); with d in {4, 8, 16} d is a power of two, as the paper asks. The examples are uniform: "
    "learning under every distribution would contain parity."
)


def _spectra(learner: NonadaptiveLearner, d: int) -> tuple[Spectrum, ...]:
    return tuple(spectrum(query, d) for query in learner.queries)


def _at(spectra: Iterable[Spectrum], tolerance: float) -> tuple[Spectrum, ...]:
    """The same expectations, asked for at another tolerance."""
    return tuple(replace(whole, query=replace(whole.query, tolerance=tolerance)) for whole in spectra)


def _setting(learner: NonadaptiveLearner, spectra: tuple[Spectrum, ...], d: int, tolerance: float) -> dict[str, Any]:
    """What one learner attained at one tolerance, beside what the hidden set certifies and the theorem allows."""
    queries = len(learner.queries) - d
    hidden = int(hidden_set(spectra).sum())
    return {
        "d": d,
        "q": queries,
        "tau": tolerance,
        "success": str(exact_success(learner, spectra)),
        "certified": str(1 - Fraction(hidden, 2 << d)),
        "bound": success_bound(d, queries, tolerance),
    }


def _checked(certificate: dict[str, Any], *others: dict[str, Any]) -> dict[str, Any]:
    """The checker's verdicts on a certificate, on forgeries of it and on `others`."""
    verdict = verify_certificate(certificate)
    forged = [verify_certificate(forgery).valid for forgery in (*_forgeries(certificate), *others)]
    return {"valid": verdict.valid, "statement": verdict.statement, "forgeries": len(forged), "forgeries_accepted": sum(forged)}


def _forgeries(certificate: dict[str, Any]) -> list[dict[str, Any]]:
    if certificate["kind"] == "survivors":
        # of every survivor the last answer is the exact expectation: half a tolerance more than may be added to it
        moved = str(Fraction(certificate["answers"][-1]) + Fraction(3, 2) * Fraction(certificate["queries"][-1]["tolerance"]))
        return [{**certificate, "answers": [*certificate["answers"][:-1], moved]}, {**certificate, "survivors": certificate["survivors"][:1] * 2}]
    first = f"{int(certificate['hidden'][:2], 16) ^ 1:02x}"  # r = 0 changes sides
    rho = Fraction(certificate["rho"]) + Fraction(1, 1 << certificate["d"])
    forgeries = [{**certificate, "hidden": first + certificate["hidden"][2:]}, {**certificate, "rho": str(rho)}, {**certificate, "success_at_most": "0"}]
    return forgeries if certificate["d"] <= FORGED_D else forgeries[:1]


def _measure_printed(point: Point, seed: int) -> Measurement:
    d, tolerance = point["d"], printed_tolerance(point["d"])
    learner = bent_learner(d, tolerance)
    setting = _setting(learner, _spectra(learner, d), d, tolerance)
    certificate = hidden_set_certificate(learner.queries, d)
    others = [_first_ignored(learner.queries, d)] if setting["success"] == "1" and d <= FORGED_D else []
    return {"settings": [setting], "check": _checked(certificate, *others), "certificate": certificate}


def _first_ignored(queries: tuple[StatisticalQuery, ...], d: int) -> dict[str, Any]:
    """A forgery: the last query, which reveals the mask, is put first, and the hidden set ignores it."""
    rest = hidden_set_certificate(queries[:-1], d)
    return {**rest, "queries": [described(queries[-1]), *rest["queries"]]}


def _measure_biased(point: Point, seed: int) -> Measurement:
    d = point["d"]
    learner = bent_learner(d, printed_tolerance(d))
    wins: Counter[str] = Counter(dict.fromkeys(BIASES, 0))
    for concept in _targets(d, BIASED_TARGETS, seed):
        population = MaskedParityPopulation(concept, 1, seed)
        for name, bias in BIASES.items():
            wins[name] += run(learner, legal(BiasedOracle(population, bias), population)) == concept
    return {"wins": dict(wins), "targets": BIASED_TARGETS}


def _targets(d: int, count: int, seed: int) -> list[Concept]:
    words = np.random.default_rng([seed, d]).integers(0, 2**63, size=(count, 2))
    return [Concept(d, int(r) % 2**d, int(a) % 2) for r, a in words]


def _measure_frontier(point: Point, seed: int) -> Measurement:
    d, k = point["d"], point["k"]
    threshold = coset_tolerance(k)
    spectra = _spectra(coset_learner(d, threshold, k), d)
    settings = []
    for tolerance in (threshold * BELOW, threshold):
        learner = coset_learner(d, tolerance, k)
        settings.append(_setting(learner, _at(spectra, tolerance), d, tolerance))
    certificate = hidden_set_certificate(learner.queries, d)
    return {"settings": settings, "check": _checked(certificate)}


def _measure_sweep(point: Point, seed: int) -> Measurement:
    d, family = point["d"], FAMILIES[point["family"]]
    counts = [1 << e for e in range(min(d, 7))]
    spectra = _spectra(family(d, TOLERANCES[0], counts[-1] if point["family"] != "bent cosets, k = 4" else min(counts[-1], 1 << (d - 4))), d)
    settings = []
    for queries in (count for count in counts if d + count <= len(spectra)):
        for tolerance in TOLERANCES:
            settings.append(_setting(family(d, tolerance, queries), _at(spectra[: d + queries], tolerance), d, tolerance))
    return {"settings": settings}


def _measure_adaptive(point: Point, seed: int) -> Measurement:
    d = point["d"]
    wins, certificate = 0, None
    for concept in _targets(d, point["targets"], seed):
        wins += run(two_round_learner(d), MidpointOracle(d, concept.r, concept.a)) == concept
        if certificate is None:  # the same oracle, where the queries are fixed in advance and cannot aim at r
            oracle = MidpointOracle(d, concept.r, concept.a)
            run(parity_learner(d, 0.9 / (2 * d), 1), oracle)
            certificate = oracle.certificate()
    return {"wins": wins, "targets": point["targets"], "queries": d + 1, "check": None if certificate is None else _checked(certificate)}


_MEASURES: Final[dict[str, Callable[[Point, int], Measurement]]] = {
    "printed": _measure_printed,
    "biased": _measure_biased,
    "frontier": _measure_frontier,
    "sweep": _measure_sweep,
    "adaptive": _measure_adaptive,
}


def _headline(printed: list[Row], settings: list[dict[str, Any]]) -> str:
    """The largest dimension in which every concept was played."""
    d, success = max(((point["d"], float(Fraction(found["settings"][0]["success"]))) for point, found in printed), default=(0, 0.0))
    over = sum(Fraction(setting["success"]) > setting["bound"] * (1 + 1e-12) for setting in settings)
    return (
        f"At d = {d} the learner that the printed theorem rules out learns {success:.0%} of all concepts; "
        f"of {len(settings)} learners played over all concepts {over} exceed the corrected bound."
    )


def _settings(rows: list[Row]) -> list[dict[str, Any]]:
    return [setting for _, measured in rows for setting in measured.get("settings", [])]


def _refuted(printed: list[Row], biased: list[Row]) -> Check:
    midpoint = {point["d"]: Fraction(measured["settings"][0]["success"]) for point, measured in printed if point["d"] >= 8}
    wins = sum(sum(measured["wins"].values()) for point, measured in biased if point["d"] >= 8)
    played = sum(len(measured["wins"]) * measured["targets"] for point, measured in biased if point["d"] >= 8)
    low, high = wilson(wins, max(played, 1))
    return Check(
        "At the printed theorem's own tolerance 2^(-2d/3), the bent learner's fixed d + 1 queries (d + 2 for odd d) learn every concept, d >= 8",
        bool(midpoint) and played > 0 and all(success == 1 for success in midpoint.values()) and wins == played,
        f"success {', '.join(f'{float(success):.3f} at d = {d}' for d, success in midpoint.items())} against the midpoint oracle, over all concepts; "
        f"{wins} of {played} drawn concepts (95 % interval {low:.3f} to {high:.3f}) with every answer tau wrong, for d up to 32",
    )


def _lost(printed: list[Row], biased: list[Row]) -> Check:
    small = [Fraction(measured["settings"][0]["success"]) for point, measured in printed if point["d"] == 4]
    wins = [measured["wins"]["against the sign"] for point, measured in biased if point["d"] == 4]
    return Check(
        "At d = 4 the same learner loses, as the condition 2^(-2d/3) < 2^(-d/2 - 1) says it should",
        bool(small) and bool(wins) and max(small) <= Fraction(1, 2) and max(wins) == 0,
        f"success {', '.join(map(str, small))} against the midpoint oracle; {sum(wins)} wins where every answer is tau closer to the wrong sign",
    )


def _bounded(settings: list[dict[str, Any]]) -> Check:
    formula = [min(1.0, 0.5 + s["q"] / (8 * s["tau"] ** 2 * 2.0 ** s["d"])) for s in settings]
    bounds = all(abs(s["bound"] - bound) <= 1e-12 for s, bound in zip(settings, formula, strict=True))
    over = [s for s in settings if Fraction(s["success"]) > Fraction(s["certified"]) or float(Fraction(s["certified"])) > s["bound"] * (1 + 1e-12)]
    return Check(
        "No non-adaptive learner exceeds its certified success, nor the corrected bound 1/2 + q / (8 tau^2 2^d)",
        bool(settings) and bounds and not over,
        f"{len(settings)} triples (d, tau, q) played over all concepts, {len(over)} above the certificate or the bound",
    )


def _tight(frontier: list[Row]) -> Check:
    flips = [(Fraction(below["success"]), Fraction(at["success"])) for _, measured in frontier for below, at in [measured["settings"]]]
    reached = [setting["q"] / (4 * setting["tau"] ** 2 * 2 ** setting["d"]) for _, measured in frontier for setting in measured["settings"][:1]]
    return Check(
        "The bound is tight: against the midpoint oracle, 2^(d-k) bent-coset queries always succeed just below the tolerance 2^(-k/2-1), "
        "where 4 tau^2 2^d = 2^(d-k), and guess a at it",
        bool(flips) and all(pair == FLIP for pair in flips) and all(abs(ratio - 1) < 1e-6 for ratio in reached),
        f"{sum(pair == FLIP for pair in flips)} of {len(flips)} pairs (d, k) flip from 1 to 1/2 exactly there",
    )


def _certified(rows: list[Row]) -> Check:
    checks = [measured["check"] for _, measured in rows if measured.get("check") is not None]
    valid, forged = sum(check["valid"] for check in checks), sum(check["forgeries"] for check in checks)
    accepted = sum(check["forgeries_accepted"] for check in checks)
    return Check(
        "Every certificate passes the independent checker, and no forgery of one does",
        bool(checks) and valid == len(checks) and forged > 0 and accepted == 0,
        f"{valid} of {len(checks)} certificates verified; {accepted} of {forged} forgeries accepted",
    )


def _interactive(rows: list[Row]) -> Check:
    wins, played = sum(measured["wins"] for _, measured in rows), sum(measured["targets"] for _, measured in rows)
    low, high = wilson(wins, max(played, 1))
    return Check(
        "With two rounds, d + 1 queries at nine tenths of the tolerance 1/(2d) win against the same oracle",
        played > 0 and wins == played,
        f"{wins} of {played} drawn concepts learnt (95 % interval {low:.3f} to {high:.3f})",
    )


def _printed_table(printed: list[Row]) -> Table:
    rows = [
        (setting["d"], setting["q"] + setting["d"], 2 ** setting["d"] - 1, setting["tau"], setting["success"], measured["check"]["statement"])
        for _, measured in printed
        for setting in measured["settings"]
    ]
    columns = ("d", "queries asked", "queries the printed theorem demands", "tolerance 2^(-2d/3)", "success", "what the certificate proves")
    return Table("The bent learner against the midpoint oracle", columns, rows)


def _biased_table(biased: list[Row]) -> Table:
    rows = [(point["d"], *(f"{measured['wins'][name]} of {measured['targets']}" for name in BIASES)) for point, measured in biased]
    return Table("The bent learner when every answer is wrong by the whole tolerance", ("d", *BIASES), rows)


def _figures(kinds: dict[str, list[Row]]) -> list[Figure]:
    curves = []
    for d in sorted({point["d"] for point, _ in kinds["frontier"]}):
        flips = sorted((s["q"], _fineness(s)) for point, measured in kinds["frontier"] if point["d"] == d for s in measured["settings"][:1])
        curves.append(Curve(f"bent cosets, d = {d}", [q for q, _ in flips], [y for _, y in flips]))
        curves.append(Curve(f"q / (4 tau^2) = 2^{d}", [1, flips[-1][0]], [2.0**d, 2.0**d / flips[-1][0]], "bound"))
    bent = sorted((s["q"], _fineness(s)) for _, measured in kinds["printed"] for s in measured["settings"] if s["success"] == "1")
    curves.append(Curve("bent learner at 2^(-2d/3)", [q for q, _ in bent], [y for _, y in bent]))
    title = "The frontier of non-adaptive learning: certain success on and above each line"
    frontier = Figure("frontier", title, "queries q about the mask", "1 / (4 tau^2), the fineness of the answers", curves, log_x=True, log_y=True)
    return [frontier, _success_figure(kinds["sweep"])]


def _fineness(setting: dict[str, Any]) -> float:
    return float(1 / (4 * setting["tau"] ** 2))


def _success_figure(sweep: list[Row]) -> Figure:
    d = max((point["d"] for point, _ in sweep), default=0)
    curves = []
    for point, measured in sweep:
        if point["d"] == d:
            shown = sorted((s["q"], float(Fraction(s["success"]))) for s in measured["settings"] if s["tau"] == SHOWN)
            curves.append(Curve(point["family"], [q for q, _ in shown], [y for _, y in shown]))
    most = [float(q) for q in range(1, 65)]
    curves.append(Curve("corrected bound", most, [success_bound(d, q, SHOWN) for q in most], "bound"))
    return Figure("success", f"Success of non-adaptive learners at d = {d}, tau = {SHOWN:.3f}", "queries q about the mask", "success", curves)


EXPERIMENT = Theorem51()
