"""A small experiment for tests of the machinery: randomized response of a fair coin, honest or with
a protocol that is wrong."""

import os

import numpy as np

from local_dp.experiments.lab.parts import (
    LOCAL_MODEL,
    Check,
    Curve,
    Experiment,
    Figure,
    Finding,
    Points,
    Region,
    Regions,
    Row,
    Scale,
    Sheet,
    curve,
    table_of,
)


class People(Row):
    """So many people are asked."""

    n: int


class Error(Row):
    """The mean absolute error, and half of its 95 % interval."""

    error: float
    half: float


class Toy(Experiment):
    """The mean absolute error of randomized response falls as the square root of the number of
    clients."""

    name = "toy"
    chapter = LOCAL_MODEL
    title = "Asking four times as many people halves the error"
    claim = (
        "If everybody lies with a known probability, the share of yes can still be estimated, "
        "with an error that falls as 1/√n."
    )
    source = "Warner 1965 & <friends>"
    comment = "<b>bold</b>, $5"
    bias = 0.0

    def points(self, scale: Scale) -> Points:
        return [People(4**power * 100) for power in range(5 if scale == "full" else 3)]

    def measure(self, point: People, seed: int) -> Error:
        if log := os.environ.get("TOY_LOG"):
            with open(log, "a", encoding="utf-8") as file:
                file.write(f"{point.n}\n")
        sample = (
            np.random.default_rng([seed, point.n]).binomial(point.n, 0.5, size=400) / point.n
            - 0.5
            + self.bias
        )
        errors = abs(sample) * 2.16
        return Error(float(errors.mean()), float(1.96 * errors.std() / 20))

    def finding(self, sheet: Sheet) -> Finding:
        errors = table_of(
            "Error <against> n", "n | error | comment", [(*row, self) for row in sheet[People]]
        )
        n = [point.n for point, _ in sheet[People]]
        error = [each.error for _, each in sheet[People]]
        points = [
            (point.n, each.error, each.error - each.half, each.error + each.half)
            for point, each in sheet[People]
        ]
        theory = [2.16 * (2 / np.pi) ** 0.5 * 0.5 / count**0.5 for count in n]
        slope = float(np.polyfit(np.log(n), np.log(error), 1)[0])
        curves = [
            curve("measured, 400 runs each", points, group="rr"),
            Curve("theory: C/√(2πn)", n, theory, "theory", group="rr"),
            Curve("no protocol does better", n, [each / 2 for each in theory], "bound"),
        ]
        bars = [
            curve("measured", [(place, *point[1:]) for place, point in enumerate(points)], "bars"),
            Curve("theory", range(len(n)), theory, "bars"),
        ]
        regions = [
            Region(
                "LNI", "one round", [("coins", "measured at n = 100"), ("stumps", "10 of 10 runs")]
            ),
            Region("LI", "several rounds", [("masked parity", "5,756 clients")]),
            Region("CI", "a trusted curator", [("parity", "103 clients")]),
        ]
        return Finding(
            checks=[
                Check(
                    "The slope is −1/2 <within 0.1>",
                    abs(slope + 0.5) < 0.1,
                    f"slope {slope:.3f} & nothing else",
                )
            ],
            tables=[errors],
            figures=[
                Figure(
                    "error",
                    "Error against n, for $5 & <more>",
                    "number of clients n",
                    "mean absolute error",
                    curves,
                    log_x=True,
                    log_y=True,
                ),
                Figure(
                    "bars",
                    "The same as bars",
                    "clients",
                    "mean absolute error",
                    bars,
                    x_ticks=tuple(map(str, n)),
                ),
                Regions("regions", "Where each problem lies", regions),
            ],
            headline=f"With {n[-1]:,} people the error is {error[-1]:.3f} <within $5>.",
            notes=["A note with <script>alert(1)</script>."],
        )


class WrongToy(Toy):
    """The same with a server that forgets to remove the bias."""

    name = "wrong-toy"
    bias = 0.2


EXPERIMENT = Toy()
