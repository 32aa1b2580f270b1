"""Parity by any interaction: divergences add up exactly, which bounds every protocol; sequential
elimination comes near the bound."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds import channels
from local_dp.bounds.channels import parity_interactive_bound
from local_dp.bounds.parity import parity_halving_clients
from local_dp.bounds.response import response_gain
from local_dp.cube import character
from local_dp.experiments.lab.chapters import FRONTIER
from local_dp.experiments.lab.checks import Claimed, every, holds, measured
from local_dp.experiments.lab.claim import (
    Check,
    Experiment,
    Figure,
    Finding,
    Scale,
    Table,
    curve,
    of_kind,
)
from local_dp.experiments.lab.findings import Rows
from local_dp.experiments.lab.minimal_clients import own_seed
from local_dp.experiments.lab.statistics import Positive, Rate
from local_dp.hardness.certificates import parity_certificate, verify_certificate
from local_dp.hardness.transcripts import cut_inputs, random_protocol, transcript_laws
from local_dp.interaction import run
from local_dp.loss import exp_epsilon
from local_dp.oracles.local.oracles import AggregateOracle
from local_dp.protocols.parity.elimination import ParityElimination
from local_dp.randomizers.evidence import exact_ratio
from local_dp.randomizers.signs.characters import mask_set
from local_dp.randomizers.signs.suspects import Suspects

EPSILON, TARGET, FALL = 1.0, "9/10", 2.1
SUCCESS = float(Fraction(TARGET))
EPSILONS = (0.5, 1.0, 2.0)
TRIALS: dict[Scale, dict[int, int]] = {
    "quick": {6: 40, 8: 30, 10: 14},
    "full": {6: 600, 8: 500, 10: 300},
}
MOST = {6: 4.5, 8: 4.0, 10: 3.85}  # of C^2 2^d does elimination ask in the mean
SIZES = range(2, 17)  # of the survivor sets
SETS: dict[Scale, int] = {"quick": 8, "full": 200}  # of each size
TURNS = {2: 6, 4: 6, 8: 7}  # of protocols written out, by clients
DRAWN = range(4, 13)


@dataclass(frozen=True)
class Sum:
    """Of the protocols drawn: by how much the divergence of all clients differs from the sum of
    each alone, at most, in units of it."""

    off: float


@dataclass(frozen=True)
class AddedUp:
    """Protocols written out; without turns, a curator's AND by randomized response."""

    clients: int
    turns: int
    count: int

    def measure(self, seed: int) -> Sum:
        generator, inputs = np.random.default_rng(seed), cut_inputs(self.clients)
        if not self.turns:
            ones = np.where(inputs.all(axis=1), 0.75, 0.25)
            return Sum(off(np.stack([ones, 1 - ones], axis=1)))
        return Sum(
            max(
                off(
                    transcript_laws(random_protocol(self.clients, self.turns, generator, 1), inputs)
                )
                for _ in range(self.count)
            )
        )


@dataclass(frozen=True)
class Share:
    """The mean divergence, over the parities, of one report from random labels, by the best
    channel."""

    best: float


@dataclass(frozen=True)
class Person:
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
        return (
            channels.divergence_curvature(self.epsilon)
            * channels.report_squares(self.epsilon)
            / float(2**self.d)
        )


@dataclass(frozen=True)
class Worst:
    """The largest ratio of two weights of one name, a fraction, over all examples and names of
    these survivor sets; and what e^epsilon allows."""

    ratio: str
    allowed: str


@dataclass(frozen=True)
class Private:
    """Suspects named among survivors, sets of each size drawn at random, at d = 4."""

    count: int

    def measure(self, seed: int) -> Worst:
        generator = np.random.default_rng(seed)
        sets = (
            np.sort(generator.choice(16, size, replace=False))
            for size in SIZES
            for _ in range(self.count)
        )
        ratio = max(
            exact_ratio(Suspects(EPSILON, d=4, masks=mask_set(members, 4))) for members in sets
        )
        return Worst(str(ratio), str(exp_epsilon(Suspects(EPSILON, d=4).nano)))


@dataclass(frozen=True)
class Certified:
    certificate: dict[str, Any]
    valid: bool
    forged: int  # larger counts that pass


