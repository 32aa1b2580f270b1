"""The style sheet of every figure: a colour for each model of computation, shades and markers for
its variants, grey for proven limits and for the rest."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from local_dp.errors import InputError
from local_dp.experiments.lab.shapes import Curve, Figure

INK, MUTED, RULE, PAPER, LIMIT, FADED = (
    "#1f2328",
    "#59636e",
    "#d1d9e0",
    "#ffffff",
    "#6b6b6b",
    "#c3cad2",
)
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
MOST_COLOURED = 8
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


def model_of(name: str, default: str) -> str:
    """The model of computation that a name states."""
    return next(
        (model for model, words in _MODELS.items() if re.search(words, name, re.IGNORECASE)),
        default,
    )


def looks(figure: Figure, wanted: Sequence[str] = ()) -> list[Look]:
    """The look of each curve. The first eight series have a colour, or the first eight with a part
    of their name in `wanted`; a limit of no series is grey.

    Raises InputError if a name is wanted that no curve has.
    """
    places = groups(figure.curves)
    own = {
        place: [curve for curve, at in zip(figure.curves, places, strict=True) if at == place]
        for place in places
    }
    limits = [
        place for place, curves in own.items() if all(curve.style == "bound" for curve in curves)
    ]
    series = {place: curves[0].label for place, curves in own.items() if place not in limits}
    for part in wanted:
        if not any(part in name for name in series.values()):
            raise InputError(
                f"no series has {part!r} in its name; give a part of one of: "
                f"{'; '.join(series.values())}"
            )
    chosen = [
        place
        for place, name in series.items()
        if not wanted or any(part in name for part in wanted)
    ][:MOST_COLOURED]
    found, variants = (
        {
            place: Look(LIMIT, dashes=_DASHES[turn % len(_DASHES)])
            for turn, place in enumerate(limits)
        },
        dict[str, int](),
    )
    for turn, place in enumerate(chosen):
        model = model_of(series[place], figure.model)
        variant = variants[model] = variants.get(model, -1) + 1
        shades = PALETTE[model]
        found[place] = Look(
            shades[variant % len(shades)], MARKERS[turn], variant // len(shades) % 2 == 1
        )
    found = {place: found.get(place, Look(FADED)) for place in own}
    return [
        _of_curve(figure.curves, at, [found[each] for each in places]) for at in range(len(places))
    ]


def _of_curve(curves: Sequence[Curve], at: int, found: Sequence[Look]) -> Look:
    """The look of a curve of a series: of a bound it is dashed, and wider if a curve of the same
    style hides it."""
    own, look = curves[at], found[at]
    hidden = any(
        other.style == own.style and above.coloured and _alike(other, own)
        for other, above in zip(curves[at + 1 :], found[at + 1 :], strict=True)
    )
    dashes = (
        {"bound": _DASHES[0], "theory": _DOTTED if look.hollow else "-"}.get(own.style, "-")
        if look.coloured
        else look.dashes
    )
    return replace(look, under=hidden, dashes=dashes)


def _alike(one: Curve, other: Curve) -> bool:
    return len(one.x) == len(other.x) and bool(
        np.allclose([*one.x, *one.y], [*other.x, *other.y], rtol=0.02, atol=0, equal_nan=True)
    )


def groups(curves: Sequence[Curve]) -> list[int]:
    """The place of each curve's series in the order of appearance.

    Without a group, curves of different styles are one series if their labels differ only in the
    role ("X, measured", "X, predicted").
    """
    order: list[tuple[str, set[str]]] = []
    places = []
    for curve in curves:
        subject = curve.group or " ".join(_ROLES.sub(" ", curve.label).split())
        place = next(
            (
                at
                for at, (name, styles) in enumerate(order)
                if name == subject and (curve.group or curve.style not in styles)
            ),
            len(order),
        )
        if place == len(order):
            order.append((subject, set()))
        order[place][1].add(curve.style)
        places.append(place)
    return places
