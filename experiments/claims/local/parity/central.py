"""Parity under a trusted curator: the least n of four private learners against d, and their exact privacy loss."""

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np

from local_dp.bounds.curator import (
    exponential_parity_examples,
    packing_parity_examples,
    paper_parity_examples,
    parity_examples,
    parity_success,
    plain_parity_examples,
)
from local_dp.curator.laws import SmallDatabases, epsilon_of
from local_dp.curator.parity import gf2
from local_dp.curator.parity.learner import (
    Examples,
    ParityLearner,
    amplified_learner,
    draw_examples,
    exact_learner,
    paper_amplified,
    paper_learner,
    two_runs,
)
from local_dp.curator.selection.exponential import log_probabilities
from local_dp.curator.selection.occam import Labelled, OccamLearner, ParityClass
from local_dp.draws import Draws
from local_dp.experiments.claims.local.local_to_sq.laws import compared
from local_dp.experiments.lab.claim import Check, Curve, Measurement, Point, Scale, Table
from local_dp.experiments.lab.intervals import wilson
from local_dp.noise import KeyedNoise
from local_dp.optimise import least_clients

SUCCESS = 0.9
DRAWS = 300  # of a small law
BETA = 1 - SUCCESS
ALPHA = 0.25  # of the printed size
DEPARTURE = 3.9  # standard errors: a right rate is called wrong once in 10,000
MEASURED_DIMENSION = 20  # up to here the exponential mechanism is run; beyond, its closed form stands alone

PRINTED, IMPROVED, DEFAULT, MECHANISM = "A* as printed", "two runs of the improved A", "A* charged exactly", "exponential mechanism"
LEARNERS: dict[str, Callable[[float], ParityLearner]] = {
    PRINTED: lambda epsilon: paper_amplified(epsilon, BETA),
    IMPROVED: two_runs,
    DEFAULT: lambda epsilon: amplified_learner(epsilon, BETA),
}
AUDITED: dict[str, Callable[[float], ParityLearner]] = {"A as printed": paper_learner, "A with exact constants": exact_learner, **LEARNERS}

# limits 4.1: least n for 90 % exact recovery, by (d, epsilon): A*, two runs, exponential mechanism
PUBLISHED = {
    (8, 0.5): (547, 146, 62),
    (8, 1.0): (273, 64, 31),
    (16, 0.5): (924, 227, 107),
    (16, 1.0): (460, 103, 54),
    (32, 0.5): (1652, 384, 196),
    (32, 1.0): (824, 178, 98),
}


def central_points(scale: Scale) -> list[Point]:
    """Sizes by learner, d and epsilon; privacy losses by learner, epsilon and n."""
    trials, dimensions = (300, (4, 8, 12, 16, 32)) if scale == "quick" else (2000, (4, 8, 12, 16, 20, 32, 64, 128))
    cases = [(d, 1.0) for d in dimensions] + [(d, 0.5) for d, epsilon in PUBLISHED if epsilon == 0.5]
    central: list[Point] = [
        {"kind": "central", "learner": name, "d": d, "epsilon": epsilon, "trials": trials} for name in (*LEARNERS, MECHANISM) for d, epsilon in cases
    ]
    losses: list[Point] = [
        {"kind": "privacy", "learner": name, "epsilon": epsilon, "n": n, "d": 2}
        for name in AUDITED
        for epsilon in (0.5, 1.0, 2.0)
        for n in (2, 3)
        if name != "A as printed" or epsilon <= 0.5
    ]
    return central + losses


def measure_central(point: Point, seed: int) -> Measurement:
    """One size with runs that confirm it, or one privacy loss."""
    name, d, epsilon = point["learner"], point["d"], point["epsilon"]
    if point["kind"] == "privacy":
        learner = AUDITED[name](epsilon)
        small = SmallDatabases(list(product(range(1 << d), (0, 1))), point["n"], lambda pairs: Examples.of(d, pairs))
        loss = epsilon_of(max(small.worst_ratios(learner).values()))
        return {"loss": loss, "charged": learner.epsilon, "databases": len(small.universe) ** small.n, **_drawn(learner, d, point["n"], seed)}
    if name == MECHANISM:
        return _measure_mechanism(d, epsilon, point["trials"], seed)
    learner = LEARNERS[name](epsilon)
    n = parity_examples(learner, d, SUCCESS)
    right = sum(_finds(learner, d, n, [seed, d, trial]) for trial in range(point["trials"]))
    return {"n": n, "loss": learner.epsilon, "successes": right, "trials": point["trials"], "predicted": parity_success(learner, d, n)}


