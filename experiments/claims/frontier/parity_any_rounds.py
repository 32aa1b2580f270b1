"""Parity by any interaction: divergences add up exactly, which bounds every protocol; sequential
elimination comes near the bound."""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.random import Generator, default_rng

from local_dp.arrays import Floats
from local_dp.bounds import channels
from local_dp.bounds.channels import parity_interactive_bound
from local_dp.bounds.parity import parity_elimination_limit, parity_halving_clients
from local_dp.bounds.response import response_gain
from local_dp.cube import character
from local_dp.experiments.lab.parts import (
    FRONTIER,
    Check,
    Claimed,
    Experiment,
    Figure,
    Finding,
    Points,
    Positive,
    Rate,
    Row,
    Rows,
    Scale,
    Sheet,
    curve,
    every,
    grid,
    holds,
    mean,
    measured,
    own_seed,
    table_of,
)
from local_dp.hardness.transcripts import cut_inputs, random_protocol, transcript_laws
from local_dp.interaction import run
from local_dp.loss import exp_epsilon
from local_dp.oracles.local.oracles import AggregateOracle
from local_dp.protocols.parity.elimination import FEW, ParityElimination
from local_dp.randomizers.evidence import exact_ratio
from local_dp.randomizers.signs.characters import mask_set
from local_dp.randomizers.signs.suspects import Suspects

SMALLEST = 8  # bits that survivors are compared for
LIMIT_RATIO = 1.03  # of the clients of dependent and independent survivors, either way
EPSILON, SUCCESS, FALL = 1.0, 0.9, 2.1
EPSILONS = (0.5, 1.0, 2.0)
TRIALS = {
    "quick": {6: 40, 8: 60, 10: 20, 12: 10},
    "full": {6: 600, 8: 500, 10: 300, 12: 60},
}
INDEPENDENT = {"quick": 60, "full": 400}  # runs of independent survivors
BOTH = (False, True)
MOST = {6: 4.5, 8: 4.0, 10: 3.85, 12: 3.7}  # of C^2 2^d does elimination ask in the mean
SIZES = range(2, 17)  # of the survivor sets
SETS = {"quick": 8, "full": 200}  # of each size
TURNS = {2: 6, 4: 6, 8: 7}  # of protocols written out, by clients
DRAWN = range(4, 13)


class Sum(Row):
    """Of the protocols drawn: by how much the divergence of all clients differs from the sum of
    each alone, at most, in units of it."""

    off: float


class AddedUp(Row):
    """Protocols written out; without turns, a curator's AND by randomized response."""

    clients: int
    turns: int
    count: int

    def measure(self, seed: int) -> Sum:
        generator, inputs = default_rng(seed), cut_inputs(self.clients)
        if not self.turns:
            ones = np.where(inputs.all(axis=1), 0.75, 0.25)
            return Sum(off(np.stack([ones, 1 - ones], axis=1)))
        largest = 0.0
        for _ in range(self.count):
            protocol = random_protocol(self.clients, self.turns, generator, 1)
            largest = max(largest, off(transcript_laws(protocol, inputs)))
        return Sum(largest)


class Share(Row):
    """The mean divergence, over the parities, of one report from random labels, by the best
    channel."""

    best: float


class Person(Row):
    """One report about a parity of d bits."""

    d: int
    epsilon: float

    def measure(self, seed: int) -> Share:
        return Share(
            channels.best_channel(
                self.epsilon, 2 << self.d, lambda columns: parity_divergences(columns, self.d)
            ).value
        )

    @property
    def bound(self) -> float:
        squares = channels.report_squares(self.epsilon)
        return channels.divergence_curvature(self.epsilon) * squares / float(2**self.d)


class Worst(Row):
    """The largest ratio of two weights of one name, a fraction, over all examples and names of
    these survivor sets; and what e^epsilon allows."""

    ratio: str
    allowed: str


