"""Rounds that depend on each other; and a second question of this kind: the median of a number,
which the protocol `Quantiles` searches."""

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from local_dp.arrays import Counts
from local_dp.bounds.quantiles import search_error
from local_dp.errors import InputError
from local_dp.interaction import AsyncOracle, run_async, translate
from local_dp.oracles.local.asked import Cohort, LocalQuery, LocalRounds
from local_dp.protocols.local_protocol import BETA
from local_dp.protocols.search.quantiles import Located, Quantiles
from local_dp.server.members import Roster
from local_dp.server.poll.questions import Question, Questions
from local_dp.server.round import Round
from local_dp.tallies import Estimate, Tally
from local_dp.text.layout import number

BINS = 64  # of the search
FEWEST = 3  # answers: a round has three thresholds
_NEAR = 0.1  # share of all people: an accuracy to name
R = TypeVar("R")


@dataclass(kw_only=True)
class Again(ABC, Generic[R]):
    """Asks the people at some places in rounds, each person once. Privacy: `epsilon` (nats) beside
    the questions of the poll."""

    kind: ClassVar[str]
    title: ClassVar[str]
    epsilon: float
    steps: list[str] = field(default_factory=list)  # what was asked and answered so far, in words
    result: R | None = None
    has_begun: bool = False
    over: bool = False

    @abstractmethod
    def places(self, first: Round | None, roster: Roster) -> Counts:
        """Who takes part, ascending: by the answers to the questions, or by who has joined."""

    @abstractmethod
    def offer(self, people: int) -> tuple[str, str]:
        """The presenter's next button, and what so many people can show; each may be empty."""

    @abstractmethod
    def algorithm(self, people: int) -> LocalRounds[R]: ...
    def asking(self, query: LocalQuery) -> list[str]:
        """What the presenter reads before a question."""
        return []

    @abstractmethod
    def answered(self, query: LocalQuery, tally: Tally) -> str:
        """The answers to a question."""

    async def play(
        self, places: Counts, people: int, oracle: AsyncOracle[LocalQuery, Tally]
    ) -> None:
        """Asks the people at these places, ascending, of the places 0..people. A question that
        nobody answers ends it without a result."""
        ends = [*places.tolist(), people]

        def ask(
            queries: tuple[LocalQuery, ...], _: tuple[LocalQuery, ...]
        ) -> tuple[LocalQuery, ...]:
            self.steps += [line for query in queries for line in self.asking(query)]
            return tuple(
                replace(query, cohort=Cohort(ends[query.cohort.start], ends[query.cohort.stop]))
                for query in queries
            )

        def read(
            queries: tuple[LocalQuery, ...], _: tuple[LocalQuery, ...], tallies: tuple[Tally, ...]
        ) -> tuple[Tally, ...]:
            self.steps += [
                self.answered(query, tally)
                for query, tally in zip(queries, tallies, strict=True)
                if tally.n
            ]
            return tallies

        with suppress(InputError):  # nobody answered
            self.result = await run_async(translate(self.algorithm(len(places)), ask, read), oracle)
        self.over = True

    @abstractmethod
    def public(self) -> dict[str, Any]:
        """What a respondent's page must know of it, beside its epsilon."""

    def state(self) -> dict[str, Any]:
        """The steps so far, and the result in words, with numbers where it has them."""
        return {
            "kind": self.kind,
            "title": self.title,
            "steps": self.steps,
            "value": None,
            "low": None,
            "high": None,
            "beside": "",
        }


@dataclass(kw_only=True)
class Median(Again[Located]):
    """Asks each person who answered whether their number is below a threshold, in rounds of three
    thresholds."""

    kind = "median"
    title = "The second question: the median"
    place: int  # of the question in the poll
    question: Question
    search: Quantiles

    @classmethod
    def of(cls, questions: Questions) -> "Median":
        """About the first number that is asked. Raises InputError if there is none."""
        for place, each in enumerate(questions.questions):
            if each.kind == "number":
                search = Quantiles(
                    each.name,
                    low=each.low,
                    high=each.high,
                    bins=BINS,
                    rounds="several",
                    tolerance=_NEAR,
                )
                return cls(epsilon=each.epsilon, place=place, question=each, search=search)
        raise InputError(
            "--ask-again asks for the median of a number: add a question with low = 0 and high = 10"
        )

    def places(self, first: Round | None, roster: Roster) -> Counts:
        return np.flatnonzero(first.parts[self.place].answered) if first else np.arange(0)

    def algorithm(self, people: int) -> LocalRounds[Located]:
        return self.search.algorithm(self.epsilon, people)

    def answered(self, query: LocalQuery, tally: Tally) -> str:
        share = query.randomizer.estimate(tally)
        assert isinstance(share, Estimate)
        parts = np.clip([share.value, *share.interval()], 0.0, 1.0)
        value, low, high = (f"{100 * float(part):.0f} %" for part in parts)
        end = query.query.params()["end"]
        return f"Below {end:.6g}? {value} of {tally.n:,} people ({low} to {high})."

    @property
    def ends(self) -> tuple[float, float, float]:
        """The median and the ends of its 95 % interval, all between the bounds: an end at a bound
        is open."""
        edges = self.search.grid.edges.tolist()
        places = self.result.places[0] if self.result else (BINS // 2, 0, BINS + 1)
        symbol, low, high = (min(max(each, 1), BINS) for each in places)
        return (edges[symbol - 1] + edges[symbol]) / 2, edges[low - 1], edges[high]

    def public(self) -> dict[str, Any]:
        return {"question": self.question.name}

    def state(self) -> dict[str, Any]:
        value, low, high = self.ends if self.over else (None, None, None)
        about = {
            "question": self.question.text,
            "text": self._text() if self.over else "The search goes on.",
        }
        return {**super().state(), **about, "value": value, "low": low, "high": high}

    def _text(self) -> str:
        value, low, high = self.ends
        is_open = low <= self.search.bounds[0], high >= self.search.bounds[1]
        if all(is_open):
            return "Too few answers for an interval: the median may be anywhere."
        interval = f"{number(low)} to {number(high)}"
        if is_open[0]:
            interval = f"at most {number(high)}"
        if is_open[1]:
            interval = f"at least {number(low)}"
        return f"about {number(value)}; 95 % interval: {interval}"

    def offer(self, people: int) -> tuple[str, str]:
        if people < FEWEST or self.has_begun:
            return "", ""
        error = search_error(self.epsilon, 1, people, BETA)
        need = (
            f"within {100 * _NEAR:.0f} % of all people takes about "
            f"{self.search.clients(self.epsilon):,}"
        )
        if error >= 0.5:
            outlook = f"{people:,} answers are too few for a median; one {need}."
        else:
            outlook = (
                f"{people:,} answers place the median within {100 * error:.0f} % of all people; "
                f"{need}."
            )
        return "Ask again for the median", outlook
