"""Private triangle counts: their sensitivity by brute force, their privacy on all graphs of five nodes."""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import chisquare

from local_dp.arrays import Ints
from local_dp.curator.account import Account
from local_dp.curator.laws import SmallDatabases, hockey_stick
from local_dp.curator.mechanism import Law, Mechanism
from local_dp.curator.selection.runs import Runs
from local_dp.curator.sensitivity.cauchy import FINE, CauchyNoise, cosh_loss
from local_dp.curator.sensitivity.triangles import GlobalTriangles, LadderTriangles, NoisyLocalTriangles, SmoothTriangles, Triangles
from local_dp.curator.trusted import TrustedOracle
from local_dp.draws import Draws
from local_dp.errors import RefusedError
from local_dp.interaction import Nonadaptive, run
from local_dp.loss import ATTO, Loss, Pure, exp_epsilon
from local_dp.noise import KeyedNoise
from local_dp.populations.graphs import Graph, binomial_graph, preferential_attachment

Edges = tuple[tuple[int, ...], ...]
PAIRS = list(combinations(range(5), 2))


@cache
def triangles(edges: Edges) -> Triangles:
    """Of five nodes."""
    return Triangles(Graph.of(np.array(edges, dtype=np.int64).reshape(-1, 2), 5))


class OfEdges(Triangles):
    """A wrong twin: the local sensitivity over joined pairs only, as if edges were never added."""

    def __init__(self, edges: Edges) -> None:
        super().__init__(Graph.of(np.array(edges, dtype=np.int64).reshape(-1, 2), 5))
        near = [{u + v - w for u, v in edges if w in (u, v)} for w in range(5)]
        self.joined = max((len(near[u] & near[v]) for u, v in edges), default=0)

    def within(self, distance: int) -> int:
        return super().within(distance) if distance else self.joined


of_edges = cache(OfEdges)


def as_they_are(edges: Edges) -> Edges:
    return edges


@cache
def neighbours(right: bool = True) -> list[tuple[Triangles, Triangles]]:
    """Of all graphs of five nodes that differ in an edge, one pair for all that have the same counts and sensitivities: no mechanism tells them apart."""
    build, found = triangles if right else of_edges, dict[tuple[int, ...], tuple[Triangles, Triangles]]()
    for m in range(1, 11):
        for pair in SmallDatabases(PAIRS, m, as_they_are).pairs("edge"):
            one, other = build(pair[0]), build(pair[1])
            found[*signature(one), *signature(other)] = one, other
    return list(found.values())


@cache
def signature(found: Triangles) -> tuple[int, ...]:
    """All that a mechanism sees of it."""
    return found.value, *(found.within(distance) for distance in range(11))


def worst_delta(mechanism: Mechanism[Triangles, int, Loss], right: bool = True, loss: Loss | None = None) -> Fraction:
    """Over all graphs of five nodes, exactly."""
    growth, laws = exp_epsilon((mechanism.loss if loss is None else loss).nano), dict[tuple[int, ...], Law[int]]()
    for found in (found for pair in neighbours(right) for found in pair):
        if signature(found) not in laws:
            laws[signature(found)] = mechanism.law(found)
    return max(hockey_stick(laws[signature(one)], laws[signature(other)], growth) for one, other in neighbours(right))


def test_sensitivities_by_brute_force() -> None:
    """On all graphs of five nodes: the count, and A_k as the largest step of the count over all graphs at distance k or less, exactly, for k up to 10."""
    flips = [1 << place for place in range(10)]
    graphs = [tuple(pair for place, pair in enumerate(PAIRS) if code >> place & 1) for code in range(1024)]
    counts = [sum(set(combinations(nodes, 2)) <= set(graph) for nodes in combinations(range(5), 3)) for graph in graphs]
    held = [max(abs(counts[code] - counts[code ^ flip]) for flip in flips) for code in range(1024)]
    assert counts == [triangles(graph).value for graph in graphs]
    for distance in range(11):
        assert held == [triangles(graph).within(distance) for graph in graphs]
        held = [max(held[code], *(held[code ^ flip] for flip in flips)) for code in range(1024)]