class Private(Row):
    """Suspects named among survivors, sets of each size drawn at random, at d = 4."""

    count: int

    def measure(self, seed: int) -> Worst:
        generator = default_rng(seed)
        ratio = Fraction(0)
        for size in np.repeat(SIZES, self.count).tolist():
            masks = mask_set(np.sort(generator.choice(16, size, replace=False)), 4)
            ratio = max(ratio, exact_ratio(Suspects(EPSILON, d=4, masks=masks)))
        return Worst(str(ratio), str(exp_epsilon(Suspects(EPSILON, d=4).nano)))


class Runs(Row):
    mean: float  # clients
    error: float  # of the mean
    successes: int
    rounds: float  # in the mean

    @property
    def whole(self) -> int:
        return round(self.mean)

    @property
    def whole_rounds(self) -> int:
        return round(self.rounds)


class Alone(Row):
    """Independent survivors in place of the protocol: each is named by the law of one."""

    mean: float  # clients
    error: float  # of the mean


class Independent(Row):
    """Elimination of `trials` times 2^d survivors that do not depend on each other; `rounding`:
    whether the set ruled out is rounded to half."""

    d: int
    trials: int
    rounding: bool

    @property
    def unit(self) -> float:
        return unit(self.d)

    @property
    def law(self) -> str:
        return "rounding to half" if self.rounding else "no rounding"

    @property
    def limit(self) -> float:
        return parity_elimination_limit(EPSILON, FALL)[0]

    def measure(self, seed: int) -> Alone:
        generator = default_rng([own_seed("independent survivors", seed, self.d)])
        clients = [independent(self.d, self.rounding, generator) for _ in range(self.trials)]
        figure = mean(clients)
        return Alone(figure.value, figure.error)


def independent(d: int, rounding: bool, generator: Generator) -> int:
    """The clients of one elimination of independent survivors; the first is the hidden parity."""
    shrink, step = 1 / response_gain(EPSILON), ParityElimination(d=d).step
    scores, truth, clients = np.zeros(1 << d), np.arange(1 << d) == 0, 0
    while len(scores) > 1:
        size = len(scores)
        if size >= FEW:
            count = math.ceil(step * size)
            # of the hidden one: 1 - s, and 2 s for its chance to be a spare of the set
            spread = math.sqrt(size * (1 - size / 2**d) / (2 * math.pi)) * rounding
            own = 1 - shrink + 2 * shrink * spread / size
            names = generator.poisson(np.where(truth, own, 1.0) * count / size)
            scores = scores + names * math.log(own) + (1 - own) * count / size
        else:
            count = size
            for sign in (1, -1):
                bits = generator.poisson((1 + sign * shrink * truth) / 2)
                scores = scores + bits * math.log1p(sign * shrink)
        clients += count
        likely = scores > -FALL
        scores, truth = scores[likely], truth[likely]
    return clients


class Eliminated(Row):
    """Runs of elimination: how many clients they ask, and how often they find the parity."""

    d: int
    trials: int

    @property
    def unit(self) -> float:
        return unit(self.d)

    @property
    def bound(self) -> float:
        return least(self.d)

    @property
    def least(self) -> int:
        return math.ceil(self.bound * self.unit)

    @property
    def halving(self) -> int:
        return parity_halving_clients(self.d, EPSILON, 1 - SUCCESS)

    def measure(self, seed: int) -> Runs:
        protocol = ParityElimination(d=self.d, fall=FALL)
        generator = default_rng([own_seed("parity any rounds", seed, self.d)])
        most = protocol.clients(EPSILON)
        clients, rounds, successes = list[int](), list[int](), 0
        for _ in range(self.trials):
            population = protocol.synthetic(most, int(generator.integers(1 << 62)))
            oracle = AggregateOracle(population, generator, EPSILON)
            successes += run(protocol.algorithm(EPSILON, most), oracle) == population.r
            clients.append(sum(each.n for each in oracle.rounds))
            rounds.append(len(oracle.rounds))
        figure = mean(clients)
        return Runs(figure.value, figure.error, successes, float(np.mean(rounds)))


