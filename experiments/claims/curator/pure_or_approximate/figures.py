"""How `pure-or-approximate` is told: names, table, figures, and what is placed in which region."""

from collections.abc import Mapping
from typing import Any, Protocol

from local_dp.experiments.lab.claim import Check, Curve, Figure, Measurement, Point, Region, Table

Key = tuple[str, str, float]
_KINDS = {
    "pure": "pure, proper",
    "stable": "stable choice, proper",
    "buckets": "pure, improper: buckets",
    "dyadic": "dyadic intervals",
    "RecConcave": "RecConcave, tuned",
    "labels": "only labels secret",
    "semi-private": "300 public points",
}
_DELTAS = {0.0: "", 1e-6: ", delta 1e-6", 1e-3: ", delta 1e-3"}
LABELS: dict[Key, str] = {(of, kind, delta): name + said for of in ("points", "thresholds") for kind, name in _KINDS.items() for delta, said in _DELTAS.items()}
ENDS = (16, 1024)  # bits of the domains that the regions speak of


class Numbers(Protocol):
    """The least numbers of one learner, by the bits of the domain."""

    @property
    def rows(self) -> list[tuple[Point, Measurement]]: ...

    @property
    def bits(self) -> list[int]: ...

    def at(self, bits: float, key: str = "n") -> float: ...


def table(learners: Mapping[Key, Numbers], series: Mapping[Key, Numbers]) -> Table:
    """Every least number, with the proven one beside it where it is about the same."""
    rows: list[tuple[Any, ...]] = []
    for key, held in learners.items():
        of, kind, _ = key
        for point, found in held.rows:
            proven = series[of, "proven", 0.0].at(point["bits"]) if kind == "pure" else None
            right = f"{found['right'] / point['runs']:.3f} of {found['expected'] / point['runs']:.3f}"
            rows.append((of, LABELS[key], point["bits"], found["n"], found["low"], found["high"], proven and int(proven), found["law"], right))
    columns = ("class", "learner", "bits", "records", "from", "to", "proven needed", "worst distribution", "runs right, expected")
    return Table("Least records for 90 % success, alpha 0.1, epsilon 1", columns, rows)


def curves(of: str, series: Mapping[Key, Numbers]) -> Figure:
    """The numbers of all learners of one class."""
    shown = []
    for key, held in series.items():
        if key[0] != of or key[1] == "proven":
            continue
        numbers, group = [[found[which] for _, found in held.rows] for which in ("n", "low", "high")], LABELS[key]
        shown.append(Curve(LABELS[key], held.bits, numbers[0], "measured", numbers[1], numbers[2], group=group))
    proven = series[of, "proven", 0.0]
    bound = Curve("proven for pure, proper learners", proven.bits, [found["n"] for _, found in proven.rows], "bound", group=LABELS[of, "pure", 0.0])
    plain = Curve("without privacy", proven.bits, [found["plain"] for _, found in proven.rows], "theory")
    return Figure(f"{of}-by-domain", f"Records that learn {of}", "bits of the domain", "records", [*shown, bound, plain], log_x=True, log_y=True)


def placed(series: Mapping[Key, Numbers], flat: Mapping[Key, Check], separated: Mapping[str, Check], beyond: Check) -> list[Region]:
    """What the run showed to be flat, in the innermost region where it is."""

    def flat_in(of: str, kinds: tuple[str, ...], name: str, further: str, *also: Check) -> list[tuple[str, str]]:
        keys = [key for key in flat if key[0] == of and key[1] in kinds]
        if not keys or not all(check.shown for check in (*(flat[key] for key in keys), *also)):
            return []
        said = "\n".join(f"run: {LABELS[key]}: {_span(series[key])}" for key in keys)
        return [(name, f"{said}\n{further}".rstrip())]

    points, thresholds = series["points", "proven", 0.0], series["thresholds", "dyadic", 1e-6]
    needed = f"proven, pure and proper: at least {_span(points)}"
    grown = f"run, all secret, delta 1e-6: {_span(thresholds)}; proven not to be flat (Alon et al. 2019)"
    return [
        Region("Pure", "epsilon alone", flat_in("points", ("buckets",), "Points, by hypotheses that need not name one", "")),
        Region("Approximate", "epsilon and a delta", flat_in("points", ("stable",), "Points, named", needed, separated["points"])),
        Region(
            "Only labels secret",
            "or some points public",
            flat_in("thresholds", ("labels", "semi-private"), "Thresholds", grown, separated["thresholds"], beyond),
        ),
    ]


def _span(held: Numbers) -> str:
    """The numbers at the first size from 2^16 on and at the last."""
    first, last = next(bits for bits in held.bits if bits >= ENDS[0]), held.bits[-1]
    return f"{held.at(first):,.0f} people at 2^{first}, {held.at(last):,.0f} at 2^{last}"