def dense(graph: Graph) -> tuple[int, Ints, Ints]:
    """Triangles, common neighbours and single ones of all pairs, by the definition."""
    joined = np.zeros((graph.nodes, graph.nodes), dtype=np.int64)
    joined[tuple(graph.edges.T)] = joined[tuple(graph.edges[:, ::-1].T)] = 1
    common = joined @ joined
    single = joined.sum(axis=0) + joined.sum(axis=1)[:, None] - 2 * common - 2 * joined
    return int((common * joined).sum()) // 6, common[np.triu_indices(graph.nodes, 1)], single[np.triu_indices(graph.nodes, 1)]


def test_larger_graphs_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the definition, over dense matrices: random graphs with many and few edges or none, one row at a time and all at once."""
    generator = np.random.default_rng(0)
    graphs = [binomial_graph(generator, 60, chance) for chance in (0, 0.05, 0.5, 1)] + [preferential_attachment(generator, 80, 4), Graph.of([], 1)]
    for graph, cells in product(graphs, (1, 1 << 22)):
        monkeypatch.setattr("local_dp.curator.sensitivity.triangles._CELLS", cells)
        found, (count, common, single) = Triangles(graph), dense(graph)
        assert found.value == count
        for k in (0, 1, 2, 5, 13, 200):
            raised = common + (k + np.minimum(k, single)) // 2
            assert found.within(k) == min(max(0, graph.nodes - 2), max(raised.tolist(), default=0))


def largest_loss(noise: CauchyNoise, right: bool = True) -> float:
    """cosh of the loss of two Cauchy laws of graphs that differ in an edge, at most: over all graphs of five nodes."""
    pairs = neighbours(right)
    return max(math.acosh(cosh_loss(FINE * (one.value - other.value), noise.scale(one), noise.scale(other))) for one, other in pairs)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_smooth_counts_are_private(epsilon: float) -> None:
    """On all graphs of five nodes and all edges the loss is at most epsilon, and reached to 2 %; over joined pairs only it is more."""
    assert 0.98 * epsilon < largest_loss(CauchyNoise.exact(epsilon)) <= epsilon
    assert largest_loss(CauchyNoise.exact(epsilon), right=False) > 1.05 * epsilon


@dataclass(frozen=True)
class NoMargin(NoisyLocalTriangles):
    """A wrong twin: the noisy local sensitivity as it is."""

    @property
    def margin(self) -> int:
        return 0


def test_noisy_local_counts_are_private() -> None:
    """On all graphs of five nodes the worst delta is at most its own; without the margin, and over joined pairs only, it is more."""
    worst = {}
    for epsilon, delta in ((0.5, 0.1), (2.0, 0.1), (4.0, 0.1), (1.0, 1e-3)):
        worst[epsilon] = worst_delta(NoisyLocalTriangles(epsilon, delta)) / Fraction(NoisyLocalTriangles(epsilon, delta).loss.atto, ATTO)
    assert max(worst.values()) <= 1
    assert worst[0.5] > 0.7
    assert worst_delta(NoMargin(0.5, 0.1)) > 0.4
    assert worst_delta(NoisyLocalTriangles(4.0, 0.1), right=False) > 0.2


@dataclass(frozen=True)
class Twice(LadderTriangles):
    """A wrong twin: two rungs at a time."""

    def candidates(self, database: Graph | Triangles) -> Runs:
        runs = super().candidates(database)
        return Runs(runs.ends, 2 * runs.scores, runs.last)


def test_ladder_and_global_counts_are_private() -> None:
    """On all graphs of five nodes nothing is beyond epsilon; a ladder over joined pairs only, one of twice the steps and half the noise are caught."""
    for epsilon in (0.5, 1.0):
        assert worst_delta(LadderTriangles(epsilon)) == worst_delta(GlobalTriangles(epsilon)) == 0
        nano = Pure(round(epsilon * 1e9))
        assert worst_delta(LadderTriangles(epsilon), right=False) > 1e-3
        assert worst_delta(Twice(epsilon), loss=nano) > 1e-3
        assert worst_delta(GlobalTriangles(2 * epsilon), loss=nano) > 1e-3


def p_value(mechanism: Mechanism[Triangles, int, Loss], law: Law[int], graph: Graph) -> float:
    """Of a chi-squared test that 1,000 releases have the law, in cells of 20 expected and more."""
    draws, found = Draws(KeyedNoise(9)), Triangles(graph)
    drawn = Counter(mechanism.release(found, draws) for _ in range(1000))
    assert set(drawn) <= set(law)
    large = [y for y in law if 1000 * law[y] > 20 * sum(law.values())]
    seen, expected = [drawn[y] for y in large], [1000 * law[y] / sum(law.values()) for y in large]
    return float(chisquare([*seen, 1000 - sum(seen)], [*expected, 1000 - sum(expected)]).pvalue)


@pytest.mark.parametrize("kind", [GlobalTriangles, LadderTriangles, lambda epsilon: NoisyLocalTriangles(epsilon, 0.01)])
def test_counts_are_drawn_from_their_law(kind: type[GlobalTriangles]) -> None:
    """Releases on a graph of six nodes fit the exact law (failure 1e-6); not that of twice the epsilon."""
    graph = binomial_graph(np.random.default_rng(2), 6, 0.7)
    assert p_value(kind(2.0), kind(2.0).law(graph), graph) > 1e-6 > p_value(kind(2.0), kind(4.0).law(graph), graph)


def test_smooth_counts_are_drawn_from_their_law() -> None:
    """Half of 1,000 errors are within the scale, S / a (binomial, failure 1e-6); half the scale is caught."""
    graph, mechanism = binomial_graph(np.random.default_rng(3), 200, 0.2), SmoothTriangles(CauchyNoise.exact(1.0))
    found, draws = Triangles(graph), Draws(KeyedNoise(3))
    errors = np.array([abs(mechanism.release(found, draws) - found.value) for _ in range(1000)])
    scale = mechanism.noise.scale(found) / FINE
    share = 2 / math.pi * math.atan((math.floor(scale) + 0.5) / scale)
    assert abs((errors <= scale).sum() - 1000 * share) < 4.9 * (1000 * share * (1 - share)) ** 0.5
    assert (errors <= scale / 2).sum() < 400


def test_noise_on_larger_graphs() -> None:
    """At epsilon 1 the scale, the median error of smooth counts, is within 15 of 17 on G(500, .1) and of 43 on preferential attachment (2000, 10)."""
    generator, exact, published = np.random.default_rng(0), CauchyNoise.exact(1.0), CauchyNoise.published(1.0)
    for graph, median in ((binomial_graph(generator, 500, 0.1), 17), (preferential_attachment(generator, 2000, 10), 43)):
        found = Triangles(graph)
        assert abs(exact.scale(found) / FINE - median) < 15
        assert published.scale(found) > 4 * exact.scale(found)


def test_an_account_of_edges_pays_for_them() -> None:
    """The trusted oracle answers counts of triangles on a budget of edge neighbours, and refuses them on one of replaced records."""
    graph, mechanism = binomial_graph(np.random.default_rng(4), 30, 0.3), SmoothTriangles(CauchyNoise.exact(1.0))
    oracle = TrustedOracle(graph, Account(Pure(10**9), "edge"), Draws(KeyedNoise(0)))
    asked: Nonadaptive[Mechanism[Graph, int, Loss], int, int] = Nonadaptive((mechanism,), lambda answers: answers[0])
    answer = run(asked, oracle)
    assert 0 <= answer <= math.comb(30, 3)
    assert oracle.account.spent == mechanism.loss
    with pytest.raises(RefusedError, match="neighbours"):
        TrustedOracle(graph, Account(Pure(10**9)), Draws(KeyedNoise(0))).answer((mechanism,))


def test_small_graphs_have_no_triangles() -> None:
    """Of one or two nodes: told as it is, for there is nothing to hide."""
    for graph in (Graph.of([], 1), Graph.of([(0, 1)], 2)):
        draws = Draws(KeyedNoise(0))
        for mechanism in (SmoothTriangles(CauchyNoise.exact(1.0)), GlobalTriangles(1.0), NoisyLocalTriangles(1.0, 1e-6), LadderTriangles(1.0)):
            assert mechanism.release(graph, draws) == 0
