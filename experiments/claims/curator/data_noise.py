"""Noise that follows the data: what smooth sensitivity costs exactly, and what it then answers, against what one would otherwise do."""

import math
from typing import ClassVar

import numpy as np

from local_dp.experiments.claims.curator.data_noise import runs
from local_dp.experiments.claims.curator.data_noise.runs import EPSILON, EXACT, EXPONENTIAL, GLOBAL, HALVES, LADDER, LOCAL, NOISY, PROPOSED, PUBLISHED
from local_dp.experiments.lab.chapters import CURATOR_AND_ATTACKS, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table
from local_dp.experiments.lab.coverage.stated import Stated
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.intervals import quantile, quantile_coverage, quantile_ranks, wilson

EPSILONS = (0.1, 1.0, 2.0)
RUNS: dict[Scale, int] = {"quick": 600, "full": 2000}
COUNTS: dict[Scale, int] = {"quick": 400, "full": 2000}
SIZES: dict[Scale, tuple[int, ...]] = {"quick": (101, 1001), "full": (101, 301, 1001, 3001, 10001)}
RANDOM: dict[Scale, tuple[int, ...]] = {"quick": (100, 500), "full": (50, 100, 200, 500, 1000)}
CERTAIN = 4.4  # standard errors: a right rate is called wrong once in 100,000
Measured = list[tuple[Point, Measurement]]


class DataNoise(Experiment[Point, Measurement]):
    """Nissim, Raskhodnikova, Smith 2007, at the exact price."""

    name: ClassVar[str] = "data-noise"
    chapter: ClassVar[Chapter] = CURATOR_AND_ATTACKS
    title: ClassVar[str] = "Noise that follows the data: medians and triangles"
    claim: ClassVar[str] = (
        "One record can move the median of some databases across the whole domain, and that of most hardly at all. Noise may follow the database that is there "
        "if its scale changes smoothly between neighbours; noise of the local sensitivity itself would tell. Priced exactly, as a distance in the hyperbolic "
        "plane, Cauchy noise costs less than a quarter of what was published, so that a median errs at least five times less than by the published constants, "
        "and a count of triangles less than by any of four other private counts."
    )
    source: ClassVar[str] = "Nissim, Raskhodnikova, Smith 2007; Dwork, Lei 2009; Zhang, Cormode, Procopiuc, Srivastava, Xiao 2015"

    def points(self, scale: Scale) -> list[Point]:
        priced = [{"kind": "price", "constants": name, "epsilon": epsilon} for name in (EXACT, PUBLISHED, HALVES) for epsilon in EPSILONS]
        lost = [{"kind": "loss", "constants": name, "epsilon": EPSILON} for name in (EXACT, PUBLISHED, LOCAL)]
        medians = [{"kind": "medians", "n": n, "runs": RUNS[scale]} for n in SIZES[scale]]
        graphs: list[Point] = [{"nodes": nodes, "chance": 0.1} for nodes in RANDOM[scale]] + [{"nodes": 2000, "links": 10}]
        return [*priced, *lost, {"kind": "delta"}, *medians, *({"kind": "triangles", "runs": COUNTS[scale], **graph} for graph in graphs)]

    def measure(self, point: Point, seed: int) -> Measurement:
        kinds = {
            "price": runs.measure_price,
            "loss": runs.measure_loss,
            "delta": runs.measure_delta,
            "medians": runs.measure_medians,
            "triangles": runs.measure_triangles,
        }
        return kinds[point["kind"]](point, seed)

    def conclude(self, measurements: Measured, scale: Scale) -> Finding:
        price, loss, delta, medians, triangles = ([each for each in measurements if each[0]["kind"] == kind] for kind in KINDS)
        checks = [_check_price(price), _check_loss(loss), _check_delta(delta), _check_law(medians + triangles)]
        checks += [_check_medians(medians), _check_exponential(medians), _check_triangles(triangles)]
        of_medians, of_triangles = _errors("error of medians, as a share of the domain", medians), _errors("error of triangle counts", triangles)
        figures = [_figure_of_medians(medians), _figure_of_triangles(triangles)]
        checks += [figure_check(figures[:1], of_medians), figure_check(figures[1:], of_triangles)]
        notes = [
            f"Everything at epsilon {EPSILON:g}, and delta {runs.DELTA:g} where there is one. Cauchy noise has no mean: 1 answer in 20 is off by 12.7 scales.",
            "The published constants are run at the epsilon they were published for; what they cost is in the first table.",
        ]
        tables = [_price_table(price), _loss_table(loss), of_medians, of_triangles]
        return Finding(checks, tables, figures, notes, headline=_headline(medians))

    def stated(self, scale: Scale) -> list[Stated]:
        """The intervals of a median and a 90 % quantile of Cauchy errors."""
        return [_stated(RUNS[scale], share) for share in (0.5, 0.9)]


