"""A second question that depends on the first answers: the median of a number, which the protocol `Quantiles` searches among those who answered."""

from dataclasses import dataclass, field, replace
from typing import Any

from local_dp.arrays import Counts
from local_dp.bounds.quantiles import search_error, search_rounds
from local_dp.errors import InputError
from local_dp.experiments.poll.questions import Question, Questions
from local_dp.experiments.text.layout import number
from local_dp.interaction import AsyncOracle, run_async, translate
from local_dp.oracles.local.asked import Cohort, LocalQuery, LocalRounds
from local_dp.protocols.local_protocol import BETA
from local_dp.protocols.search.quantiles import LEAST, Located, Quantiles
from local_dp.tallies import Estimate, Tally

BINS = 64  # of the search
FEWEST = 3  # answers: a round has three thresholds
_NEAR = 0.1  # share of all people: an accuracy to name


@dataclass
class Again:
    """Asks each person who answered whether their number is below a threshold, in rounds of three thresholds. Privacy: epsilon once more (nats)."""

    place: int  # of the question in the poll
    question: Question
    search: Quantiles
    steps: list[str] = field(default_factory=list)  # the answers so far
    ends: tuple[float, float, float] | None = None  # the median and its 95 % interval, at the end

    @classmethod
    def of(cls, questions: Questions) -> "Again":
        """About the first number that is asked. Raises InputError if there is none."""
        for place, each in enumerate(questions.questions):
            if each.kind == "number":
                return cls(place, each, Quantiles(each.name, low=each.low, high=each.high, bins=BINS, rounds="several", tolerance=_NEAR))
        raise InputError("--ask-again asks for the median of a number: add a question with low = 0 and high = 10")

    def rounds(self, people: int) -> int:
        """How many rounds it has at the most."""
        return max(1, search_rounds(self.search.symbols, people, LEAST))

    def algorithm(self, places: Counts, people: int) -> LocalRounds[Located]:
        """The search among the people at these places, ascending, of the places 0..people."""
        ends = [*places.tolist(), people]

        def ask(queries: tuple[LocalQuery, ...], _: tuple[LocalQuery, ...]) -> tuple[LocalQuery, ...]:
            return tuple(replace(query, cohort=Cohort(ends[query.cohort.start], ends[query.cohort.stop])) for query in queries)

        def read(queries: tuple[LocalQuery, ...], _: tuple[LocalQuery, ...], tallies: tuple[Tally, ...]) -> tuple[Tally, ...]:
            self.steps += [_step(query, tally) for query, tally in zip(queries, tallies, strict=True) if tally.n]
            return tallies

        return translate(self.search.algorithm(self.question.epsilon, len(places)), ask, read)

    async def play(self, places: Counts, people: int, oracle: AsyncOracle[LocalQuery, Tally]) -> None:
        """Searches, and sets the median and the ends of its interval: an end at a bound is open. A threshold that nobody answers leaves both open."""
        try:
            found = (await run_async(self.algorithm(places, people), oracle)).places[0]
        except InputError:  # nobody answered
            found = (BINS // 2, 0, BINS + 1)
        edges = self.search.grid.edges.tolist()
        symbol, low, high = (min(max(each, 1), BINS) for each in found)
        self.ends = (edges[symbol - 1] + edges[symbol]) / 2, edges[low - 1], edges[high]

    def state(self) -> dict[str, Any]:
        """The question, its answers so far, and the median in numbers and in words."""
        value, low, high = self.ends or (None, None, None)
        return {"question": self.question.text, "steps": self.steps, "value": value, "low": low, "high": high, "text": self._text()}

    def _text(self) -> str:
        if self.ends is None:
            return "The search goes on."
        value, low, high = self.ends
        is_open = low <= self.search.bounds[0], high >= self.search.bounds[1]
        if all(is_open):
            return "Too few answers for an interval: the median may be anywhere."
        interval = f"at most {number(high)}" if is_open[0] else f"at least {number(low)}" if is_open[1] else f"{number(low)} to {number(high)}"
        return f"about {number(value)}; 95 % interval: {interval}"

    def outlook(self, answered: int) -> str:
        """What so many answers can show, in one line; empty where they are too few to ask."""
        if answered < FEWEST:
            return ""
        error = search_error(self.question.epsilon, 1, answered, BETA)
        needed = f"within {100 * _NEAR:.0f} % of all people takes about {self.search.clients(self.question.epsilon):,}"
        if error >= 0.5:
            return f"{answered:,} answers are too few for a median; one {needed}."
        return f"{answered:,} answers place the median within {100 * error:.0f} % of all people; {needed}."


def _step(query: LocalQuery, tally: Tally) -> str:
    """The answers to one threshold, in words."""
    share = query.randomizer.estimate(tally)
    assert isinstance(share, Estimate)
    value, low, high = (f"{100 * min(max(float(part), 0.0), 1.0):.0f} %" for part in (share.value, *share.interval()))
    return f"Below {query.query.params()['end']:.6g}? {value} of {tally.n:,} people ({low} to {high})."