@dataclass(frozen=True)
class Certificate:
    """The bound as a file, and its check."""

    d: int

    def measure(self, seed: int) -> Certified:
        file = parity_certificate(self.d, EPSILON, TARGET)
        more = file | {"clients_at_least": str(int(file["clients_at_least"]) + 1)}
        return Certified(file, verify_certificate(file).valid, int(verify_certificate(more).valid))


@dataclass(frozen=True)
class Runs:
    mean: float  # clients
    error: float  # of the mean
    successes: int
    rounds: float  # in the mean


@dataclass(frozen=True)
class Eliminated:
    """Runs of elimination: how many clients they ask, and how often they find the parity."""

    d: int
    trials: int

    def measure(self, seed: int) -> Runs:
        protocol = ParityElimination(d=self.d, fall=FALL)
        generator, most = (
            np.random.default_rng([own_seed("parity any rounds", seed, self.d)]),
            protocol.clients(EPSILON),
        )
        asked, rounds, successes = list[int](), list[int](), 0
        for _ in range(self.trials):
            population = protocol.synthetic(most, int(generator.integers(1 << 62)))
            oracle = AggregateOracle(population, generator, EPSILON)
            successes += run(protocol.algorithm(EPSILON, most), oracle) == population.r
            asked.append(sum(each.n for each in oracle.rounds))
            rounds.append(len(oracle.rounds))
        return Runs(
            float(np.mean(asked)),
            float(np.std(asked, ddof=1)) / math.sqrt(self.trials),
            successes,
            float(np.mean(rounds)),
        )


Point: TypeAlias = AddedUp | Person | Private | Certificate | Eliminated
Measurement: TypeAlias = Sum | Share | Worst | Certified | Runs


def off(laws: Floats) -> float:
    """|KL(nobody, everybody) - sum_i KL(nobody, i alone)| in units of the first, of laws at the
    rows of `cut_inputs`."""
    parts = (laws[0] * np.log(laws[0] / laws[1:])).sum(axis=1)
    return float(abs(parts[-1] - parts[:-1].sum()) / parts[-1])


def parity_divergences(columns: Floats, d: int) -> Floats:
    """The mean over r of a report's M ln(M / M_r); the first 2^d symbols bear the label +1, the
    others -1."""
    plus, minus = np.split(columns, 2, axis=-1)
    signs = np.array([character(r, np.arange(1 << d, dtype=np.uint64)) for r in range(1 << d)])
    labels, random = (
        ((plus - minus) / 2) @ signs.T / 2**d,
        ((plus + minus) / 2).mean(axis=-1, keepdims=True),
    )
    return np.asarray((random * np.log(random / (random + labels))).mean(axis=-1))


class ParityAnyRounds(Experiment[Point, Measurement]):
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

    def points(self, scale: Scale) -> list[Point]:
        return [
            *(
                AddedUp(clients, turns, 20 if scale == "quick" else 200)
                for clients, turns in TURNS.items()
            ),
            AddedUp(2, 0, 1),
            *(Person(d, epsilon) for d in (1, 2) for epsilon in (*EPSILONS, 3.0)),
            Private(SETS[scale]),
            *(Certificate(d) for d in (*TRIALS[scale], 16)),
            *(Eliminated(d, trials) for d, trials in TRIALS[scale].items()),
        ]

    def conclude(self, measurements: list[tuple[Point, Measurement]], scale: Scale) -> Finding:
        added, people, certificates = (
            of_kind(measurements, AddedUp),
            of_kind(measurements, Person),
            of_kind(measurements, Certificate),
        )
        private, runs = of_kind(measurements, Private), of_kind(measurements, Eliminated)
        checks = [
            every(
                (
                    "In protocols drawn at random and written out, all clients together diverge "
                    "by the sum of each alone; not a curator's AND"
                ),
                (
                    (
                        (m.off < 1e-9) is (p.turns > 0),
                        (
                            f"{m.off:.1g} off with {p.clients} "
                            f"clients{'' if p.turns else ', a curator'}"
                        ),
                    )
                    for p, m in added
                ),
            ),
            every(
                (
                    "No report diverges more than the bound's share: the best channel's "
                    "divergence, in units of the bound"
                ),
                (
                    (
                        m.best <= p.bound * (1 + 1e-9),
                        f"{m.best / p.bound:.2f} (d = {p.d}, epsilon {p.epsilon:g})",
                    )
                    for p, m in people
                ),
            ),
            every(
                "Naming suspects is private for every list of survivors, by its whole weights",
                (
                    (
                        Fraction(m.ratio) <= Fraction(m.allowed),
                        f"{float(Fraction(m.ratio)):.9f} of {float(Fraction(m.allowed)):.9f}",
                    )
                    for _, m in private
                ),
            ),
            every(
                "The bound passes the independent checker, and a larger one does not",
                (
                    (
                        m.valid and not m.forged,
                        f"{int(m.certificate['clients_at_least']):,} clients at d = {p.d}",
                    )
                    for p, m in certificates
                ),
            ),
            *_run_checks(runs),
        ]
        notes = [
            f"Epsilon {EPSILON:g} and {SUCCESS:.0%} success unless stated. The number of clients "
            "that elimination asks is random: its mean is compared. It asks nobody twice.",
            (
                "The bound holds for a fixed number of clients, by any interaction. In turn it "
                "holds for the mean number under random labels too."
            ),
            "Survivors rule out by an example are not always half of the list. The randomizer "
            "rounds their number to exactly half at random; without this the size of the set "
            "would reveal the example.",
        ]
        files = {f"certificate parity {p.d}": m.certificate for p, m in certificates}
        return Finding(
            checks, [_table(runs)], [_figure(runs)], notes, files, headline=_headline(runs)
        )


