"""The style sheet of every figure: a colour for each model of computation, shades and markers for
its variants, grey for proven limits and for the rest."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from local_dp.errors import InputError
from local_dp.experiments.lab.shapes import Curve, Figure

INK, MUTED, RULE, PAPER = "#1f2328", "#59636e", "#d1d9e0", "#ffffff"
LIMIT, FADED = "#6b6b6b", "#c3cad2"
# Okabe and Ito's blue, vermillion, green and purple, each with a darker and a lighter shade:
# colour-blind readers can distinguish the models.
PALETTE = {
    "curator": ("#0072b2", "#003a5c", "#56a6d8"),
    "interactive": ("#d55e00", "#7a3300", "#ef9350"),
    "one-round": ("#009e73", "#00513b", "#45c49c"),
    "shuffled": ("#b5558f", "#642a4d", "#d893bd"),
    "plain": (INK, "#4a5058", "#8b939c"),  # no privacy
}
COLOURS = {
    f"{model}-{place}": shade
    for model, shades in PALETTE.items()
    for place, shade in enumerate(shades)
} | {"limit": LIMIT, "faded": FADED}
# one for each series with a colour
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_DASHES: tuple[Any, ...] = ((0, (5, 3)), (0, (1.5, 1.5)), (0, (8, 2, 1.5, 2)), (0, (2.5, 1)))
_DOTTED = (0, (9, 1.5, 1, 1.5))  # of a computed curve whose shade comes round again
_ROLES = re.compile(
    r"\b(?:measured|simulated|predicted|proven|theory|formula|bound|worst found|least)\b|[,:]"
)
_MODELS = {  # the first whose words the name of a curve has
    "interactive": (
        r"no curator|(?<!non-)\binteractive|in turn|halving|\bagain\b|(?:two|three|d|several|in) "
        r"rounds"
    ),
    "curator": r"curator",
    "shuffled": r"shuffle|blanket",
    "one-round": r"one round|\bonce\b|non-interactive|\blocal\b(?! sensitivity)|\bclients\b",
    "plain": r"(?:without|no) privacy|exact (?:means|expectations)|means rounded",
}


@dataclass(frozen=True)
class Drawing:
    """How figures are drawn: width in inches, letters in points, and parts of the names of the
    series to colour, if not the first eight.

    Raises InputError.
    """

    size: float = 4.8
    font: float = 10.0
    series: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 2 <= self.size <= 40:
            raise InputError(f"size is {self.size:g}; give a width of 2 to 40 inches")
        if not 4 <= self.font <= 40:
            raise InputError(f"font is {self.font:g}; give 4 to 40 points")

    @property
    def line(self) -> float:
        """The height of a line of text, in inches."""
        return self.font / 72 * 1.5

    def characters(self, share: float = 1.0) -> int:
        """How many characters fit into a share of the width."""
        return max(12, int(share * self.size * 72 / (0.57 * self.font)))


DEFAULT = Drawing()


@dataclass(frozen=True)
class Look:
    """How one curve is drawn. A later curve would hide it if it is `under`, and not drawn wider."""

    colour: str
    marker: str = "o"
    hollow: bool = False
    dashes: Any = "-"
    under: bool = False

    @property
    def coloured(self) -> bool:
        return self.colour not in (LIMIT, FADED)

    @property
    def layer(self) -> float:
        """What lies on top has the highest: grey curves lie below all others."""
        return 0 if self.colour == FADED else 3 - 0.1 * self.under


def model_of(name: str, default: str) -> str:
    """The model of computation that a name states."""
    for model, words in _MODELS.items():
        if re.search(words, name, re.IGNORECASE):
            return model
    return default


def looks(figure: Figure, parts: Sequence[str] = ()) -> list[Look]:
    """The look of each curve. The first eight series have a colour, or the first eight with a part
    of their name in `parts`; a limit of no series is grey.

    Raises InputError if a name is wanted that no curve has.
    """
    places = groups(figure.curves)
    series, limits = dict[int, str](), list[int]()
    for place in dict.fromkeys(places):
        curves = [curve for curve, at in zip(figure.curves, places, strict=True) if at == place]
        if all(curve.style == "bound" for curve in curves):
            limits.append(place)
        else:
            series[place] = curves[0].label
    for part in parts:
        if not any(part in name for name in series.values()):
            raise InputError(
                f"no series has {part!r} in its name; give a part of one of: "
                f"{'; '.join(series.values())}"
            )
    shapes = {
        place: Look(LIMIT, dashes=_DASHES[turn % len(_DASHES)]) for turn, place in enumerate(limits)
    }
    matches = [
        place for place, name in series.items() if not parts or any(part in name for part in parts)
    ]
    variants = Counter[str]()
    for marker, place in zip(MARKERS, matches, strict=False):
        model = model_of(series[place], figure.model)
        turn, shade = divmod(variants[model], len(PALETTE[model]))
        variants[model] += 1
        shapes[place] = Look(PALETTE[model][shade], marker, hollow=turn % 2 == 1)
    look = [shapes.get(place, Look(FADED)) for place in places]
    return [_of_curve(figure.curves, at, look) for at in range(len(places))]


def _of_curve(curves: Sequence[Curve], at: int, looks: Sequence[Look]) -> Look:
    """The look of a curve of a series: of a bound it is dashed, and wider if a curve of the same
    style hides it."""
    own, look = curves[at], looks[at]
    under = any(
        other.style == own.style and above.coloured and _alike(other, own)
        for other, above in zip(curves[at + 1 :], looks[at + 1 :], strict=True)
    )
    if not look.coloured:
        return replace(look, under=under)
    dashes = {"bound": _DASHES[0], "theory": _DOTTED if look.hollow else "-"}
    return replace(look, under=under, dashes=dashes.get(own.style, "-"))


def _alike(one: Curve, other: Curve) -> bool:
    left, right = [*one.x, *one.y], [*other.x, *other.y]
    return len(left) == len(right) and np.allclose(left, right, rtol=0.02, atol=0, equal_nan=True)


def groups(curves: Sequence[Curve]) -> list[int]:
    """The place of each curve's series in the order of appearance.

    Without a group, curves of different styles are one series if their labels differ only in the
    role ("X, measured", "X, predicted").
    """
    order: list[tuple[str, set[str]]] = []
    places = []
    for curve in curves:
        subject = curve.group or " ".join(_ROLES.sub(" ", curve.label).split())
        place = len(order)
        for at, (name, styles) in enumerate(order):
            if name == subject and (curve.group or curve.style not in styles):
                place = at
                break
        else:
            order.append((subject, set()))
        order[place][1].add(curve.style)
        places.append(place)
    return places