KINDS = ("price", "loss", "delta", "medians", "triangles")


def _stated(trials: int, share: float) -> Stated:
    def make(generator: np.random.Generator) -> tuple[float, float]:
        return quantile(np.abs(generator.standard_cauchy(trials)).tolist(), share)[1:]

    exact = quantile_coverage(trials, share, quantile_ranks(trials, share))
    return Stated("data-noise", f"{share:.0%} quantile of Cauchy errors", trials, math.tan(math.pi * share / 2), make, exact=exact)


def _headline(medians: Measured) -> str:
    """Of the largest table."""
    if not medians:
        return "No median was released."
    point, found = max(medians, key=lambda each: int(each[0]["n"]))
    errors = ", ".join(f"{name} {_median_error(found, name)[0]:.2g}" for name in (EXACT, EXPONENTIAL, PUBLISHED))
    return f"The median of {point['n']:,} records is told with these errors, as shares of the domain: {errors}."


def _check_price(price: Measured) -> Check:
    exact = [(point["epsilon"], found) for point, found in price if point["constants"] == EXACT]
    published = [found["price"] / point["epsilon"] for point, found in price if point["constants"] == PUBLISHED]
    kept = [abs(found["price"] - epsilon) <= 1e-9 and abs(found["searched"] - epsilon) <= 1e-6 for epsilon, found in exact]
    agree = [found["searched"] <= found["price"] + 2e-9 for _, found in price]
    return Check(
        "the exact constants cost epsilon, by closed form and by search; the published ones less than a quarter of it",
        bool(exact) and all(kept) and all(agree) and max(published, default=1.0) < 0.25,
        ", ".join(f"{found['price']:.9g} for {epsilon:g}" for epsilon, found in exact) + f"; published: at most {max(published, default=math.nan):.3f} of it",
    )


def _check_loss(loss: Measured) -> Check:
    by = {point["constants"]: min(found.values()) if point["constants"] == LOCAL else max(found.values()) for point, found in loss}
    kept = 0.95 * EPSILON < by.get(EXACT, math.inf) <= EPSILON and by.get(PUBLISHED, math.inf) <= EPSILON and by.get(LOCAL, 0.0) > 2 * EPSILON
    return Check(
        "on all multisets of 5 from five points and all graphs of 4 nodes the loss is at most epsilon, and nearly met; that of local sensitivity is larger",
        kept,
        ", ".join(f"{name}: {worst:.4f}" for name, worst in by.items()),
    )


def _check_delta(delta: Measured) -> Check:
    found = delta[0][1] if delta else {}
    return Check(
        "on the same databases the proposal and the noisy local sensitivity keep to delta, the ladder and the exponential mechanism have none",
        bool(found) and max(found["proposal"], found["noisy"]) <= 1 and found["ladder"] == found["exponential"] == 0,
        ", ".join(f"{name}: {worst:.4g}" for name, worst in found.items()),
    )


def _check_law(answered: Measured) -> Check:
    held, all_runs = sum(found["within"] for _, found in answered), sum(point["runs"] for point, _ in answered)
    low, high = wilson(held, max(1, all_runs), CERTAIN)
    return Check("half of all smooth answers are within their scale", bool(answered) and low <= 0.5 <= high, f"{held} of {all_runs}")


def _median_error(found: Measurement, name: str) -> tuple[float, float, float]:
    return quantile(found["errors"][name], 0.5)


