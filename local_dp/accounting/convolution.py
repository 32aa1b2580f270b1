"""Unequal losses: the law of their sum by a tilted Fourier transform, rounded towards privacy.

Each law is put on one mesh. A loss between two points is split among them so that both laws of the pair keep their mass.
The pair on the mesh is then at least as bad; its variance grows by at most a quarter of the mesh squared (Doroshenko et al. 2022).
The laws are tilted by weights e^(t loss) before the transform, so rounding errors are small beside delta. Chernoff's inequality bounds what wraps around.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from local_dp.accounting.gaussian import Gaussian
from local_dp.accounting.laws import Atoms, Curve, Exact, atoms_of, log_sum, on_mesh
from local_dp.arrays import Floats, Ints

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
    """The places low..top of the summed loss, the highest reachable one, and ln E[e^(exponent place)] at its exponent."""

    low: int
    top: int
    highest: int
    scale: float

    @classmethod
    def of(cls, parts: Sequence[OnMesh], exponent: float, others: Sequence[float]) -> "Window":
        """The narrowest window that the losses' range and Chernoff's inequality, at several other exponents, allow."""
        low, top = sum(part.count * int(part.places.min()) for part in parts), sum(part.count * int(part.places.max()) for part in parts)
        highest, scale = top, growth(parts, exponent)
        for other in others:
            bound = (growth(parts, other) - scale + _RARE) / (other - exponent)
            low, top = (low, min(top, math.ceil(bound))) if other > exponent else (max(low, math.floor(bound)), top)
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
        parts = [(part, count) for part, count in losses.items() if not isinstance(part, Gaussian) and count]
        atto = sum(part.atto_mu2 * count for part, count in losses.items() if isinstance(part, Gaussian))
        return cls((*parts, *([(Gaussian(atto), 1)] if atto else [])))

    @property
    def laws(self) -> list[tuple[Atoms, int]]:
        return [(atoms_of(part), count) for part, count in self.parts]

    def epsilon(self, delta: float) -> float:
        """The least epsilon (nats) beside this delta, or infinity. At most .001 too large for a million parts and 10 nats.

        Beyond, memory bounds the mesh: k parts with no common step cost about k 1e-10 of epsilon too much.
        """
        return self.curve(-math.log(delta)).epsilon(delta)

    def delta(self, epsilon: float) -> float:
        """The least delta beside this epsilon (nats)."""
        tilts = self._tilts(1.0) if self._spread else np.ones(1)
        return self.curve(max(0.0, -float((self._growths(tilts) + _log_share(tilts) - tilts * epsilon).min()))).delta(epsilon)

    def curve(self, rarity: float) -> Curve:
        """The law of the sum, tilted to where delta is about e^-rarity."""
        infinite = -math.expm1(math.fsum(count * math.log1p(-each.infinite) for each, count in self.laws))
        if not self._spread:
            return Curve(0.0, 1.0, np.ones(1), infinite=infinite)
        tilts = self._tilts(rarity)
        growths = self._growths(tilts)
        best = int(np.argmin((growths + _log_share(tilts) + rarity) / tilts))
        tilt, mesh, window = float(tilts[best]), self._mesh() / 2, Window(0, 4 * _MOST, 0, 0.0)
        others = [-float(tilts[len(_TILTS) // 2]), *tilts[best % 4 : best : 4][-4:].tolist(), *tilts[best + 4 :: 4][:3].tolist()]
        while window.top - window.low > 2 * _MOST:  # wider than most
            mesh *= 2
            parts = [OnMesh(*on_mesh(part, mesh), count) for part, count in self.parts]
            window = Window.of(parts, tilt * mesh, [each * mesh for each in others])
        wrapped = math.exp(min(0.0, window.scale - tilt * mesh * window.top - _RARE)) if window.top < window.highest else 0.0
        slack = sum(count * each.slack(mesh) for each, count in self.laws)
        weights, _ = transformed(parts, tilt * mesh, window)
        return Curve(window.low * mesh + slack, mesh, weights, tilt, window.scale + tilt * slack, infinite + wrapped)

    @property
    def _spread(self) -> float:
        """The standard deviation of the sum; a rare loss counts as if it were not that rare."""
        return max(math.sqrt(sum(count * each.variance for each, count in self.laws)), max(each.width for each, _ in self.laws) / 40)

    def _tilts(self, rarity: float) -> Floats:
        """The tilts to try: around that of a normal law, and none at which one loss dominates."""
        usual = math.sqrt(2 * max(1.0, rarity)) / self._spread
        tilts: Floats = usual * _TILTS
        return tilts[tilts <= max(2 * usual, 200 / max(each.width for each, _ in self.laws))]

    def _growths(self, tilts: Floats) -> Floats:
        """An upper bound on ln E[e^(t loss)] of the sum, for each t."""
        laws = self.laws
        return np.array([math.fsum(count * each.log_growth(float(tilt)) for each, count in laws) for tilt in tilts])

    def _mesh(self) -> float:
        """A common divisor of all losses costs nothing; without one that is large enough, a mesh that costs no more than the tolerance."""
        laws = self.laws
        reach = min(24 * self._spread, sum(count * each.width for each, count in laws)) + sum(each.width for each, _ in laws)
        finest, common = reach / _MOST, float(_common([each.step for each, _ in laws if each.width]))
        if common > finest:
            return common
        rounded = sum(count for _, count in laws)
        return max(finest, min(_TOLERANCE / math.sqrt(rounded), *(math.sqrt(each.variance) / _RESOLVED for each, _ in laws if each.variance)))


def _log_share(tilts: Floats) -> Floats:
    """ln of the largest e^(-t x) (1 - e^-x): delta is at most e^(this - t eps) E[e^(t loss)]."""
    return np.asarray(tilts * np.log(tilts) - (1 + tilts) * np.log1p(tilts))


def _common(steps: Sequence[Fraction]) -> Fraction:
    divisor = steps[0]
    for step in steps[1:]:
        divisor = Fraction(math.gcd(divisor.numerator * step.denominator, step.numerator * divisor.denominator), divisor.denominator * step.denominator)
    return divisor if all(steps) else Fraction(0)


def transformed(parts: Sequence[OnMesh], exponent: float, window: Window) -> tuple[Floats, float]:
    """The tilted law of the sum on the window, each mass rounded up by the possible error of the transform, and that error."""
    low, top = window.low, window.top
    n = 1 << max(4, (top - low + 1).bit_length())
    product = np.ones(n // 2 + 1, dtype=np.complex128)
    start = 0
    for part in parts:
        _, masses = part.tilted(exponent)
        centre = round(float(masses @ part.places))  # near 0 the phases, which large powers multiply, are small
        start += part.count * centre
        product *= np.fft.rfft(np.bincount((part.places - centre) % n, masses, n)) ** part.count
    error = _ROUNDING * math.log2(n) * sum(part.count for part in parts) * float(np.abs(product).mean())
    law: Floats = np.maximum(np.roll(np.fft.irfft(product, n), (start - low) % n)[: top - low + 1], 0.0) + error
    return law, error