def _drawn(learner: ParityLearner, d: int, n: int, seed: int) -> Measurement:
    """How often the learner released which outcome of its law on n examples (1, 1), and that law."""
    examples, draws = Examples.of(d, ((1, 1),) * n), Draws(KeyedNoise(seed))
    law, drawn = learner.law(examples), Counter(learner.release(examples, draws) for _ in range(DRAWS))
    return {"drawn": [drawn[outcome] for outcome in law], "law": [float(Fraction(weight, sum(law.values()))) for weight in law.values()]}


def _finds(learner: ParityLearner, d: int, n: int, seeds: list[int]) -> bool:
    """Whether the learner returns a random r from n uniform examples."""
    generator = np.random.default_rng(seeds)
    r = gf2.pack(generator.integers(0, 2, d).astype(np.uint8))
    examples = draw_examples(d, r, n, generator)
    return learner.release(examples, Draws(KeyedNoise(int(generator.integers(1 << 63))))) == gf2.mask(r)


def _measure_mechanism(d: int, epsilon: float, trials: int, seed: int) -> Measurement:
    """The least n at which the mean probability of the true parity reaches SUCCESS, over fixed sequences of examples; then fresh runs there.

    `low` to `high` are all n at which SUCCESS is within 3.9 standard errors of that mean: one or two whole numbers, of which no 95 % interval can be made.
    Beyond MEASURED_DIMENSION: the closed form, unmeasured.
    """
    closed = exponential_parity_examples(d, epsilon, SUCCESS)
    if d > MEASURED_DIMENSION:
        return {"n": closed, "closed": closed, "loss": epsilon, "successes": 0, "trials": 0}
    trials = max(20, min(trials, (1 << 22 if trials < 1000 else 1 << 25) >> d))
    weights = cache(lambda n: _truth_weights(d, epsilon, n, trials, seed))

    def least(errors: float) -> int:
        def enough(n: int) -> bool:
            mean, error = weights(n)
            return mean + errors * error >= SUCCESS

        return least_clients(enough, least=closed // 2)

    low, n, high = least(DEPARTURE), least(0.0), least(-DEPARTURE)
    right = 0
    for trial in range(trials):
        generator = np.random.default_rng([seed, d, trial, 1])
        r, x = int(generator.integers(1 << d)), generator.integers(0, 1 << d, n)
        y = (np.bitwise_count(x & r) & 1).astype(np.int64)
        right += OccamLearner(ParityClass(d), epsilon).release(Labelled(x, y), Draws(KeyedNoise(int(generator.integers(1 << 63))))) == r
    return {"n": n, "low": low, "high": high, "closed": closed, "loss": epsilon, "successes": right, "trials": trials}


def _truth_weights(d: int, epsilon: float, n: int, trials: int, seed: int) -> tuple[float, float]:
    """The mean over samples of Pr[the true parity is chosen], and its standard error: r = 0 without loss of generality."""
    weights = []
    for trial in range(trials):
        x = np.random.default_rng([seed, d, trial]).integers(0, 1 << d, n)
        weights.append(math.exp(log_probabilities(-ParityClass(d).errors(x, np.zeros(n, dtype=np.int64)), epsilon)[0]))
    return float(np.mean(weights)), float(np.std(weights, ddof=1)) / math.sqrt(trials)


Measured = list[tuple[Point, Measurement]]


def central_curves(measured: Measured) -> list[Curve]:
    """n against d at epsilon 1, with the packing bound and elimination without privacy."""
    curves = []
    closed = [(point["d"], found["n"]) for point, found in measured if point["kind"] == "central" and not found["trials"]]
    for name in (*LEARNERS, MECHANISM):
        sized = sorted(
            ((point["d"], found) for point, found in measured if _sized(point, found) and point["learner"] == name and point["epsilon"] == 1.0),
            key=lambda pair: int(pair[0]),
        )
        low, high = ([float(found[end if end in found else "n"]) for _, found in sized] for end in ("low", "high"))
        curves.append(Curve(f"curator: {name}", [d for d, _ in sized], [found["n"] for _, found in sized], "measured", low, high))
    if closed:
        curves.append(Curve(f"curator: {MECHANISM}, closed form, not run", [d for d, _ in sorted(closed)], [n for _, n in sorted(closed)], "theory"))
    dimensions = curves[0].x
    packing = [packing_parity_examples(int(d), 1.0, SUCCESS) for d in dimensions]
    curves.append(Curve("curator: no private learner below (packing, to first order)", dimensions, packing, "bound"))
    curves.append(Curve("without privacy", dimensions, [plain_parity_examples(int(d), SUCCESS) for d in dimensions], "theory"))
    return curves


def _sized(point: Point, found: Measurement) -> bool:
    """Whether this is a size that runs confirm, and not a closed form."""
    return bool(point["kind"] == "central" and found["trials"])


def central_tables(measured: Measured) -> list[Table]:
    """Sizes with the success of runs there, and privacy losses."""
    sized, audited = [], []
    for point, found in measured:
        if point["kind"] == "privacy":
            audited.append((point["learner"], point["epsilon"], point["n"], found["databases"], round(found["loss"], 6), round(found["charged"], 6)))
            continue
        low, high = wilson(found["successes"], found["trials"]) if found["trials"] else (math.nan, math.nan)
        rate = f"{found['successes']} of {found['trials']} [{low:.3f}, {high:.3f}]" if found["trials"] else "closed form"
        published = _published(point)
        formula = paper_parity_examples(point["d"], point["epsilon"], ALPHA, BETA) if point["learner"] == PRINTED else found.get("closed")
        kind = "exact" if "closed" not in found else f"measured [{found['low']}, {found['high']}]" if found["trials"] else "closed form, not run"
        sized.append((point["learner"], point["epsilon"], point["d"], found["n"], kind, rate, formula, published, round(found["loss"], 4)))
    columns = (
        "learner",
        "epsilon",
        "d",
        "least n",
        "kind [at 3.9 standard errors]",
        "exact recoveries at n [95 %]",
        "n by formula",
        "published n",
        "exact loss",
    )
    return [
        Table("Trusted curator: examples for 90 % exact recovery, uniform x", columns, sized),
        Table(
            "Exact privacy loss over all pairs of neighbouring databases, d = 2",
            ("learner", "nominal epsilon", "n", "databases", "loss found", "loss charged"),
            audited,
        ),
    ]


def _published(point: Point) -> int | None:
    entry = PUBLISHED.get((point["d"], point["epsilon"]))
    place = {PRINTED: 0, IMPROVED: 1, MECHANISM: 2}.get(point["learner"])
    return None if entry is None or place is None else entry[place]


def central_checks(measured: Measured) -> list[Check]:
    """What the measurements show of the curator."""
    losses = [(point, found) for point, found in measured if point["kind"] == "privacy"]
    sized = [(point, found) for point, found in measured if point["kind"] == "central"]
    return [
        _check_exact(losses),
        _check_printed(losses),
        _check_charge(losses),
        _check_drawn(losses),
        _check_rates(sized),
        _check_published(sized),
        _check_closed(sized),
        _check_linear(sized),
    ]


def _check_exact(losses: Measured) -> Check:
    gaps = [abs(found["loss"] - point["epsilon"]) for point, found in losses if point["learner"] == "A with exact constants"]
    return Check(
        "the learner A with p = tanh(eps/2) and no answer with probability 1/(e^eps + 2) loses exactly epsilon",
        bool(gaps) and max(gaps) < 1e-9,
        f"largest difference {max(gaps, default=math.nan):.1e} over {len(gaps)} enumerations",
    )


def _check_printed(losses: Measured) -> Check:
    found = [(loss["loss"], point["epsilon"]) for point, loss in losses if point["learner"] == "A as printed"]
    expected = [math.log((1 + epsilon / 4) / (1 - epsilon / 4)) for _, epsilon in found]
    shown = bool(found) and all(abs(loss - right) < 1e-9 for (loss, _), right in zip(found, expected, strict=True))
    return Check(
        "the learner A as printed loses ln((1 + eps/4) / (1 - eps/4)), about half of the epsilon it is charged",
        shown,
        ", ".join(f"{loss:.4f} at a nominal {epsilon:g}" for loss, epsilon in found),
    )


def _check_charge(losses: Measured) -> Check:
    excess = max((found["loss"] - found["charged"] for _, found in losses), default=math.inf)
    over = max((found["charged"] - point["epsilon"] for point, found in losses), default=math.inf)
    return Check(
        "no learner loses more than its exact charge, nor is charged more than epsilon, on any pair of neighbours",
        excess < 1e-12 and over < 1e-12,
        f"{len(losses)} enumerations; largest loss minus charge {excess:.1e}, largest charge minus epsilon {over:.1e}",
    )


def _check_drawn(losses: Measured) -> Check:
    comparisons = max(1, sum(len(found["law"]) for _, found in losses))
    off = max((compared("", found["drawn"], found["law"], comparisons)["off"] for _, found in losses), default=math.inf)
    return Check(
        "every learner is drawn from the law whose loss was enumerated",
        off <= 1,
        f"{len(losses)} laws, {DRAWS} draws each: at most {off:.2f} of what chance allows off",
    )


def _check_rates(sized: Measured) -> Check:
    run = [(found["successes"], found["trials"]) for _, found in sized if found["trials"]]
    inside = [low <= SUCCESS + 0.02 and high >= SUCCESS for low, high in (wilson(right, trials, DEPARTURE) for right, trials in run)]
    rates = [right / trials for right, trials in run]
    pooled = [(found["successes"], found["trials"], found["predicted"]) for _, found in sized if "predicted" in found]
    excess = sum(right - trials * share for right, trials, share in pooled)
    spread = math.sqrt(sum(trials * share * (1 - share) for _, trials, share in pooled))
    return Check(
        f"at the computed n each learner returns r in 90 % of runs (at most two points more, from whole n), up to {DEPARTURE:g} standard errors",
        bool(run) and all(inside) and abs(excess) <= DEPARTURE * spread,
        f"{sum(inside)} of {len(inside)} sizes confirmed, {sum(trials for _, trials in run)} runs; rates from {min(rates):.3f} to {max(rates):.3f}; "
        f"the efficient learners' runs together are {excess / max(spread, 1e-9):+.1f} standard errors from their exact law",
    )


def _check_published(sized: Measured) -> Check:
    known = [(found["n"], published) for point, found in sized if "closed" not in found and (published := _published(point)) is not None]
    ratios = [float(n) / published for n, published in known]
    return Check(
        "the published sizes of A* and the improved A are reproduced within 10 %",
        bool(ratios) and max(abs(ratio - 1) for ratio in ratios) <= 0.1,
        f"{len(ratios)} sizes, ratios {min(ratios, default=math.nan):.3f} to {max(ratios, default=math.nan):.3f}",
    )


def _check_closed(sized: Measured) -> Check:
    """The closed form puts e^(-eps E[errors] / 2) for E[e^(-eps errors / 2)], which is more."""
    run = {(point["d"], point["epsilon"]): found for point, found in sized if "closed" in found and _sized(point, found)}
    return Check(
        "the exponential mechanism needs more examples than its closed form (the published sizes), by a quarter at most",
        bool(run) and all(found["closed"] < found["low"] and found["high"] <= 1.25 * found["closed"] for found in run.values()),
        ", ".join(f"d = {d}, epsilon {eps:g}: {m['n']} [{m['low']}, {m['high']}] for {m['closed']}" for (d, eps), m in run.items()),
    )


def _check_linear(sized: Measured) -> Check:
    by_learner: dict[str, dict[int, int]] = {}
    for point, found in sized:
        if point["epsilon"] == 1.0 and _sized(point, found):
            by_learner.setdefault(point["learner"], {})[point["d"]] = found["n"]
    growth = {name: ns[max(ns)] / ns[min(ns)] * min(ns) / max(ns) for name, ns in by_learner.items()}
    margin = min(n / packing_parity_examples(d, 1.0, SUCCESS) for ns in by_learner.values() for d, n in ns.items())
    ordered = all(by_learner[DEFAULT][d] < by_learner[IMPROVED][d] < by_learner[PRINTED][d] for d in by_learner[DEFAULT])
    return Check(
        "a curator needs a number of examples linear in d, never below the packing bound, and exact charging needs the fewest of the efficient learners",
        bool(growth) and max(growth.values()) <= 1 and margin >= 1 and ordered,
        "n / d from the least to the greatest d falls to "
        + ", ".join(f"{100 * share:.0f} % ({name})" for name, share in growth.items())
        + f"; the nearest is {margin:.2f} times the packing bound (to first order)",
    )
