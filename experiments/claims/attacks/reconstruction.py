"""Reconstruction: subset sums with errors below sqrt(n) reveal nearly every secret bit. One attack shows it in three models."""

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from local_dp.accounting.rules import optimal_part
from local_dp.arrays import Bools
from local_dp.attacks.reconstruction import Decoder, least_largest, least_squares, random_subsets, reconstruction
from local_dp.bounds.attacks import wrong_bits
from local_dp.curator.account import Account, TrustedOracle
from local_dp.draws import Draws
from local_dp.experiments.lab.chapters import CURATOR_AND_ATTACKS
from local_dp.experiments.lab.checks import every
from local_dp.experiments.lab.claim import Check, Experiment, Figure, Finding, Scale, Table, curve, of_kind
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.findings import CERTAIN, Rows, curves
from local_dp.experiments.lab.intervals import wilson
from local_dp.interaction import run
from local_dp.loss import Pure, approximate
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.population import PopulationOracle
from local_dp.oracles.statistical.oracles import BiasedOracle, ExactOracle
from local_dp.populations import table as population
from local_dp.queries.subsets import SECRET, secret_bits
from local_dp.records import Records
from local_dp.tallies import Z95
from local_dp.theorems.curated import curated_from_sq
from local_dp.theorems.local_from_sq import from_own_bits

RATIO, DELTA, SHARE = 4, 1e-6, 0.02  # queries to a row; the curator's delta; noise as a share of n
NOISES = (0.25, 0.5, 0.75, 1.0, 1.5)  # in units of sqrt(n): the ends of the even noise
ROWS: dict[Scale, tuple[int, ...]] = {"quick": (64, 128, 256), "full": (100, 400, 1600)}
SHARE_ROWS: dict[Scale, tuple[int, ...]] = {"quick": (100, 400, 900), "full": (100, 400, 1600)}
MODEL_ROWS: dict[Scale, int] = {"quick": 256, "full": 800}
BITS: dict[Scale, int] = {"quick": 256, "full": 2000}  # at least, of each rate
EPSILONS = (1.0, 5.0, 20.0)
DECODERS: dict[str, Decoder] = {"least squares": least_squares, "least largest error": least_largest}


@dataclass(frozen=True)
class Wrong:
    wrong: dict[str, int]  # bits, by decoder or by model
    bits: int  # in all


@dataclass(frozen=True)
class Noise:
    """Wrong bits of all runs by each decoder on the same answers, from the oracle that fills its tolerance evenly: a sqrt(n)."""

    n: int
    a: float
    runs: int
    decoders: tuple[str, ...]
    share: bool = False  # whether a is a share of sqrt(n)

    def measure(self, seed: int) -> Wrong:
        tau, wrong = 2 * self.a / math.sqrt(self.n), dict.fromkeys(self.decoders, 0)
        for each in range(self.runs):
            generator = np.random.default_rng([seed, each])
            bits, subsets = _secret(self.n, generator), random_subsets(RATIO * self.n, self.n, generator)
            attacks = {name: reconstruction(subsets, min(tau, 0.999), DECODERS[name]) for name in wrong}
            oracle = BiasedOracle(population.Rows(secret_bits(bits)), partial(_even, generator))
            answers = oracle.answer(attacks["least squares"].queries)
            for name, attack in attacks.items():
                wrong[name] += int(np.sum(attack.decode(answers) != bits))
        return Wrong(wrong, self.n * self.runs)

    @property
    def closed(self) -> float:
        """The share of bits that least squares gets wrong, in closed form."""
        return wrong_bits(self.n, RATIO * self.n, self.a * math.sqrt(self.n / 3))


@dataclass(frozen=True)
class Models:
    """One attack on one table: exact expectations, a curator with (eps, 1e-6) for all its answers, clients with eps for their bit."""

    n: int
    epsilon: float

    def measure(self, seed: int) -> Wrong:
        n, generator = self.n, np.random.default_rng(seed)
        bits = _secret(n, generator)
        table, public = secret_bits(bits), secret_bits(np.zeros(n, dtype=np.bool_))
        attack = reconstruction(random_subsets(RATIO * n, n, generator), 0.5, least_squares)
        part = optimal_part(approximate(self.epsilon, DELTA), RATIO * n)
        trusted = TrustedOracle[Records](table, Account(Pure(RATIO * n * part.nano)), Draws(KeyedNoise(seed)))
        clients = PopulationOracle(population.Rows(table), KeyedNoise(seed), seed, self.epsilon)
        guesses = {
            "exact expectations": run(attack, ExactOracle(population.Rows(table))),
            "a curator": run(curated_from_sq(attack, part.epsilon, n), trusted),
            "clients": run(from_own_bits(attack, public, SECRET, self.epsilon), clients),
        }
        return Wrong({name: int(np.sum(guess != bits)) for name, guess in guesses.items()}, n)