def _run_checks(rows: Rows[Eliminated, Runs]) -> list[Check]:
    means = {p.d: Positive(m.mean / unit(p.d), m.error / m.mean, p.trials - 1) for p, m in rows}
    rates = {f"d = {p.d}": Rate(m.successes, p.trials) for p, m in rows}
    rates["all"] = Rate(sum(m.successes for _, m in rows), sum(p.trials for p, _ in rows))
    limits = ", ".join(f"{MOST[d]:g} at d = {d}" for d in means)
    return [
        holds(
            (
                "Elimination asks no fewer clients in the mean than the bound, and at most so "
                f"many C^2 2^d: {limits}"
            ),
            {f"d = {d}": Claimed(mean, least(d), MOST[d]) for d, mean in means.items()},
        ),
        measured(
            f"With them it finds the parity in {SUCCESS:.0%} of the runs, or more", rates, SUCCESS
        ),
    ]


def unit(d: float) -> float:
    """C^2 2^d."""
    return float(response_gain(EPSILON) ** 2 * 2.0**d)


def least(d: int) -> float:
    """The bound, in units of C^2 2^d."""
    return parity_interactive_bound(d, EPSILON, SUCCESS) / unit(d)


def _table(rows: Rows[Eliminated, Runs]) -> Table:
    columns = (
        "d",
        "every protocol, at least",
        "elimination, mean clients",
        "in C^2 2^d",
        "the bound in C^2 2^d",
        "success",
        "rounds",
        "halving, by formula",
    )
    lines = [
        (
            p.d,
            math.ceil(least(p.d) * unit(p.d)),
            round(m.mean),
            round(m.mean / unit(p.d), 3),
            round(least(p.d), 3),
            round(m.successes / p.trials, 3),
            round(m.rounds),
            parity_halving_clients(p.d, EPSILON, 1 - SUCCESS),
        )
        for p, m in rows
    ]
    return Table(f"Parity at epsilon {EPSILON:g}: clients for {SUCCESS:.0%}", columns, lines)


def _figure(rows: Rows[Eliminated, Runs]) -> Figure:
    curves = [
        curve(
            "elimination, measured mean",
            (
                (
                    float(p.d),
                    *(n / unit(p.d) for n in (m.mean, m.mean - 2 * m.error, m.mean + 2 * m.error)),
                )
                for p, m in rows
            ),
        ),
        curve(
            "halving, by formula",
            ((float(d), parity_halving_clients(d, EPSILON, 1 - SUCCESS) / unit(d)) for d in DRAWN),
            "theory",
        ),
        curve("every protocol: no fewer than", ((float(d), least(d)) for d in DRAWN), "bound"),
    ]
    return Figure(
        "parity-any-rounds",
        "Clients for a parity, however they are asked",
        "dimension d",
        "clients / (C^2 2^d)",
        curves,
    )


def _headline(rows: Rows[Eliminated, Runs]) -> str:
    if not rows:
        return "Nothing was measured."
    p, m = rows[-1]
    return (
        f"At d = {p.d} every protocol needs {math.ceil(least(p.d) * unit(p.d)):,} people or more; "
        f"elimination asks {m.mean:,.0f} in the mean."
    )


EXPERIMENT = ParityAnyRounds()
