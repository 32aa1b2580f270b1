"""A session about twelve fresh tables: each command and call of `fresh/session.txt`, with its right
answer by pandas or the words that refuse it."""

import json
import shlex
import warnings
from collections.abc import Mapping
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars

import local_dp as ldp
from local_dp.errors import InputError
from tests.support.inputs import fresh_truth
from tests.support.inputs.fresh_tables import COPIES, SOURCES, Arrow, copied, records, write
from tests.support.inputs.fresh_truth import Truth
from tests.support.runs.command import local_dp

# lines beside a refusal: too few people, progress, dates, and how a file is read
_NOTICES = (
    "You have ",
    "round ",
    "column ",
    "'",
)


@dataclass(frozen=True)
class Case:
    """A line that is typed in a shell or in Python, and its right answer in Python, or the words of
    the line that refuses it."""

    line: str
    right: str = ""
    refusal: str = ""

    def __str__(self) -> str:
        return self.line

    @property
    def shell(self) -> bool:
        return self.line.startswith("local-dp ")


def read_session() -> list[Case]:
    """The cases: a line after $ or >>>, and one after = or !."""
    lines = [
        line
        for line in (COPIES / "session.txt").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    ends = [line.split(" ", 1) for line in lines[1::2]]
    return [
        Case(command.split(" ", 1)[1], **{"=": {"right": end}, "!": {"refusal": end}}[sign])
        for command, (sign, end) in zip(lines[::2], ends, strict=True)
    ]


@dataclass(frozen=True)
class Answer:
    """What the program knows and says, as plain data; or the line with which it refuses."""

    data: Mapping[str, Any] | None
    line: str = ""


class Session:
    """The names of a session: the tables, as files in `folder` and as frames, and the right
    answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        write(folder)
        truths = {
            name: each for name, each in vars(fresh_truth).items() if not name.startswith("_")
        }
        self.names = {
            **truths,
            "np": np,
            "pd": pd,
            "pl": polars,
            "ldp": ldp,
            "Arrow": Arrow,
            "records": records,
            **{name: copied(name) for name in SOURCES},
        }

    def value(self, text: str) -> Any:
        if "Local" in text:
            from local_dp import sklearn

            self.names |= {name: getattr(sklearn, name) for name in sklearn.__all__}
        return eval(text, dict(self.names))  # noqa: S307  # our own session

    def ask(self, case: Case) -> Answer:
        """Types the line. Any other error than a refusal is raised."""
        with chdir(self.folder), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if not case.shell:
                try:
                    return Answer(self.value(case.line).to_dict())
                except InputError as error:
                    return Answer(None, str(error))
            done = local_dp(*shlex.split(case.line)[1:], *["--json"] * bool(case.right))
        if done.returncode == 0:
            return Answer(json.loads(done.stdout) if case.right else {})
        lines = [line for line in done.stderr.strip().splitlines() if not line.startswith(_NOTICES)]
        return Answer(
            None,
            "\n".join([*lines, done.stdout]).rstrip()
            if done.returncode == 2
            else f"exit code {done.returncode}: {done.stderr}",
        )

    def faults(self, case: Case, answer: Answer) -> list[str]:
        """What is wrong with an answer; nothing, if the estimate is right or the refusal names what
        to type."""
        if case.refusal or answer.data is None:
            plain = (
                answer.line.startswith("local-dp: ") == case.shell
                and len(answer.line.splitlines()) == 1
            )
            return (
                []
                if case.refusal and plain and case.refusal in answer.line
                else [f"refused: {answer.line!r}" if answer.line else "not refused"]
            )
        truth, (stated_truth, estimate, error) = self.value(case.right), told(answer.data)
        if isinstance(truth.value, pd.Series):  # of values that nobody listed: those that are found
            truth = Truth(truth.value[estimate.index].to_numpy(), truth.whole)
            estimate = estimate.to_numpy()
        faults = (
            [] if truth.same(stated_truth) else [f"the truth is {truth.value}, not {stated_truth}"]
        )
        faults += (
            []
            if truth.near(estimate, error)
            else [f"the estimate {estimate} +- {error} is too far from {truth.value}"]
        )
        epsilon, n = answer.data.get("epsilon"), answer.data.get("clients", {})
        plausible = truth.whole is None or truth.plausible(error, epsilon, n["answered"])
        return faults + [f"a standard error of {error} is not plausible"] * (not plausible)


def told(data: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """The truth that the program knows, its estimate, and the standard error or what stands for it:
    a quarter of an interval's width, or a closed form."""
    if "ways" in data:  # of a plan
        (count,) = (way["clients"] for way in data["ways"] if way["chosen"])
        return count, count, 0.0
    if (
        "runs" in data
        # of a comparison: its closed form is to be right, and what was measured within the interval
        # of its rank
    ):
        row = data["rows"][0]
        return row["planned"], row["error"], (row["high"] - row["low"]) / 4
    result = data["result"]
    if "score" in result:  # a rule: beside it stands how often the commoner label is right
        return (
            result["true_baseline"],
            result["baseline"]["estimate"],
            result["baseline"]["standard_error"],
        )
    if data.get("model") == "curator":
        return _of_curator(data)
    truth, estimate, error = result["truth"], result["estimate"], result.get("standard_error")
    if error is None:
        ends = np.array(
            [
                [result["low"] if low is None else low, result["high"] if high is None else high]
                for low, high in result["interval"]
            ]
        )
        error = np.maximum(np.abs(ends - np.array(estimate)[:, None]).max(axis=1) / 2, 1e-9)
    if data["protocol"] == "heavy-hitters":
        return truth, pd.Series(estimate, index=result["labels"]), np.array(error)
    return truth, np.array(estimate), np.array(error)


def _of_curator(data: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    result, truth = data["result"], data["truth"]
    truth_of_rows = truth.get("of_rows", truth.get("median"))
    if result["columns"][-1] == "share":  # a histogram of values that nobody listed
        return (
            truth_of_rows,
            pd.Series(result["value"], index=[row[0] for row in result["rows"]]),
            np.array(result["standard_error"]),
        )
    error = result["standard_error"]
    if (
        error is None
        # a count of one record more or less in a hundred, or the median within a tenth of the
        # records
    ):
        error = (
            data["n"] / 20
            if "of_rows" in truth
            else np.inf
            if truth["records_between"] <= data["n"] / 10
            else 0.0
        )
    return truth_of_rows, result["value"], error
