"""Noise that follows the data: the exact price of smooth sensitivity, and its errors beside those
of other private answers."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import ClassVar, TypeVar

import numpy as np
from numpy.random import default_rng

from local_dp.curator.mechanism import Mechanism, Neighbours, SmallDatabases
from local_dp.curator.multisets import Multiset
from local_dp.curator.sensitivity import mechanisms
from local_dp.curator.sensitivity.mechanisms import (
    CauchyNoise,
    ExponentialMedian,
    GlobalMedian,
    LocalSensitivity,
    Median,
    ProposedMedian,
    SmoothMedian,
)
from local_dp.curator.sensitivity.triangles import (
    GlobalTriangles,
    LadderTriangles,
    NoisyLocalTriangles,
    SmoothTriangles,
    Triangles,
)
from local_dp.experiments.lab.parts import (
    CURATOR_AND_ATTACKS,
    Check,
    Claimed,
    Experiment,
    Figure,
    Finding,
    LogLogFigure,
    Points,
    Rate,
    Row,
    Rows,
    Scale,
    Sheet,
    Table,
    every,
    grid,
    holds,
    measured,
    quantile,
    seeded,
    table_of,
    tabulate,
)
from local_dp.loss import ATTO, Loss, exp_epsilon, nano_epsilon
from local_dp.populations.graphs import Graph, binomial_graph, preferential_attachment

Records = tuple[tuple[int, ...], ...]
D = TypeVar("D")
Locals = SmallDatabases[tuple[int, ...], LocalSensitivity]
EPSILON, DELTA = 1.0, 1e-6
BITS, NODES = 20, 4
EXACT, PUBLISHED, HALVES, LOCAL = (
    "smooth, exact constants",
    "smooth, published constants",
    "smooth, a = b = epsilon / 2",
    "local sensitivity instead",
)
GLOBAL, EXPONENTIAL, PROPOSED, NOISY, LADDER = (
    "global sensitivity",
    "exponential mechanism",
    "proposal of .01",
    "noisy local sensitivity",
    "ladder",
)
RUNS = {"quick": 1600, "full": 2000}
COUNTS = {"quick": 1200, "full": 2000}
SIZES = {"quick": (101, 1001), "full": (101, 301, 1001, 3001, 10001)}
RANDOM = {"quick": (100, 500), "full": (50, 100, 200, 500, 1000)}
VALUES, PAIRS = [(value,) for value in (0, 1, 3, 6, 7)], list(combinations(range(NODES), 2))


class LocalNoise(CauchyNoise):
    """A wrong twin: the local sensitivity in place of the smooth one."""

    def scale(self, local: LocalSensitivity) -> int:
        return max(mechanisms.LEAST, math.ceil(mechanisms.FINE * local.within(0) / self.shift))


def noise_of(constants: str, epsilon: float) -> CauchyNoise:
    """The noise with these constants."""
    half, exact = Fraction(nano_epsilon(epsilon), 2), CauchyNoise.exact(epsilon)
    if constants == PUBLISHED:
        return CauchyNoise.published(epsilon)
    if constants == HALVES:
        return CauchyNoise(half / 10**9, exp_epsilon(half))
    return LocalNoise(exact.shift, exact.stretch) if constants == LOCAL else exact


class Prices(Row):
    a: float
    b: float
    price: float  # in closed form
    # the largest log ratio of two densities, over shifts up to a and ratios of scales up to e^b
    searched: float


class Price(Row):
    """The loss of Cauchy noise with these constants."""

    constants: str
    epsilon: float

    def measure(self, seed: int) -> Prices:
        noise = noise_of(self.constants, self.epsilon)
        a, b = float(noise.shift), math.log(noise.stretch)
        parts, ratios = np.linspace(0.02, 1, 50), np.linspace(0, 1, 51)
        changes = product(a * parts, [math.exp(b * ratio) for ratio in ratios])
        largest = max(_largest_log_ratio(*change) for change in changes)
        return Prices(a, b, noise.loss.epsilon, largest)


def _largest_log_ratio(shift: float, other: float) -> float:
    """Of Cauchy densities at 0 of scale 1 and at `shift` of scale `other`: at the stationary
    points."""
    middle = (shift + (other**2 - 1) / shift) / 2
    places = middle + np.array([-1, 1]) * math.sqrt(middle**2 + 1)
    ratios = ((places - shift) ** 2 + other**2) / (other * (places**2 + 1))
    return float(np.abs(np.log(ratios)).max())


def _multiset(records: Records) -> Multiset:
    return Multiset.of([value for (value,) in records], 3)


def _graph(edges: Records) -> Graph:
    return Graph.of(np.array(edges, dtype=np.int64).reshape(-1, 2), NODES)


def _small_tables(build: Callable[[Records], D]) -> SmallDatabases[tuple[int, ...], D]:
    """All multisets of 5 from five points."""
    return SmallDatabases(VALUES, 5, build)


def _small_graphs(build: Callable[[Records], D]) -> list[SmallDatabases[tuple[int, ...], D]]:
    """All graphs of 4 nodes, by the number of edges."""
    return [SmallDatabases(PAIRS, m, build) for m in range(1, len(PAIRS) + 1)]


class Losses(Row):
    replace: float  # on all multisets of 5 from five points
    edge: float  # on all graphs of 4 nodes


class Small(Row):
    """The largest loss on all small databases, in nats: arccosh of a function of the scales of two
    neighbours."""

    noise: str
    epsilon: ClassVar = EPSILON

    def measure(self, seed: int) -> Losses:
        noise = noise_of(self.noise, self.epsilon)
        medians: Locals = _small_tables(lambda records: Median(_multiset(records)))
        graphs: list[Locals] = _small_graphs(lambda edges: Triangles(_graph(edges)))
        return Losses(
            _worst_loss(noise, "replace", medians),
            max(_worst_loss(noise, "edge", each) for each in graphs),
        )


def _worst_loss(noise: CauchyNoise, kind: Neighbours, databases: Locals) -> float:
    @cache
    def centre_and_scale(records: Records) -> tuple[int, int]:
        local = databases.build(records)
        return mechanisms.FINE * local.value, noise.scale(local)

    pairs = {
        (centre_and_scale(one), centre_and_scale(other)) for one, other in databases.pairs(kind)
    }
    cosh_losses = (
        mechanisms.cosh_loss(value - neighbour, scale, spread)
        for (value, scale), (neighbour, spread) in pairs
    )
    return max(map(math.acosh, cosh_losses))


class Laws(Row):
    proposal: float  # in units of the stated delta
    noisy: float  # in units of the stated delta
    ladder: float
    exponential: float


class Delta(Row):
    """The least delta at the stated epsilon over all small databases, by the mechanisms' own laws
    in whole numbers."""

    nodes: int

    def measure(self, seed: int) -> Laws:
        medians, graphs = _small_tables(_multiset), _small_graphs(_graph)
        proposal, noisy = ProposedMedian(1, 2.0, 0.05), NoisyLocalTriangles(0.5, 0.1)
        ladder = LadderTriangles(1.0)
        proposal_share = float(medians.worst_delta(proposal) * ATTO / proposal.loss.atto)
        noisy_share = float(
            max(each.worst_delta(noisy) for each in graphs) * ATTO / noisy.loss.atto
        )
        ladder_delta = float(max(each.worst_delta(ladder) for each in graphs))
        return Laws(
            proposal_share,
            noisy_share,
            ladder_delta,
            float(medians.worst_delta(ExponentialMedian(1.0))),
        )


class Errors(Row):
    errors: dict[str, list[float]]  # of each answer, run by run
    # of the smooth answers, run by run: their median errors, given the database
    scales: dict[str, list[float]]
    count: int | None = None  # the right answer, where it is a count: answers below 0 are 0

    def at(self, name: str, share: float = 0.5) -> tuple[float, float, float]:
        """The median or another quantile, with its 95 % interval."""
        return quantile(self.errors[name], share)

    def within(self, name: str, times: float = 1.0, of: str = EXACT) -> Rate:
        """How many errors of an answer are within so many scales of a smooth one: binomial, as runs
        share nothing but the law of the database."""
        near = np.array(self.errors[name]) <= times * np.array(self.scales[of])
        return Rate(int(near.sum()), len(near))

    @property
    def gain(self) -> float:
        """How many times smaller the scale by exact constants is, at least."""
        published_scales = np.array(self.scales[PUBLISHED])
        return float(np.min(published_scales / np.array(self.scales[EXACT])))


class Medians(Row):
    """A fresh table for each run: n records, normal(.4, .05), on 2^20 points. No answer counts as
    the middle. Errors are shares of the domain."""

    n: int
    runs: int

    def measure(self, seed: int) -> Errors:
        draws, generator = seeded(seed), default_rng([seed, self.n])
        top = (1 << BITS) - 1
        kinds: dict[str, Mechanism[Multiset, int | None, Loss]] = {
            GLOBAL: GlobalMedian(EPSILON),
            PUBLISHED: SmoothMedian(CauchyNoise.published(EPSILON)),
            PROPOSED: ProposedMedian(round(0.01 * top), EPSILON, DELTA),
            EXPONENTIAL: ExponentialMedian(EPSILON),
            EXACT: SmoothMedian(CauchyNoise.exact(EPSILON)),
        }
        smooth = {name: noise_of(name, EPSILON) for name in (EXACT, PUBLISHED)}
        errors = {name: list[float]() for name in kinds}
        scales = {name: list[float]() for name in smooth}
        for _ in range(self.runs):
            shares = np.clip(generator.normal(0.4, 0.05, self.n), 0, 1)
            table = Multiset.of(np.round(shares * top).astype(np.int64), BITS)
            median = Median(table)
            for name, mechanism in kinds.items():
                answer = mechanism.release(table, draws)
                off = (top // 2 if answer is None else answer) - median.value
                errors[name].append(abs(off + generator.random() - 0.5) / top)
            for name, noise in smooth.items():
                scales[name].append(noise.scale(median) / mechanisms.FINE / top)
        return Errors(errors, scales)

    @property
    def data(self) -> tuple[str, int]:
        return "normal(.4, .05)", self.n


class Counts(Row):
    """The triangles of one graph: G(nodes, chance), or preferential attachment with so many
    links."""

    nodes: int
    runs: int
    chance: float = 0.0
    links: int = 0

    def measure(self, seed: int) -> Errors:
        own = default_rng([seed, self.nodes])
        if self.links:
            graph = preferential_attachment(own, self.nodes, self.links)
        else:
            graph = binomial_graph(own, self.nodes, self.chance)
        draws, generator, local = seeded(seed), default_rng(seed), Triangles(graph)
        kinds: dict[str, Mechanism[Triangles, int, Loss]] = {
            GLOBAL: GlobalTriangles(EPSILON),
            NOISY: NoisyLocalTriangles(EPSILON, DELTA),
            PUBLISHED: SmoothTriangles(CauchyNoise.published(EPSILON)),
            LADDER: LadderTriangles(EPSILON),
            EXACT: SmoothTriangles(CauchyNoise.exact(EPSILON)),
        }

        def error(mechanism: Mechanism[Triangles, int, Loss]) -> float:
            return abs(mechanism.release(local, draws) - local.value + generator.random() - 0.5)

        errors = {name: [error(each) for _ in range(self.runs)] for name, each in kinds.items()}
        scales = {
            name: [noise_of(name, EPSILON).scale(local) / mechanisms.FINE] * self.runs
            for name in (EXACT, PUBLISHED)
        }
        return Errors(errors, scales, local.value)

    @property
    def data(self) -> tuple[str, int]:
        if self.links:
            return f"preferential attachment ({self.nodes}, {self.links})", self.nodes
        return f"G({self.nodes}, {self.chance:g})", self.nodes


class DataNoise(Experiment):
    name = "data-noise"
    chapter = CURATOR_AND_ATTACKS
    title = "Noise that follows the data: medians and triangles"
    claim = (
        "One record can move the median of some databases across the whole domain, and that of "
        "most hardly at all. Noise may follow the actual database if its scale changes smoothly "
        "between neighbours; noise of the local sensitivity itself would reveal records. The "
        "exact price of Cauchy noise is a distance in the hyperbolic plane, less than a quarter "
        "of the published price. So a median or a count errs at least six times less than by the "
        "published constants, and on graphs of 500 and more nodes a count of triangles less than "
        "by any of four other private counts."
    )
    source = (
        "Nissim, Raskhodnikova, Smith 2007; Dwork, Lei 2009; Zhang, Cormode, Procopiuc, "
        "Srivastava, Xiao 2015"
    )

    def points(self, scale: Scale) -> Points:
        prices = grid(Price, (EXACT, PUBLISHED, HALVES), (0.1, 1.0, 2.0))
        small = map(Small, (EXACT, PUBLISHED, LOCAL))
        medians = (Medians(n, RUNS[scale]) for n in SIZES[scale])
        graphs = (Counts(nodes, COUNTS[scale], chance=0.1) for nodes in RANDOM[scale])
        return [
            *prices,
            *small,
            Delta(NODES),
            *medians,
            *graphs,
            Counts(2000, COUNTS[scale], links=10),
        ]

    def finding(self, sheet: Sheet) -> Finding:
        medians, triangles = sheet[Medians], sheet[Counts]
        errors = (
            _errors("error of medians, as a share of the domain", medians),
            _errors("error of triangle counts", triangles),
        )
        random = replace(errors[1], rows=[row for row in errors[1].rows if row[1].startswith("G")])
        tables = [
            table_of(
                "the price of the constants",
                "constants | epsilon | a | b | price | searched",
                sheet[Price],
            ),
            table_of(
                "the largest loss on all small databases",
                "noise | epsilon | medians = replace | triangles = edge",
                sheet[Small],
            ),
            *errors,
        ]
        figures = [
            _figure(
                "medians",
                "The error of a private median, as a share of the domain",
                "records",
                errors[0],
            ),
            _figure(
                "triangles", "The error of a private count of triangles, G(n, .1)", "nodes", random
            ),
        ]
        checks = [
            _check_price(sheet[Price]),
            _check_loss(sheet[Small]),
            every(
                "on the same databases the proposal and the noisy local sensitivity keep to "
                "delta, the ladder and the exponential mechanism have none",
                (
                    (value <= (name in ("proposal", "noisy")), f"{name}: {value:.4g}")
                    for _, m in sheet[Delta]
                    for name, value in vars(m).items()
                ),
            ),
            *_check_scales([m for _, m in medians + triangles]),
            *_check_medians({f"n = {p.n:,}": m for p, m in medians if p.n >= 1000}),
            _check_counts({p.data[0]: m for p, m in triangles if p.nodes >= 500}),
        ]
        notes = [
            (
                f"Everything at epsilon {EPSILON:g}, and delta {DELTA:g} where there is one. "
                "Cauchy noise has no mean: 1 answer in 20 is off by 12.7 scales."
            ),
            (
                "The published constants are run at the epsilon they were published for; the "
                "first table has their true price."
            ),
        ]
        return Finding(checks, tables, figures, notes, headline=_headline(medians))


def _headline(medians: Rows[Medians, Errors]) -> str:
    """Of the largest table."""
    point, largest = max(medians, key=lambda each: each[0].n)
    names = (EXACT, EXPONENTIAL, PUBLISHED)
    errors = ", ".join(f"{name} {largest.at(name)[0]:.2g}" for name in names)
    return (
        f"Private medians of {point.n:,} records have these errors, as shares of the domain: "
        f"{errors}."
    )


def _check_price(price: Rows[Price, Prices]) -> Check:
    agree = all(m.searched <= m.price + 2e-9 for _, m in price)
    cases = []
    for p, m in price:
        price_error = abs(m.price - p.epsilon) / 1e-9
        off = max(price_error, abs(m.searched - p.epsilon) / 1e-6)
        if p.constants == EXACT:
            cases.append((off <= 1, f"{m.price:.9g} for {p.epsilon:g}"))
    most = max(m.price / p.epsilon for p, m in price if p.constants == PUBLISHED)
    return every(
        "the exact constants cost epsilon, by closed form and by search; the published ones "
        "less than a quarter of it",
        cases,
        f"published: at most {most:.3f} of it",
        also=agree and most < 0.25,
    )


def _check_loss(loss: Rows[Small, Losses]) -> Check:
    worst = {p.noise: (min if p.noise == LOCAL else max)(m.replace, m.edge) for p, m in loss}
    close = 0.95 * EPSILON < worst[EXACT] <= EPSILON >= worst[PUBLISHED]
    verdict = close and worst[LOCAL] > 2 * EPSILON
    losses = ", ".join(f"{name}: {each:.4f}" for name, each in worst.items())
    return Check(
        "on all multisets of 5 from five points and all graphs of 4 nodes the loss is at most "
        "epsilon, and nearly met; that of local sensitivity is larger",
        verdict,
        losses,
    )


def _check_scales(smooth: list[Errors]) -> Iterator[Check]:
    """The median of |Cauchy| is its scale; whole answers move the share by less than .001. The
    published shift, and the decay of S, are smaller.

    Where the scale is beyond the count, answers below 0 are cut into it: of 50 nodes three quarters
    are within the published one.
    """
    halves = {}
    for name in (EXACT, PUBLISHED):
        large = [m for m in smooth if m.count is None or m.count > max(m.scales[name])]
        rates = [m.within(name, of=name) for m in large]
        successes, trials = (
            sum(rate.successes for rate in rates),
            sum(rate.trials for rate in rates),
        )
        halves[name] = Rate(successes, trials)
    times = 2 * math.sinh(EPSILON / 2) / (EPSILON / 6)
    gain = min(m.gain for m in smooth)
    yield measured(
        "half of all smooth answers are within their scale, unless it is beyond the count",
        halves,
        0.499,
        0.501,
    )
    yield Check(
        f"on every database the scale by exact constants is at least {times:.2f} times "
        "smaller than by published ones",
        gain >= 0.999 * times,  # scales are rounded up
        f"{gain:.4f} times or more",
    )


def _check_medians(large: dict[str, Errors]) -> Iterator[Check]:
    """In units of the scale of the exact constants. Beyond the last one, tan(.45 pi), lies a tenth
    of Cauchy noise."""
    far, tail = [(PROPOSED, 20, 0.25), (GLOBAL, 200, 0.05)], math.tan(0.45 * math.pi)
    orders, middle, tails = {}, {}, {}
    for data, m in large.items():
        for name, times, most in far:
            claim = Claimed(m.within(name, times), high=most)
            orders[f"{name}, {times} scales, {data}"] = claim
        middle[f"within one scale, {data}"] = Claimed(m.within(EXPONENTIAL), 0.42, 0.56)
        wide = Claimed(m.within(EXPONENTIAL, tail), 0.93)
        tails[f"within {tail:.2f} scales, {data}"] = wide
    yield holds(
        "from 1,001 records on 3 in 4 proposals err by more than 20 scales of the exact "
        "constants, and 95 % by the worst case's noise by more than 200",
        orders,
    )
    yield holds(
        "the exponential mechanism errs about as much: 42 to 56 % of its medians are "
        "within this scale; its tail is lighter, 7 % for 10 %",
        middle | tails,
    )


def _check_counts(large: dict[str, Errors]) -> Check:
    """The median errors in units of the scale: on random graphs these figures vary by some per
    cent."""
    others = [(LADDER, 1.4), (NOISY, 1.8), (GLOBAL, 15)]
    shares = {
        f"{name}, within {times} scales, {data}": m.within(name, times)
        for data, m in large.items()
        for name, times in others
    }
    return measured(
        "on graphs of 500 and more nodes the median error of a ladder exceeds 1.4 scales of "
        "the exact constants, by noisy local sensitivity 1.8, by global 15",
        shares,
        high=0.5,
    )


def _errors(title: str, rows: Rows[Medians, Errors] | Rows[Counts, Errors]) -> Table:
    cells = [(name, *p.data, *m.at(name), m.at(name, 0.9)[0]) for p, m in rows for name in m.errors]
    return tabulate(
        title, "answer | data | records or nodes | median error | low | high | 90 % quantile", cells
    )


def _figure(name: str, title: str, axis: str, errors: Table) -> Figure:
    curves = errors.curves("answer | records or nodes | median error | low | high")
    return LogLogFigure(f"data-noise-{name}", title, axis, "median error", curves)


EXPERIMENT = DataNoise()