def off(laws: Floats) -> float:
    """|KL(nobody, everybody) - sum_i KL(nobody, i alone)| in units of the first, of laws at the
    rows of `cut_inputs`."""
    parts = (laws[0] * np.log(laws[0] / laws[1:])).sum(axis=1)
    return float(abs(parts[-1] - parts[:-1].sum()) / parts[-1])


def parity_divergences(columns: Floats, d: int) -> Floats:
    """The mean over r of a report's M ln(M / M_r); the first 2^d symbols bear the label +1, the
    others -1."""
    plus, minus = np.split(columns, 2, axis=-1)
    points = np.arange(1 << d, dtype=np.uint64)
    signs = np.array([character(r, points) for r in range(1 << d)])
    labels = ((plus - minus) / 2) @ signs.T / 2**d
    random = ((plus + minus) / 2).mean(axis=-1, keepdims=True)
    return np.asarray((random * np.log(random / (random + labels))).mean(axis=-1))


class ParityAnyRounds(Experiment):
    name = "parity-any-rounds"
    chapter = FRONTIER
    title = "Parity by any interaction: a bound, and a protocol that comes near it"
    claim = (
        "However people are asked, in any number of rounds and again and again, a hidden parity "
        "of many bits takes at least 3.11 C^2 2^d of them at epsilon 1, with C = 2.16. One by "
        "one, unlikely parities can be dropped: this elimination takes less than 4 C^2 2^d in the "
        "mean from 8 bits on."
    )
    source = "limits 12.3"

    def points(self, scale: Scale) -> Points:
        sums = (
            AddedUp(clients, turns, 20 if scale == "quick" else 200)
            for clients, turns in TURNS.items()
        )
        people = grid(Person, (1, 2), (*EPSILONS, 3.0))
        eliminations = (Eliminated(d, trials) for d, trials in TRIALS[scale].items())
        return [
            *sums,
            AddedUp(2, 0, 1),
            *people,
            Private(SETS[scale]),
            *eliminations,
            *(Independent(d, INDEPENDENT[scale], each) for d in TRIALS[scale] for each in BOTH),
        ]

    def finding(self, sheet: Sheet) -> Finding:
        runs = sheet[Eliminated]
        checks = [*_bound_checks(sheet), *_run_checks(runs), _alone_check(sheet)]
        table = table_of(f"Parity at epsilon {EPSILON:g}: clients for {SUCCESS:.0%}", COLUMNS, runs)
        return Finding(
            checks,
            [table, table_of("Independent survivors", ALONE_COLUMNS, sheet[Independent])],
            [_figure(runs)],
            NOTES,
            headline=_headline(runs),
        )


NOTES = [
    f"Epsilon {EPSILON:g} and {SUCCESS:.0%} success unless stated. The number of clients that "
    "elimination asks is random: its mean is compared. It asks nobody twice.",
    (
        "The bound holds for a fixed number of clients, by any interaction. In turn it holds for "
        "the mean number under random labels too."
    ),
    "Survivors rule out by an example are not always half of the list. The randomizer rounds "
    "their number to exactly half at random; without this the size of the set would reveal the "
    "example.",
]


COLUMNS = (
    "d | every protocol, at least = least | elimination, mean clients = whole | in C^2 2^d = mean "
    "/ unit : 3 | the bound in C^2 2^d = bound : 3 | success = successes / trials : 3 | rounds = "
    "whole_rounds | halving, by formula = halving"
)


ALONE_COLUMNS = (
    "d | law = law | as d grows, in C^2 2^d = limit : 3 | independent survivors = mean / unit : 3 "
    "| standard error = error / unit : 3"
)


