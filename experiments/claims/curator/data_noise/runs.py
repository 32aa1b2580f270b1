"""What `data-noise` measures: prices, losses on all small databases, and the errors of medians and triangle counts."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import TypeAlias

import numpy as np

from local_dp.curator.laws import SmallDatabases
from local_dp.curator.mechanism import Mechanism, Neighbours
from local_dp.curator.multisets import Multiset
from local_dp.curator.sensitivity.cauchy import FINE, LEAST, CauchyNoise, LocalSensitivity, cosh_loss
from local_dp.curator.sensitivity.medians import ExponentialMedian, GlobalMedian, Median, ProposedMedian, SmoothMedian
from local_dp.curator.sensitivity.triangles import GlobalTriangles, LadderTriangles, NoisyLocalTriangles, SmoothTriangles, Triangles
from local_dp.draws import Draws
from local_dp.experiments.lab.claim import Measurement, Point
from local_dp.loss import ATTO, Loss, exp_epsilon, nano_epsilon
from local_dp.noise import KeyedNoise
from local_dp.populations.graphs import Graph, binomial_graph, preferential_attachment

Rows: TypeAlias = tuple[tuple[int, ...], ...]
EPSILON, DELTA = 1.0, 1e-6
BITS, NODES = 20, 4
EXACT, PUBLISHED, HALVES, LOCAL = "smooth, exact constants", "smooth, published constants", "smooth, a = b = epsilon / 2", "local sensitivity instead"
GLOBAL, EXPONENTIAL, PROPOSED, NOISY, LADDER = "global sensitivity", "exponential mechanism", "proposal of .01", "noisy local sensitivity", "ladder"


class LocalNoise(CauchyNoise):
    """A wrong twin: the local sensitivity in place of the smooth one."""

    def scale(self, local: LocalSensitivity) -> int:
        return max(LEAST, math.ceil(FINE * local.within(0) / self.shift))


def constants(name: str, epsilon: float) -> CauchyNoise:
    """The noise of a row."""
    exact = CauchyNoise.exact(epsilon)
    half = Fraction(nano_epsilon(epsilon), 2)
    made: dict[str, Callable[[], CauchyNoise]] = {
        EXACT: lambda: exact,
        PUBLISHED: lambda: CauchyNoise.published(epsilon),
        HALVES: lambda: CauchyNoise(half / 10**9, exp_epsilon(half)),
        LOCAL: lambda: LocalNoise(exact.shift, exact.stretch),
    }
    return made[name]()


def measure_price(point: Point, seed: int) -> Measurement:
    """The closed form; and the largest log ratio of two Cauchy densities, at its stationary points, over shifts up to a and ratios of scales up to e^b."""
    noise = constants(point["constants"], point["epsilon"])
    a, b = float(noise.shift), math.log(noise.stretch)
    searched = max(_largest_log_ratio(a * part, math.exp(b * ratio)) for part, ratio in product(np.linspace(0.02, 1, 50), np.linspace(0, 1, 51)))
    return {"a": a, "b": b, "price": noise.loss.epsilon, "searched": searched}


def _largest_log_ratio(shift: float, other: float) -> float:
    """Of Cauchy densities at 0 of scale 1 and at `shift` of scale `other`."""
    middle = (shift + (other**2 - 1) / shift) / 2
    places = middle + np.array([-1, 1]) * math.sqrt(middle**2 + 1)
    return float(np.abs(np.log(((places - shift) ** 2 + other**2) / (other * (places**2 + 1)))).max())


def _median(records: Rows) -> Median:
    return Median(_multiset(records))


def _multiset(records: Rows) -> Multiset:
    return Multiset.of([value for (value,) in records], 3)


def _graph(edges: Rows) -> Graph:
    return Graph.of(np.array(edges, dtype=np.int64).reshape(-1, 2), NODES)


MEDIANS = [(value,) for value in (0, 1, 3, 6, 7)]
PAIRS = list(combinations(range(NODES), 2))


def measure_loss(point: Point, seed: int) -> Measurement:
    """The largest loss on all multisets of 5 from five points and on all graphs of 4 nodes, in nats: arccosh of what the scales of two neighbours give."""
    noise = constants(point["constants"], point["epsilon"])
    every: list[tuple[Neighbours, list[SmallDatabases[tuple[int, ...], LocalSensitivity]]]] = [
        ("replace", [SmallDatabases(MEDIANS, 5, _median)]),
        ("edge", [SmallDatabases(PAIRS, m, lambda edges: Triangles(_graph(edges))) for m in range(1, len(PAIRS) + 1)]),
    ]
    return {kind: max(_worst_loss(noise, kind, databases) for databases in sizes) for kind, sizes in every}


def _worst_loss(noise: CauchyNoise, kind: Neighbours, databases: SmallDatabases[tuple[int, ...], LocalSensitivity]) -> float:
    @cache
    def centre_and_scale(records: Rows) -> tuple[int, int]:
        local = databases.build(records)
        return FINE * local.value, noise.scale(local)

    pairs = {(centre_and_scale(one), centre_and_scale(other)) for one, other in databases.pairs(kind)}
    return max(math.acosh(cosh_loss(one[0] - other[0], one[1], other[1])) for one, other in pairs)


def measure_delta(point: Point, seed: int) -> Measurement:
    """The least delta at the stated epsilon over all small databases, by the mechanisms' own laws in whole numbers, in units of the stated one."""
    of_median = SmallDatabases[tuple[int, ...], Multiset](MEDIANS, 5, _multiset)
    of_graphs = [SmallDatabases[tuple[int, ...], Graph](PAIRS, m, _graph) for m in range(1, len(PAIRS) + 1)]
    proposal, noisy, ladder = ProposedMedian(1, 2.0, 0.05), NoisyLocalTriangles(0.5, 0.1), LadderTriangles(1.0)
    return {
        "proposal": float(of_median.worst_delta(proposal) * ATTO / proposal.loss.atto),
        "noisy": float(max(each.worst_delta(noisy) for each in of_graphs) * ATTO / noisy.loss.atto),
        "ladder": float(max(each.worst_delta(ladder) for each in of_graphs)),
        "exponential": float(of_median.worst_delta(ExponentialMedian(1.0))),
    }


