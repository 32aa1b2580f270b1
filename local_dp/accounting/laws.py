"""Privacy losses as laws: of one part, of a total on a mesh with its prices, and of the sum of
unequal parts.

That sum comes from a tilted Fourier transform, rounded towards privacy. Each law is put on one
mesh. A loss between two points is split among them so that both laws of the pair keep their mass.
The pair on the mesh is then at least as bad; its variance grows by at most a quarter of the mesh
squared (Doroshenko et al. 2022). Chernoff's inequality bounds what wraps around.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from local_dp.accounting.losses import DiscreteGaussian, Gaussian, Lattice, gaussian_epsilon
from local_dp.arrays import Floats, Ints
from local_dp.checks import check_whole
from local_dp.loss import ATTO, NANO, Approximate, Pure

_ABOVE = 1 + 1e-9  # more than the rounding of sums and exponentials
_REACH = 600.0  # exponents that a float holds


@dataclass(frozen=True)
class Curve:
    """The loss l is lowest + i step with probability weights[i] e^(scale - tilt l), and infinite
    with probability `infinite`; in nats.

    Tilting keeps the weights that matter near 1, so that even a tiny delta has a small relative
    error. Callers round the weights up.
    """

    lowest: float
    step: float
    weights: Floats
    tilt: float = 0.0
    scale: float = 0.0
    infinite: float = 0.0

    def delta(self, epsilon: float) -> float:
        """The least delta beside this epsilon (nats), rounded up: Pr[infinite] + E[(1 - e^(eps -
        loss))_+]; 1 below the lowest loss kept."""
        if epsilon < self.lowest:
            return 1.0
        start = max(0, math.floor((epsilon - self.lowest) / self.step) + 1)
        over = (self.lowest - epsilon) + np.arange(start, len(self.weights)) * self.step
        shares = (
            self.weights[start:] * np.exp(-self.tilt * over) * -np.expm1(-np.maximum(over, 0.0))
        )
        return min(1.0, self.infinite + float(shares.sum()) * self._scale_at(epsilon) * _ABOVE)

    def epsilon(self, delta: float) -> float:
        """The least epsilon (nats) beside this delta, rounded up, or infinity. Between two losses
        delta is linear in e^epsilon."""
        rest = (delta - self.infinite) / _ABOVE
        if rest <= 0:
            return math.inf
        at = self._near(rest)
        over = (np.arange(len(self.weights)) - at) * self.step
        near = over * (self.tilt + 1) > -_REACH  # weights far below the answer do not matter
        over = over[near]
        weights = self.weights[near]
        here = weights * np.exp(-self.tilt * over)
        sums = _above(here)
        others = _above(here * np.exp(-over))
        loss = self.lowest + at * self.step
        scale = self._scale_at(loss)
        deltas = np.maximum(sums - np.exp(np.minimum(over, _REACH)) * others, 0.0) * scale
        lowest = int(np.argmax(deltas <= rest))  # the last one is 0
        loss += float(over[lowest])
        if lowest:
            part = (rest - deltas[lowest]) / (deltas[lowest - 1] - deltas[lowest])
            loss += math.log1p(part * math.expm1(-self.step))
        return max(0.0, loss + 1e-12 * abs(loss) + 1e-15 * abs(self.lowest))

    def _scale_at(self, loss: float) -> float:
        return math.exp(min(self.scale - self.tilt * loss, _REACH))

    def _near(self, delta: float) -> int:
        """The first place whose tail is at most delta: exponentials are taken around it."""
        mode = int(np.argmax(self.weights))
        away = (np.arange(len(self.weights)) - mode) * self.step * self.tilt
        beyond = _above(self.weights * np.exp(np.minimum(-away, _REACH)))
        scale = self._scale_at(self.lowest + mode * self.step)
        return min(int(np.searchsorted(-beyond * scale, -delta)), len(self.weights) - 1)


def _above(values: Floats) -> Floats:
    return np.append(np.cumsum(values[:0:-1])[::-1], 0.0)


Exact: TypeAlias = Pure | Approximate | Lattice | Gaussian | DiscreteGaussian
"""A loss whose worst law is known. That of a `Concentrated` one is not: it may be any of many."""

_FAR = 20.0  # standard deviations of noise; beyond, the loss counts as infinite: probability 6e-89
_BEYOND = 1e-88
_NONE = 1e-290  # a smaller mass counts towards the infinite loss
_FINE = (
    0.05  # mu below which a discrete Gaussian is as good as a normal one where a bound is asked for
)
# to a standard deviation of a normal loss, three nodes each: wrong by less than 1e-11 of a mass
_CELLS = 50
_MARGIN = 1 + 1e-10
SLACK = 2e-15  # of a loss: more than the rounding of floats


@dataclass(frozen=True)
class Atoms:
    """The loss is losses[i] with probability masses[i], and infinite with probability `infinite`;
    `step` divides all losses, to within 1e-18.

    With `mu`, the losses are nodes of a normal law, or bounded by one: E[e^(t loss)] <= e^(t (t +
    1) mu^2 / 2).
    """

    losses: Floats
    masses: Floats
    infinite: float
    step: Fraction
    mu: float = 0.0

    @property
    def variance(self) -> float:
        mean = float(self.masses @ self.losses)
        return float(self.masses @ (self.losses - mean) ** 2)

    @property
    def width(self) -> float:
        return float(self.losses.max() - self.losses.min())

    def slack(self, mesh: float) -> float:
        """By how many nats a place on a mesh may be too low."""
        return 2 * SLACK * (float(np.abs(self.losses).max()) + mesh)

    def log_growth(self, tilt: float) -> float:
        """An upper bound on ln E[e^(tilt loss); finite]."""
        if self.mu:
            return tilt * (tilt + 1) * self.mu**2 / 2
        return log_sum(np.log(self.masses) + tilt * self.losses)

    def on_mesh(self, mesh: float) -> tuple[Ints, Floats]:
        """Places and masses on a mesh: each loss is split among its two neighbours so that both
        laws keep their mass; within `slack`, a loss is a place."""
        places = np.floor(self.losses / mesh + SLACK * (np.abs(self.losses) / mesh + 1))
        over = self.losses - places * mesh
        over[np.abs(over) <= SLACK * (np.abs(self.losses) + mesh)] = 0.0
        upper = self.masses * np.minimum(1.0, np.expm1(-over) / math.expm1(-mesh))
        low = int(places.min())
        count = int(places.max() - places.min()) + 2
        here = (places - low).astype(np.int64)
        lower = np.bincount(here, self.masses - upper, count).astype(np.float64)
        higher = np.bincount(here + 1, upper, count)
        masses = lower + higher
        support = np.flatnonzero(masses)
        return support + low, masses[support]


def log_sum(logs: Floats) -> float:
    """ln of the sum of e^log; minus infinity of nothing."""
    most = float(logs.max(initial=-math.inf))
    return most + math.log(float(np.exp(logs - most).sum())) if math.isfinite(most) else most


@lru_cache(maxsize=64)
def atoms_of(part: Exact) -> Atoms:
    """The worst law of a loss (Kairouz, Oh, Viswanath 2015 for the pure and the approximate
    ones)."""
    if isinstance(part, Pure | Approximate):
        rare = 1 / (1 + math.exp(part.epsilon))
        finite = 1 - part.delta
        rise = finite * (1 - rare)
        return Atoms(
            np.array([-part.epsilon, part.epsilon]),
            np.array([finite * rare, rise]),
            part.delta,
            Fraction(part.nano, NANO),
        )
    if isinstance(part, Lattice):
        places = [place for place, weight in enumerate(part.weights) if weight / part.total > _NONE]
        masses = np.array([part.weights[place] / part.total for place in places])
        losses = (part.least + np.array(places)) * part.step
        step = Fraction(round(part.step * ATTO), ATTO)
        return Atoms(losses, masses, part.infinite / part.total + _BEYOND, step)
    return (
        _discrete(part)
        if isinstance(part, DiscreteGaussian)
        else _normal(part.mu, part.mu / _CELLS)
    )


def _discrete(part: DiscreteGaussian) -> Atoms:
    reach = math.ceil(_FAR / part.mu) + 1
    noise = np.arange(-reach, reach + 1)
    weights = np.exp(-(noise**2) * part.step / 2)
    noise = noise[weights > _NONE]
    weights = weights[weights > _NONE]
    mu = part.mu if part.mu < _FINE else 0.0
    losses = (1 - 2 * noise) * part.step / 2
    return Atoms(losses, weights / weights.sum(), _BEYOND, Fraction(part.atto_mu2, 2 * ATTO), mu)


def _normal(mu: float, cell: float) -> Atoms:
    """A normal loss of mean mu^2 / 2 and deviation mu, as three Gauss-Legendre nodes in each cell
    [i cell, (i + 1) cell]."""
    low = math.floor((mu**2 / 2 - _FAR * mu) / cell)
    high = math.ceil((mu**2 / 2 + _FAR * mu) / cell)
    nodes = np.array([-math.sqrt(0.6), 0.0, math.sqrt(0.6)])
    weights = np.array([5, 8, 5]) / 18
    losses = ((np.arange(low, high)[:, None] + (1 + nodes) / 2) * cell).ravel()
    deviations = (losses - mu**2 / 2) / mu
    density = np.exp(-(deviations**2) / 2) / (mu * math.sqrt(2 * math.pi))
    masses = density * np.tile(weights, high - low) * cell * _MARGIN
    return Atoms(losses, masses, _BEYOND, Fraction(0), mu)


def on_mesh(part: Exact, mesh: float) -> tuple[Ints, Floats]:
    """The worst law of a loss on a mesh; the cells of a normal one lie between its points."""
    if isinstance(part, Gaussian):
        return _normal(part.mu, mesh / math.ceil(mesh / (part.mu / _CELLS))).on_mesh(mesh)
    return atoms_of(part).on_mesh(mesh)


MAX_PARTS = 10**8
# times sqrt(k): fewer or more agreeing answers have a probability below 2 e^-800 (Hoeffding)
_SPREAD = 20.0


def around_mode(count: int, share: float, spread: float) -> tuple[int, Floats, Floats]:
    """The least place within `spread` sqrt(count) of the mode of Binomial(count, share); and, going
    down and up from the mode, the ratios of neighbouring masses, without the odds."""
    mode = min(count, math.floor((count + 1) * share))
    reach = math.ceil(spread * math.sqrt(count)) + 1
    low = max(0, mode - reach)
    up = np.arange(mode, min(count, mode + reach), dtype=np.float64)
    down = np.arange(mode, low, -1, dtype=np.float64)
    return low, down / (count - down + 1), (count - up) / (up + 1)


def binomial_curve(part: Pure, parts: int) -> Curve:
    """The worst total loss of k = `parts` adaptive mechanisms of pure loss e: (2 l - k) e, with l ~
    Binomial(k, e^e / (1 + e^e)).

    Exact for randomized responses and discrete Laplace noise on counts of sensitivity 1: their loss
    is +-e. Source: Kairouz, Oh, Viswanath 2015, Theorem 3.3.
    """
    check_whole("parts", parts, 1, MAX_PARTS)
    agreeing = 1 / (1 + math.exp(-part.epsilon))
    low, falls, rises = around_mode(parts, agreeing, _SPREAD)
    rising = np.cumsum(np.log(rises) + part.epsilon)
    falling = np.cumsum(np.log(falls) - part.epsilon)
    # relative to the mode: sums of small logarithms, which round little
    weights = np.exp(np.concatenate([falling[::-1], [0.0], rising]))
    beyond = 1e-300 if low + len(weights) <= parts else 0.0
    return Curve(
        (2 * low - parts) * part.epsilon, 2 * part.epsilon, weights / weights.sum(), infinite=beyond
    )


_TOLERANCE = 2e-4  # nats that the mesh may cost
_MOST = 1 << 20  # points of a transform
_RESOLVED = 200  # points to a standard deviation of a part's loss
_RARE = 30.0  # what is wrapped around has probability e^-30 of the tilted law
_ROUNDING = 4e-16
_TILTS = 2.0 ** (np.arange(-40, 41) / 4)  # around the tilt of a normal law


@dataclass(frozen=True)
class OnMesh:
    """`count` parts whose loss is places[i] mesh with probability masses[i]."""

    places: Ints
    masses: Floats
    count: int

    def tilted(self, exponent: float) -> tuple[float, Floats]:
        """ln E[e^(exponent place)] and the masses times e^(exponent place), scaled to 1."""
        powers = np.log(self.masses) + exponent * self.places
        growth = log_sum(powers)
        return growth, np.exp(powers - growth)


@dataclass(frozen=True)
class Window:
    """The places low..top of the summed loss, the highest reachable one, and ln E[e^(exponent
    place)] at its exponent."""

    low: int
    top: int
    highest: int
    scale: float

    @classmethod
    def of(cls, parts: Sequence[OnMesh], exponent: float, others: Sequence[float]) -> "Window":
        """The narrowest window that the losses' range and Chernoff's inequality, at several other
        exponents, allow."""
        low = sum(part.count * int(part.places.min()) for part in parts)
        top = sum(part.count * int(part.places.max()) for part in parts)
        highest, scale = top, growth(parts, exponent)
        for other in others:
            bound = (growth(parts, other) - scale + _RARE) / (other - exponent)
            low, top = (
                (low, min(top, math.ceil(bound)))
                if other > exponent
                else (max(low, math.floor(bound)), top)
            )
        return cls(low, top, highest, scale)


def growth(parts: Sequence[OnMesh], exponent: float) -> float:
    return math.fsum(part.count * part.tilted(exponent)[0] for part in parts)


@dataclass(frozen=True)
class Summed:
    """The law of the total loss of several parts, each with its count."""

    parts: tuple[tuple[Exact, int], ...]

    @classmethod
    def of(cls, losses: Mapping[Exact, int]) -> "Summed":
        """All normal noise becomes one part, which is exact."""
        parts = [
            (part, count)
            for part, count in losses.items()
            if not isinstance(part, Gaussian) and count
        ]
        atto = sum(
            part.atto_mu2 * count for part, count in losses.items() if isinstance(part, Gaussian)
        )
        return cls((*parts, *([(Gaussian(atto), 1)] if atto else [])))

    @property
    def laws(self) -> list[tuple[Atoms, int]]:
        return [(atoms_of(part), count) for part, count in self.parts]

    def epsilon(self, delta: float) -> float:
        """The least epsilon (nats) beside this delta, or infinity; at most .001 too large for a
        million parts and 10 nats. Normal noise alone has a closed form."""
        (part, _), *others = self.parts
        if isinstance(part, Gaussian) and not others:
            return gaussian_epsilon(part.mu, delta)
        return self.curve(-math.log(delta)).epsilon(delta)

    def delta(self, epsilon: float) -> float:
        """The least delta beside this epsilon (nats)."""
        tilts = self._tilts(1.0) if self._spread else np.ones(1)
        logs = self._growths(tilts) + _log_share(tilts) - tilts * epsilon
        return self.curve(max(0.0, -float(logs.min()))).delta(epsilon)

    def curve(self, rarity: float) -> Curve:
        """The law of the sum, tilted to where delta is about e^-rarity."""
        log_finite = math.fsum(count * math.log1p(-each.infinite) for each, count in self.laws)
        infinite = -math.expm1(log_finite)
        if not self._spread:
            return Curve(0.0, 1.0, np.ones(1), infinite=infinite)
        tilts = self._tilts(rarity)
        growths = self._growths(tilts)
        best = int(np.argmin((growths + _log_share(tilts) + rarity) / tilts))
        tilt = float(tilts[best])
        mesh = self._mesh() / 2
        window = Window(0, 4 * _MOST, 0, 0.0)
        others = [
            -float(tilts[len(_TILTS) // 2]),
            *tilts[best % 4 : best : 4][-4:].tolist(),
            *tilts[best + 4 :: 4][:3].tolist(),
        ]
        while window.top - window.low > 2 * _MOST:  # wider than most
            mesh *= 2
            parts = [OnMesh(*on_mesh(part, mesh), count) for part, count in self.parts]
            window = Window.of(parts, tilt * mesh, [each * mesh for each in others])
        if window.top < window.highest:
            wrap = math.exp(min(0.0, window.scale - tilt * mesh * window.top - _RARE))
        else:
            wrap = 0.0
        slack = sum(count * each.slack(mesh) for each, count in self.laws)
        weights, _ = transformed(parts, tilt * mesh, window)
        return Curve(
            window.low * mesh + slack,
            mesh,
            weights,
            tilt,
            window.scale + tilt * slack,
            infinite + wrap,
        )

    @property
    def _spread(self) -> float:
        """The standard deviation of the sum; a rare loss counts as if it were not that rare."""
        variance = sum(count * each.variance for each, count in self.laws)
        widest = max(each.width for each, _ in self.laws)
        return max(math.sqrt(variance), widest / 40)

    def _tilts(self, rarity: float) -> Floats:
        """The tilts to try: around that of a normal law, and none at which one loss dominates."""
        usual = math.sqrt(2 * max(1.0, rarity)) / self._spread
        tilts: Floats = usual * _TILTS
        steepest = 200 / max(each.width for each, _ in self.laws)
        return tilts[tilts <= max(2 * usual, steepest)]

    def _growths(self, tilts: Floats) -> Floats:
        """An upper bound on ln E[e^(t loss)] of the sum, for each t."""
        laws = self.laws
        return np.array(
            [
                math.fsum(count * each.log_growth(float(tilt)) for each, count in laws)
                for tilt in tilts
            ]
        )

    def _mesh(self) -> float:
        """A common divisor of all losses costs nothing; without one that is large enough, a mesh
        that costs no more than the tolerance."""
        laws = self.laws
        far = sum(count * each.width for each, count in laws)
        widths = sum(each.width for each, _ in laws)
        reach = min(24 * self._spread, far) + widths
        finest = reach / _MOST
        common = float(_common([each.step for each, _ in laws if each.width]))
        if common > finest:
            return common
        rounded = sum(count for _, count in laws)
        finer = (math.sqrt(each.variance) / _RESOLVED for each, _ in laws if each.variance)
        return max(finest, min(_TOLERANCE / math.sqrt(rounded), *finer))


def _log_share(tilts: Floats) -> Floats:
    """ln of the largest e^(-t x) (1 - e^-x): delta is at most e^(this - t eps) E[e^(t loss)]."""
    return np.asarray(tilts * np.log(tilts) - (1 + tilts) * np.log1p(tilts))


def _common(steps: Sequence[Fraction]) -> Fraction:
    divisor = steps[0]
    for step in steps[1:]:
        common = math.gcd(
            divisor.numerator * step.denominator, step.numerator * divisor.denominator
        )
        divisor = Fraction(common, divisor.denominator * step.denominator)
    return divisor if all(steps) else Fraction(0)


def transformed(parts: Sequence[OnMesh], exponent: float, window: Window) -> tuple[Floats, float]:
    """The tilted law of the sum on the window, each mass rounded up by the possible error of the
    transform, and that error."""
    low, top = window.low, window.top
    n = 1 << max(4, (top - low + 1).bit_length())
    product = np.ones(n // 2 + 1, dtype=np.complex128)
    start = 0
    for part in parts:
        _, masses = part.tilted(exponent)
        # near 0 the phases, which large powers multiply, are small
        centre = round(float(masses @ part.places))
        start += part.count * centre
        counts = np.bincount((part.places - centre) % n, masses, n)
        product *= np.fft.rfft(counts) ** part.count
    count = sum(part.count for part in parts)
    error = _ROUNDING * math.log2(n) * count * float(np.abs(product).mean())
    shares = np.roll(np.fft.irfft(product, n), (start - low) % n)
    law: Floats = np.maximum(shares[: top - low + 1], 0.0) + error
    return law, error
