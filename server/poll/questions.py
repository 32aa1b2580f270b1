"""The questions of a poll: yes or no, one of some labels, or a number between bounds; from one
line, or from a TOML file."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

from local_dp.checks import real_number
from local_dp.errors import InputError, LocalDPError, reading, unknown
from local_dp.interaction import Nonadaptive
from local_dp.loss import NANO, nano_epsilon
from local_dp.oracles.local.asked import Local, LocalQuery
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.protocols.surveys.frequency import Frequency
from local_dp.protocols.surveys.survey import Survey
from local_dp.protocols.vectors.mean_vector import Mean
from local_dp.randomizers.frequencies.best import choices
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.subset_selection import SubsetSelection
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.tallies import Estimate

Kind: TypeAlias = Literal["yes-no", "labels", "number"]
MOST, LONGEST = 20, 500  # questions of a poll; characters of a question
MOST_EPSILON = 8.0  # that a page pays for one poll (LIMITS in pages/respondent.js)
MOST_LABELS, LONGEST_LABEL = 100, 100
FILE_BYTES = 1 << 16
EXAMPLE = (
    'write [[question]], text = "...", and for labels = ["a", "b"] or low = 0, high = 10 what is '
    "answered; epsilon = 1"
)
_KEYS = ("text", "labels", "low", "high", "epsilon")


@dataclass(frozen=True)
class Question:
    """One question: its text for people, and the protocol that asks for its column. `labels` or
    bounds decide its kind; without them it is yes/no.

    Privacy: a report is epsilon-locally private (nats).
    """

    name: str
    text: str
    epsilon: float
    labels: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.text.strip()) <= LONGEST:
            raise InputError(f"a question has {len(self.text)} characters; give 1 to {LONGEST}")
        nano_epsilon(self.epsilon)
        if (self.low is None) != (self.high is None):
            raise InputError(f"{self.text!r} has one bound; give both, as in low = 0 and high = 10")
        if self.labels and self.low is not None:
            raise InputError(f"{self.text!r} has labels and bounds; give one of them")
        if self.labels and not (
            2 <= len(self.labels) <= MOST_LABELS
            and all(1 <= len(label) <= LONGEST_LABEL for label in self.labels)
        ):
            raise InputError(
                f"{self.text!r} has {len(self.labels)} labels; give 2 to {MOST_LABELS}, of 1 to "
                f"{LONGEST_LABEL} characters each"
            )
        if len({" ".join(label.split()) for label in self.labels} - {""}) < len(self.labels):
            raise InputError(
                f"the labels of {self.text!r} are not distinct on a screen; give labels that "
                "people can tell apart"
            )
        self.ask(1)

    @property
    def kind(self) -> Kind:
        return "labels" if self.labels else "yes-no" if self.low is None else "number"

    @cached_property
    def protocol(self) -> LocalProtocol[Estimate]:
        if self.kind == "yes-no":
            return Survey(question=f"{self.name} == 1")
        if self.kind == "number":
            # which phones know
            bit = OneBitMean.name
            return Mean(self.name, self.low, self.high, outside="clip", randomizer=bit)
        kinds = [
            choice
            for choice in choices(self.epsilon, len(self.labels))
            if choice.kind in (GRR, SubsetSelection)
        ]
        return Frequency(
            column=self.name,
            labels=self.labels,
            randomizer=min(kinds, key=lambda choice: choice.total).kind.name,
        )

    def ask(self, people: int) -> LocalQuery:
        """The query to the places 0..people."""
        (query,) = self.algorithm(people).queries
        return query

    def algorithm(self, people: int) -> Local[Estimate]:
        """The algorithm of one query: `decode` gives the estimate."""
        algorithm = self.protocol.algorithm(self.epsilon, people)
        assert isinstance(algorithm, Nonadaptive)
        return algorithm

    def to_dict(self) -> dict[str, Any]:
        """As the file has it, with its name and its kind."""
        data = {"name": self.name, "kind": self.kind, "text": self.text, "epsilon": self.epsilon}
        if self.labels:
            return {**data, "labels": list(self.labels)}
        return data if self.low is None else {**data, "low": self.low, "high": self.high}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Question":
        return cls(
            data["name"],
            data["text"],
            data["epsilon"],
            tuple(data.get("labels", ())),
            data.get("low"),
            data.get("high"),
        )


@dataclass(frozen=True)
class Questions:
    """All questions of a poll, answered in one round; a person pays the sum of their epsilons. A
    game has none."""

    title: str
    questions: tuple[Question, ...]

    def __post_init__(self) -> None:
        if len(self.questions) > MOST:
            raise InputError(f"the poll has {len(self.questions)} questions; give 1 to {MOST}")
        self.check_price()

    @property
    def epsilon(self) -> float:
        """What one person pays, in nats."""
        return sum(nano_epsilon(question.epsilon) for question in self.questions) / NANO

    def check_price(self, more: float = 0.0) -> None:
        """Raises InputError where the questions, and `more` for a second round, cost more than a
        page pays."""
        if self.epsilon + more > MOST_EPSILON:
            raise InputError(
                f"a person would pay epsilon {self.epsilon + more:g}, and the page pays at most "
                f"{MOST_EPSILON:g}; ask less, or with a smaller epsilon"
            )

    def asks(self, people: int) -> tuple[LocalQuery, ...]:
        return tuple(question.ask(people) for question in self.questions)

    def to_dict(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "questions": [question.to_dict() for question in self.questions],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Questions":
        return cls(data["title"], tuple(map(Question.from_dict, data["questions"])))


def read(source: str, epsilon: float) -> Questions:
    """The questions in a file whose name ends in .toml, or the one question itself. Raises
    InputError."""
    if source.endswith(".toml") and len(source.split()) == 1:
        return _from_file(Path(source), epsilon)
    return Questions(source, (Question("q1", source, epsilon),))


def _from_file(path: Path, epsilon: float) -> Questions:
    with reading(path, EXAMPLE):
        with path.open("rb") as file:
            raw = file.read(FILE_BYTES + 1)
        if len(raw) > FILE_BYTES:
            raise InputError(
                f"the file {str(path)!r} is larger than {FILE_BYTES} bytes; ask fewer questions"
            )
        data = tomllib.loads(raw.decode())
    extra = [key for key in data if key not in ("title", "question")]
    if extra:
        raise InputError(unknown(f"{path.name}: no key", extra[0], ("title", "question")))
    entries, title = data.get("question", []), data.get("title", path.stem)
    if (
        not isinstance(title, str)
        or not isinstance(entries, list)
        or not all(isinstance(entry, dict) for entry in entries)
    ):
        raise InputError(f"{path.name}: {EXAMPLE}")
    questions = []
    for place, entry in enumerate(entries, start=1):
        try:
            questions.append(_question(f"q{place}", entry, epsilon))
        except LocalDPError as error:
            raise InputError(f"{path.name}, question {place}: {error}") from None
    if not questions:
        raise InputError(f"the poll has 0 questions; {EXAMPLE}")
    return Questions(title[:LONGEST], tuple(questions))


def _question(name: str, entry: Mapping[str, Any], epsilon: float) -> Question:
    extra = [key for key in entry if key not in _KEYS]
    if extra:
        raise InputError(unknown("no key", extra[0], _KEYS))
    text, labels = entry.get("text"), entry.get("labels", [])
    if not isinstance(text, str):
        raise InputError('the question has no text; write text = "..."')
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise InputError('labels are texts; write labels = ["a", "b"]')
    low, high = (
        None if entry.get(key) is None else real_number(key, str(entry[key]))
        for key in ("low", "high")
    )
    return Question(
        name,
        text,
        real_number("epsilon", str(entry.get("epsilon", epsilon))),
        tuple(labels),
        low,
        high,
    )
