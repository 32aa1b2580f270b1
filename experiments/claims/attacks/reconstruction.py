"""Reconstruction: subset sums that are off by less than the square root of n give nearly every secret bit away, and one attack shows it in three models."""

import math
from typing import ClassVar, NamedTuple

import numpy as np

from local_dp.accounting.shares import optimal_part
from local_dp.arrays import Bools
from local_dp.attacks.reconstruction import Decoder, least_largest, least_squares, random_subsets, reconstruction
from local_dp.bounds.attacks import wrong_bits
from local_dp.curator.account import Account
from local_dp.curator.trusted import TrustedOracle
from local_dp.draws import Draws
from local_dp.experiments.lab.chapters import CURATOR_AND_ATTACKS, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.intervals import wilson
from local_dp.interaction import run
from local_dp.loss import Pure, approximate
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.population import PopulationOracle
from local_dp.oracles.statistical.oracles import BiasedOracle, ExactOracle
from local_dp.populations.table import Rows
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
CERTAIN = 4.4  # standard errors: a right rate is called wrong once in 100,000
Measured = list[tuple[Point, Measurement]]


class Reconstruction(Experiment[Point, Measurement]):
    """Dinur, Nissim 2003; Dwork, McSherry, Talwar 2007; lecture notes, chapter 4."""

    name: ClassVar[str] = "reconstruction"
    chapter: ClassVar[Chapter] = CURATOR_AND_ATTACKS
    title: ClassVar[str] = "Reconstruction: how exact may many counts be?"
    claim: ClassVar[str] = (
        "Whoever answers 4 n random counts of n secret bits with errors well below sqrt(n) has given nearly all of the bits away, whatever they meant to "
        "protect: what least squares gets wrong is one curve for all n in units of sqrt(n). Noise that is a share of n is no defence for few rows and a waste "
        "for many. The same attack, unchanged, has everything from exact expectations, next to nothing from a curator at epsilon 1, and from clients who "
        "answer for themselves exactly the bits that they told."
    )
    source: ClassVar[str] = "Dinur, Nissim 2003, Theorem 5; Dwork, McSherry, Talwar 2007; lecture notes 4.1"

    def points(self, scale: Scale) -> list[Point]:
        rows, least = ROWS[scale], BITS[scale]
        noise = [
            {"kind": "noise", "n": n, "a": a, "runs": -(-least // n), "decoders": list(DECODERS)[: 2 if n == rows[0] else 1]} for n in rows for a in NOISES
        ]
        shares = [{"kind": "share", "n": n, "a": SHARE * math.sqrt(n), "runs": 1, "decoders": ["least squares"]} for n in SHARE_ROWS[scale]]
        return noise + shares + [{"kind": "models", "n": MODEL_ROWS[scale], "epsilon": epsilon} for epsilon in EPSILONS]

    def measure(self, point: Point, seed: int) -> Measurement:
        return _measure_models(point, seed) if point["kind"] == "models" else _measure_noise(point, seed)

    def conclude(self, measurements: Measured, scale: Scale) -> Finding:
        scaled, shares, models = ([(point, found) for point, found in measurements if point["kind"] == kind] for kind in ("noise", "share", "models"))
        told, by_share, by_model = _noise_table(scaled), _share_table(shares), _models_table(models)
        figures = [_noise_figure(scaled), _models_figure(models)]
        checks = [_check_curve(scaled), _check_programs(scaled), _check_shares(shares), *_check_models(models)]
        checks += [figure_check(figures[:1], told), figure_check(figures[1:], by_model)]
        notes = [
            "Against this attack a curator at epsilon 5 or 20 hides single bits better than clients do, who each tell their own; clients' sums are off by "
            "sqrt(n) C / 2 all the same, so no count of theirs is as exact as a curator's.",
        ]
        return Finding(checks, [told, by_share, by_model], figures, notes, headline=_headline(shares, models))


class Even:
    """A bias that fills the tolerance evenly."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator

    def __call__(self, expectation: float) -> float:
        return float(self.generator.uniform(-1, 1))


def _secret(n: int, generator: np.random.Generator) -> Bools:
    bits: Bools = generator.random(n) < 0.5
    return bits


def _measure_noise(point: Point, seed: int) -> Measurement:
    """Wrong bits of all runs by each decoder on the same answers, those of the oracle that fills its tolerance evenly."""
    n, tau, wrong = int(point["n"]), 2 * point["a"] / math.sqrt(point["n"]), dict.fromkeys(point["decoders"], 0)
    for each in range(point["runs"]):
        generator = np.random.default_rng([seed, each])
        bits, subsets = _secret(n, generator), random_subsets(RATIO * n, n, generator)
        attacks = {name: reconstruction(subsets, min(tau, 0.999), DECODERS[name]) for name in wrong}
        oracle = BiasedOracle(Rows(secret_bits(bits)), Even(generator))
        answers = oracle.answer(attacks["least squares"].queries)
        for name, attack in attacks.items():
            wrong[name] += int(np.sum(attack.decode(answers) != bits))
    return {"wrong": wrong, "bits": n * int(point["runs"])}


def _measure_models(point: Point, seed: int) -> Measurement:
    """Wrong bits of one attack on one table: exact expectations, a curator with (eps, 1e-6) for all its answers, clients with eps for their bit."""
    n, epsilon = int(point["n"]), float(point["epsilon"])
    generator = np.random.default_rng(seed)
    bits = _secret(n, generator)
    table, public = secret_bits(bits), secret_bits(np.zeros(n, dtype=np.bool_))
    attack = reconstruction(random_subsets(RATIO * n, n, generator), 0.5, least_squares)
    part = optimal_part(approximate(epsilon, DELTA), RATIO * n)
    trusted = TrustedOracle[Records](table, Account(Pure(RATIO * n * part.nano)), Draws(KeyedNoise(seed)))
    guesses = {
        "exact expectations": run(attack, ExactOracle(Rows(table))),
        "a curator": run(curated_from_sq(attack, part.epsilon, n), trusted),
        "clients": run(from_own_bits(attack, public, SECRET, epsilon), PopulationOracle(Rows(table), KeyedNoise(seed), seed, epsilon)),
    }
    return {"wrong": {name: int(np.sum(guess != bits)) for name, guess in guesses.items()}, "bits": n}


def _closed(point: Point) -> float:
    n = int(point["n"])
    return wrong_bits(n, RATIO * n, point["a"] * math.sqrt(n / 3))


class Rate(NamedTuple):
    """Decoder and n, the point, the share of wrong bits and its interval."""

    name: str
    point: Point
    wrong: float
    low: float
    high: float

    @property
    def closed(self) -> bool:
        """Whether the closed form lies inside the interval and the 1 / n that it leaves open."""
        slack = 1 / self.point["n"]
        return bool(self.low - slack <= _closed(self.point) <= self.high + slack)


def _rates(measured: Measured, z: float = CERTAIN) -> list[Rate]:
    return [
        Rate(f"{name} n = {point['n']}", point, wrong / found["bits"], *wilson(wrong, found["bits"], z))
        for point, found in measured
        for name, wrong in found["wrong"].items()
    ]


def _of_squares(measured: Measured) -> list[Rate]:
    return [rate for rate in _rates(measured) if rate.name.startswith("least squares")]


def _headline(shares: Measured, models: Measured) -> str:
    small = min(_of_squares(shares), key=lambda rate: int(rate.point["n"]), default=None)
    curated = {point["epsilon"]: found["wrong"]["a curator"] / found["bits"] for point, found in models}
    read = "no counts were answered" if small is None else f"of {small.point['n']} secret bits {1 - small.wrong:.0%} are read off counts within {SHARE:g} n"
    hidden = ", ".join(f"{1 - wrong:.0%} at epsilon {epsilon:g}" for epsilon, wrong in sorted(curated.items())[:1])
    return f"By one attack {read}, and off a curator's counts {hidden or 'an unknown share'} (half are guessed)."


def _check_curve(scaled: Measured) -> Check:
    rates = _of_squares(scaled)
    return Check(
        "least squares gets wrong what the closed form says, for every n: sqrt(n) is the scale",
        bool(rates) and all(rate.closed for rate in rates),
        f"{len(rates)} rates, the closed form inside the interval and 1 / n of each",
    )


def _check_programs(scaled: Measured) -> Check:
    both = [(point["a"], found["wrong"]) for point, found in scaled if len(point["decoders"]) > 1]
    programs, squares = (sum(wrong[name] for _, wrong in both) for name in ("least largest error", "least squares"))
    return Check(
        "where errors are bounded the linear program gets fewer bits wrong than least squares on the same answers",
        programs < 0.9 * squares,
        ", ".join(f"{wrong['least largest error']} for {wrong['least squares']} at {a:g}" for a, wrong in both),
    )


def _check_shares(shares: Measured) -> Check:
    rates = sorted(_of_squares(shares), key=lambda rate: int(rate.point["n"]))
    return Check(
        f"noise within {SHARE:g} n hides nothing of the smallest table and a part of the largest, as the closed form says",
        bool(rates) and rates[0].wrong < 0.05 < rates[-1].wrong and all(rate.closed for rate in rates),
        ", ".join(f"{rate.wrong:.3f} wrong at n = {rate.point['n']}" for rate in rates),
    )


def _check_models(models: Measured) -> list[Check]:
    wrong = {point["epsilon"]: (found["wrong"], found["bits"]) for point, found in models}
    exact = [counts["exact expectations"] for counts, _ in wrong.values()]
    curators = {epsilon: counts["a curator"] / bits for epsilon, (counts, bits) in wrong.items()}
    clients = [(1 / (1 + math.exp(epsilon)), *wilson(counts["clients"], bits, CERTAIN)) for epsilon, (counts, bits) in wrong.items()]
    return [
        Check("exact expectations give every bit away", bool(exact) and not any(exact), f"{sum(exact)} wrong in {len(exact)} tables"),
        Check(
            "a curator at epsilon 1 hides nearly all of them, at epsilon 20 fewer",
            bool(curators) and curators[1.0] > 0.35 and curators[20.0] < curators[1.0],
            ", ".join(f"{share:.2f} wrong at epsilon {epsilon:g}" for epsilon, share in curators.items()),
        ),
        Check(
            "clients give away the bit that they told: wrong with probability 1 / (1 + e^eps)",
            bool(clients) and all(low <= share <= high for share, low, high in clients),
            ", ".join(f"{share:.3f} in [{low:.3f}, {high:.3f}]" for share, low, high in clients),
        ),
    ]


def _noise_table(scaled: Measured) -> Table:
    rows = [(rate.name, rate.point["a"], rate.wrong, rate.low, rate.high, _closed(rate.point)) for rate in _rates(scaled, Z95)]
    columns = ("decoder", "noise / sqrt(n)", "wrong", "from", "to", "closed form, least squares")
    return Table(f"share of wrong bits, {RATIO} n random counts, noise even within a sqrt(n) [95 %]", columns, rows)


def _share_table(shares: Measured) -> Table:
    rows = [(rate.point["n"], rate.wrong, _closed(rate.point)) for rate in _rates(shares)]
    return Table(f"share of wrong bits, noise even within {SHARE:g} n", ("n", "wrong", "closed form"), rows)


def _models_table(models: Measured) -> Table:
    rows = [(name, point["epsilon"], wrong / found["bits"]) for point, found in models for name, wrong in found["wrong"].items()]
    return Table("one attack, three models", ("who answers", "epsilon", "wrong"), rows)


def _noise_figure(scaled: Measured) -> Figure:
    rates = _rates(scaled, Z95)
    curves = []
    for name in dict.fromkeys(rate.name for rate in rates):
        drawn = [rate for rate in rates if rate.name == name]
        a, wrong = [rate.point["a"] for rate in drawn], [rate.wrong for rate in drawn]
        curves.append(Curve(name, a, wrong, low=[rate.low for rate in drawn], high=[rate.high for rate in drawn]))
    fine = [0.2 + 0.05 * place for place in range(27)]
    closed = Curve("closed form, least squares", fine, [_closed({"n": 1600, "a": a}) for a in fine], style="theory")
    title = f"Bits got wrong from {RATIO} n counts"
    return Figure("reconstruction", title, "noise, in units of sqrt(n)", "share of wrong bits", [*curves, closed])


def _models_figure(models: Measured) -> Figure:
    names = list(dict.fromkeys(name for _, found in models for name in found["wrong"]))
    curves = [Curve(name, [point["epsilon"] for point, _ in models], [found["wrong"][name] / found["bits"] for _, found in models]) for name in names]
    half = Curve("guessing", [EPSILONS[0], EPSILONS[-1]], [0.5, 0.5], style="bound")
    return Figure("reconstruction-models", "One attack, three models", "epsilon (nats)", "share of wrong bits", [*curves, half], log_x=True)


EXPERIMENT = Reconstruction()