def _alone_check(sheet: Sheet) -> Check:
    alone = {p.d: m for p, m in sheet[Independent] if p.rounding}
    claims = {}
    for p, m in sheet[Eliminated]:
        if p.d < SMALLEST:
            continue
        other = alone[p.d]
        error = math.hypot(m.error / m.mean, other.error / other.mean)
        ratio = Positive(m.mean / other.mean, error, p.trials - 1)
        claims[f"d = {p.d}"] = Claimed(ratio, 1 / LIMIT_RATIO, LIMIT_RATIO)
    return holds(
        "Overshoot, rounds, rounding and last survivors explain what elimination asks within 3 %, "
        "from 8 bits on: its clients, in units of those for independent survivors",
        claims,
    )


def _bound_checks(sheet: Sheet) -> Iterator[Check]:
    cases = []
    for protocol, m in sheet[AddedUp]:
        whom = f"{protocol.clients} clients{'' if protocol.turns else ', a curator'}"
        cases.append(((m.off < 1e-9) is (protocol.turns > 0), f"{m.off:.1g} off with {whom}"))
    yield every(
        "In protocols drawn at random and written out, all clients together diverge "
        "by the sum of each alone; not a curator's AND",
        cases,
    )
    cases = []
    for person, m in sheet[Person]:
        below = m.best <= person.bound * (1 + 1e-9)
        evidence = f"{m.best / person.bound:.2f} (d = {person.d}, epsilon {person.epsilon:g})"
        cases.append((below, evidence))
    yield every(
        "No report diverges more than the bound's share: the best channel's "
        "divergence, in units of the bound",
        cases,
    )
    cases = []
    for _, m in sheet[Private]:
        ratio, most = Fraction(m.ratio), Fraction(m.allowed)
        cases.append((ratio <= most, f"{float(ratio):.9f} of {float(most):.9f}"))
    yield every(
        "Naming suspects is private for every list of survivors, by its whole weights",
        cases,
    )


def _run_checks(rows: Rows[Eliminated, Runs]) -> Iterator[Check]:
    means = {}
    for p, m in rows:
        error = m.error / m.mean
        means[p.d] = Positive(m.mean / p.unit, error, p.trials - 1)
    rates = {f"d = {p.d}": Rate(m.successes, p.trials) for p, m in rows}
    successes = sum(m.successes for _, m in rows)
    rates["all"] = Rate(successes, sum(p.trials for p, _ in rows))
    limits = ", ".join(f"{MOST[d]:g} at d = {d}" for d in means)
    claims = {f"d = {d}": Claimed(mean, least(d), MOST[d]) for d, mean in means.items()}
    yield holds(
        "Elimination asks no fewer clients in the mean than the bound, and at most so "
        f"many C^2 2^d: {limits}",
        claims,
    )
    yield measured(
        f"With them it finds the parity in {SUCCESS:.0%} of the runs, or more", rates, SUCCESS
    )


def unit(d: float) -> float:
    """C^2 2^d."""
    return float(response_gain(EPSILON) ** 2 * 2.0**d)


def least(d: int) -> float:
    """The bound, in units of C^2 2^d."""
    return parity_interactive_bound(d, EPSILON, SUCCESS) / unit(d)


def _figure(rows: Rows[Eliminated, Runs]) -> Figure:
    means = []
    for p, m in rows:
        ends = (m.mean, m.mean - 2 * m.error, m.mean + 2 * m.error)
        means.append((float(p.d), *(n / p.unit for n in ends)))
    halving = [(float(d), parity_halving_clients(d, EPSILON, 1 - SUCCESS) / unit(d)) for d in DRAWN]
    bounds = ((float(d), least(d)) for d in DRAWN)
    curves = [
        curve("elimination, measured mean", means),
        curve("halving, by formula", halving, "theory"),
        curve("every protocol: no fewer than", bounds, "bound"),
    ]
    title = "Clients for a parity, however they are asked"
    return Figure("parity-any-rounds", title, "dimension d", "clients / (C^2 2^d)", curves)


def _headline(rows: Rows[Eliminated, Runs]) -> str:
    p, m = rows[-1]
    return (
        f"At d = {p.d} every protocol needs {p.least:,} people or more; elimination asks "
        f"{m.mean:,.0f} in the mean."
    )


EXPERIMENT = ParityAnyRounds()