def _check_medians(medians: Measured) -> Check:
    large = [found for point, found in medians if point["n"] >= 1000]
    gains = [_median_error(found, PUBLISHED)[1] / _median_error(found, EXACT)[2] for found in large]
    others = [_median_error(found, name)[1] > _median_error(found, EXACT)[2] for found in large for name in (GLOBAL, PUBLISHED, PROPOSED)]
    return Check(
        "from 1,001 records on the median by exact constants errs at most a fifth of that by published ones, and less than by a proposal or for the worst case",
        bool(large) and min(gains) > 5 and all(others),
        ", ".join(f"{_median_error(found, EXACT)[0]:.2g} against {_median_error(found, PUBLISHED)[0]:.2g}" for found in large),
    )


def _check_exponential(medians: Measured) -> Check:
    large = [found for point, found in medians if point["n"] >= 1000]
    ratios = [_median_error(found, EXACT)[0] / _median_error(found, EXPONENTIAL)[0] for found in large]
    tails = [quantile(found["errors"][EXACT], 0.9)[0] / quantile(found["errors"][EXPONENTIAL], 0.9)[0] for found in large]
    return Check(
        "the exponential mechanism's median errs about as much, .5 to 2 times, and has the lighter tail: its 90 % quantile is smaller",
        bool(large) and all(0.5 < ratio < 2 for ratio in ratios) and min(tails) > 1,
        ", ".join(f"{ratio:.2f} in the middle, {tail:.2f} at 90 %" for ratio, tail in zip(ratios, tails, strict=True)),
    )


def _check_triangles(triangles: Measured) -> Check:
    large = [(point, found) for point, found in triangles if point["nodes"] >= 500]
    best = [found["scale"] < _median_error(found, name)[1] for _, found in large for name in (GLOBAL, NOISY, PUBLISHED, LADDER)]
    return Check(
        "on graphs of 500 and more nodes the scale of smooth counts by exact constants, their median error, is below that of four other private counts",
        bool(large) and all(best),
        ", ".join(f"{_graph_name(point)}: {found['scale']:.3g}, ladder {_median_error(found, LADDER)[0]:.3g}" for point, found in large),
    )


def _graph_name(point: Point) -> str:
    return f"preferential attachment ({point['nodes']}, {point['links']})" if "links" in point else f"G({point['nodes']}, {point['chance']:g})"


def _price_table(price: Measured) -> Table:
    rows = [(point["constants"], point["epsilon"], found["a"], found["b"], found["price"], found["searched"]) for point, found in price]
    return Table("what the constants cost", ("constants", "epsilon", "a", "b", "price", "searched"), rows)


def _loss_table(loss: Measured) -> Table:
    rows = [(point["constants"], point["epsilon"], found["replace"], found["edge"]) for point, found in loss]
    return Table("the largest loss on all small databases", ("noise", "epsilon", "medians", "triangles"), rows)


def _errors(title: str, answered: Measured) -> Table:
    rows = []
    for point, found in answered:
        size, what = (point["n"], "normal(.4, .05)") if "n" in point else (point["nodes"], _graph_name(point))
        for name, errors in found["errors"].items():
            rows.append((name, what, size, *quantile(errors, 0.5), quantile(errors, 0.9)[0]))
    return Table(title, ("answer", "data", "records or nodes", "median error", "low", "high", "90 % quantile"), rows)


def _curves(answered: Measured, key: str) -> list[Curve]:
    names = dict.fromkeys(name for _, found in answered for name in found["errors"])
    sizes = [point[key] for point, _ in answered]
    curves = []
    for name in names:
        middle, low, high = zip(*(_median_error(found, name) for _, found in answered), strict=True)
        curves.append(Curve(name, sizes, middle, low=low, high=high))
    return curves


def _figure_of_medians(medians: Measured) -> Figure:
    title = "The error of a private median, as a share of the domain"
    return Figure("data-noise-medians", title, "records", "median error", _curves(medians, "n"), log_x=True, log_y=True)


def _figure_of_triangles(triangles: Measured) -> Figure:
    random = [(point, found) for point, found in triangles if "chance" in point]
    return Figure("data-noise-triangles", "The error of a private count of triangles, G(n, .1)", "nodes", "median error", _curves(random, "nodes"), True, True)


EXPERIMENT = DataNoise()