def measure_medians(point: Point, seed: int) -> Measurement:
    """Errors on a fresh table for each run, as shares of the domain: n records, normal(.4, .05), on 2^20 points. No answer counts as the middle of it."""
    draws, generator = Draws(KeyedNoise(seed)), np.random.default_rng([seed, point["n"]])
    top = (1 << BITS) - 1
    asked: dict[str, Mechanism[Multiset, int | None, Loss]] = {
        GLOBAL: GlobalMedian(EPSILON),
        PUBLISHED: SmoothMedian(CauchyNoise.published(EPSILON)),
        PROPOSED: ProposedMedian(round(0.01 * top), EPSILON, DELTA),
        EXPONENTIAL: ExponentialMedian(EPSILON),
        EXACT: SmoothMedian(CauchyNoise.exact(EPSILON)),
    }
    errors, within = {name: list[float]() for name in asked}, 0
    for _ in range(point["runs"]):
        table = Multiset.of(np.round(np.clip(generator.normal(0.4, 0.05, point["n"]), 0, 1) * top).astype(np.int64), BITS)
        median = Median(table)
        for name, mechanism in asked.items():
            answer = mechanism.release(table, draws)
            errors[name].append(abs((top // 2 if answer is None else answer) - median.value + generator.random() - 0.5) / top)
        within += errors[EXACT][-1] * top <= CauchyNoise.exact(EPSILON).scale(median) / FINE
    return {"errors": errors, "within": within}


def graph_of(point: Point, seed: int) -> Graph:
    """The graph of a point: G(n, p), or preferential attachment with so many links."""
    generator = np.random.default_rng([seed, point["nodes"]])
    if "links" in point:
        return preferential_attachment(generator, point["nodes"], point["links"])
    return binomial_graph(generator, point["nodes"], point["chance"])


def measure_triangles(point: Point, seed: int) -> Measurement:
    """Errors of the count of one graph, and the scale of the smooth one: its median error."""
    draws, generator, local = Draws(KeyedNoise(seed)), np.random.default_rng(seed), Triangles(graph_of(point, seed))
    exact = CauchyNoise.exact(EPSILON)
    asked: dict[str, Mechanism[Triangles, int, Loss]] = {
        GLOBAL: GlobalTriangles(EPSILON),
        NOISY: NoisyLocalTriangles(EPSILON, DELTA),
        PUBLISHED: SmoothTriangles(CauchyNoise.published(EPSILON)),
        LADDER: LadderTriangles(EPSILON),
        EXACT: SmoothTriangles(exact),
    }
    errors = {
        name: [abs(mechanism.release(local, draws) - local.value + generator.random() - 0.5) for _ in range(point["runs"])] for name, mechanism in asked.items()
    }
    scale = exact.scale(local) / FINE
    return {"errors": errors, "within": sum(error <= scale for error in errors[EXACT]), "scale": scale}