def _even(generator: np.random.Generator, expectation: float) -> float:
    """A bias that fills the tolerance evenly."""
    return float(generator.uniform(-1, 1))


def _secret(n: int, generator: np.random.Generator) -> Bools:
    bits: Bools = generator.random(n) < 0.5
    return bits


Point: TypeAlias = Noise | Models


class Reconstruction(Experiment[Point, Wrong]):
    name = "reconstruction"
    chapter = CURATOR_AND_ATTACKS
    title = "Reconstruction: how exact may many counts be?"
    claim = (
        "Answers to 4 n random counts of n secret bits with errors well below sqrt(n) reveal nearly all of the bits. The errors of least squares form one "
        "curve for all n in units of sqrt(n). Noise that is a share of n is no defence for few rows and a waste for many. The same attack gets everything "
        "from exact expectations and next to nothing from a curator at epsilon 1. From clients who answer for themselves it gets exactly the bits that they "
        "reported."
    )
    source = "Dinur, Nissim 2003, Theorem 5; Dwork, McSherry, Talwar 2007; lecture notes 4.1"

    def points(self, scale: Scale) -> list[Point]:
        rows, least = ROWS[scale], BITS[scale]
        return [
            *(Noise(n, a, -(-least // n), tuple(DECODERS)[: 2 if n == rows[0] else 1]) for n in rows for a in NOISES),
            *(Noise(n, SHARE * math.sqrt(n), 1, ("least squares",), share=True) for n in SHARE_ROWS[scale]),
            *(Models(MODEL_ROWS[scale], epsilon) for epsilon in EPSILONS),
        ]

    def conclude(self, measurements: list[tuple[Point, Wrong]], scale: Scale) -> Finding:
        noise, models = of_kind(measurements, Noise), of_kind(measurements, Models)
        scaled, shares = ([row for row in noise if row[0].share == share] for share in (False, True))
        rows = [(name, p.epsilon, wrong / m.bits) for p, m in models for name, wrong in m.wrong.items()]
        by_model = Table("one attack, three models", ("who answers", "epsilon", "wrong"), rows)
        by_noise, by_share = _noise_table(scaled), sorted(_of_squares(shares), key=lambda rate: rate.point.n)
        share_rows = [(rate.point.n, rate.wrong, rate.point.closed) for rate in by_share]
        figures = [_noise_figure(by_noise), _models_figure(by_model)]
        squares = _of_squares(scaled)
        checks = [
            Check(
                "least squares errs as the closed form says, for every n: sqrt(n) is the scale",
                bool(squares) and all(rate.closed for rate in squares),
                f"{len(squares)} rates, the closed form inside the interval and 1 / n of each",
            ),
            _check_programs([(p.a, m.wrong) for p, m in scaled if len(p.decoders) > 1]),
            every(
                f"noise within {SHARE:g} n hides nothing of the smallest table and a part of the largest, as the closed form says",
                ((rate.closed, f"{rate.wrong:.3f} wrong at n = {rate.point.n}") for rate in by_share),
                also=bool(by_share) and by_share[0].wrong < 0.05 < by_share[-1].wrong,
            ),
            *_check_models(models),
            figure_check(figures[:1], by_noise),
            figure_check(figures[1:], by_model),
        ]
        notes = [
            "Against this attack a curator at epsilon 5 or 20 hides single bits better than clients do, who each report their own. Clients' sums are off by "
            "sqrt(n) C / 2 all the same, so no count of theirs is as exact as a curator's.",
        ]
        tables = [by_noise, Table(f"share of wrong bits, noise even within {SHARE:g} n", ("n", "wrong", "closed form"), share_rows), by_model]
        return Finding(checks, tables, figures, notes, headline=_headline(by_share, models))


class Rate(NamedTuple):
    """Decoder and n, the point, the share of wrong bits and its interval."""

    name: str
    point: Noise
    wrong: float
    low: float
    high: float

    @property
    def closed(self) -> bool:
        """Whether the closed form lies inside the interval and the 1 / n that it leaves open."""
        slack = 1 / self.point.n
        return bool(self.low - slack <= self.point.closed <= self.high + slack)


def _rates(rows: Rows[Noise, Wrong], z: float = CERTAIN) -> list[Rate]:
    return [Rate(f"{name} n = {p.n}", p, wrong / m.bits, *wilson(wrong, m.bits, z)) for p, m in rows for name, wrong in m.wrong.items()]


def _of_squares(rows: Rows[Noise, Wrong]) -> list[Rate]:
    return [rate for rate in _rates(rows) if rate.name.startswith("least squares")]


def _headline(by_share: list[Rate], models: Rows[Models, Wrong]) -> str:
    read = "no counts were answered"
    for rate in by_share[:1]:
        read = f"of {rate.point.n} secret bits {1 - rate.wrong:.0%} are read off counts within {SHARE:g} n"
    curated = [f"{1 - m.wrong['a curator'] / m.bits:.0%} at epsilon {p.epsilon:g}" for p, m in models]
    return f"By one attack {read}, and off a curator's counts {(curated or ['an unknown share'])[0]} (half are guessed)."


def _check_programs(both: list[tuple[float, dict[str, int]]]) -> Check:
    programs, squares = (sum(wrong[name] for _, wrong in both) for name in ("least largest error", "least squares"))
    return Check(
        "where errors are bounded the linear program gets fewer bits wrong than least squares on the same answers",
        programs < 0.9 * squares,
        ", ".join(f"{wrong['least largest error']} for {wrong['least squares']} at {a:g}" for a, wrong in both),
    )


def _check_models(models: Rows[Models, Wrong]) -> list[Check]:
    curators = {p.epsilon: m.wrong["a curator"] / m.bits for p, m in models}
    exact = [m.wrong["exact expectations"] for _, m in models]
    clients = [(1 / (1 + math.exp(p.epsilon)), *wilson(m.wrong["clients"], m.bits, CERTAIN)) for p, m in models]
    return [
        Check("exact expectations reveal every bit", bool(exact) and not any(exact), f"{sum(exact)} wrong in {len(exact)} tables"),
        Check(
            "a curator at epsilon 1 hides nearly all of them, at epsilon 20 fewer",
            bool(curators) and curators[1.0] > 0.35 and curators[20.0] < curators[1.0],
            ", ".join(f"{share:.2f} wrong at epsilon {epsilon:g}" for epsilon, share in curators.items()),
        ),
        every(
            "clients reveal the bit that they reported: wrong with probability 1 / (1 + e^eps)",
            ((low <= share <= high, f"{share:.3f} in [{low:.3f}, {high:.3f}]") for share, low, high in clients),
        ),
    ]


def _noise_table(scaled: Rows[Noise, Wrong]) -> Table:
    rows = [(rate.name, rate.point.a, rate.wrong, rate.low, rate.high, rate.point.closed) for rate in _rates(scaled, Z95)]
    columns = ("decoder", "noise / sqrt(n)", "wrong", "from", "to", "closed form, least squares")
    return Table(f"share of wrong bits, {RATIO} n random counts, noise even within a sqrt(n) [95 %]", columns, rows)


def _noise_figure(by_noise: Table) -> Figure:
    fine = [Noise(1600, 0.2 + 0.05 * place, 1, ()) for place in range(27)]
    closed = curve("closed form, least squares", ((noise.a, noise.closed) for noise in fine), "theory")
    drawn, title = curves(row[:5] for row in by_noise.rows), f"Bits got wrong from {RATIO} n counts"
    return Figure("reconstruction", title, "noise, in units of sqrt(n)", "share of wrong bits", [*drawn, closed])


def _models_figure(by_model: Table) -> Figure:
    half = curve("guessing", [(EPSILONS[0], 0.5), (EPSILONS[-1], 0.5)], "bound")
    return Figure("reconstruction-models", "One attack, three models", "epsilon (nats)", "share of wrong bits", [*curves(by_model.rows), half], log_x=True)


EXPERIMENT = Reconstruction()
