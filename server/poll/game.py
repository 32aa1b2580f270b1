"""A class game, without a question of a person's own: each phone has a made-up record of masked
parity, and the class finds the hidden rule in two rounds."""

import asyncio
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from local_dp.arrays import Counts
from local_dp.bounds.masked_parity import (
    masked_parity_one_round_bound,
    masked_parity_one_round_clients,
)
from local_dp.cube import places_of
from local_dp.errors import InputError
from local_dp.interaction import AsyncOracle, run
from local_dp.masked.population import Concept, MaskedParityPopulation
from local_dp.masked.protocols import MaskedParityList
from local_dp.masked.queries import MaskedList
from local_dp.oracles.local.asked import LocalQuery, LocalRounds
from local_dp.oracles.local.oracles import AggregateOracle
from local_dp.records import Records
from local_dp.server.members import Roster
from local_dp.server.poll.again import Again
from local_dp.server.poll.questions import MOST_EPSILON
from local_dp.server.round import Round
from local_dp.tallies import Tally
from local_dp.text.layout import number

BITS = 8  # of the rule
# with less, no class is large enough, and a report needs a public coin
EPSILON, LEAST_EPSILON = (
    5.0,
    3.0,
)
CLASSES = (20, 40, 60, 100, 200)  # phones
GAMES = 200  # simulated for each
SURE, ALWAYS = 0.9, 0.99  # of all games
TITLE = "A game: find the hidden rule"
RULE = (
    f"The rule has {BITS} hidden bits r and a hidden bit a. Each phone has a made-up record: "
    f"{BITS} bits x, a place i, a switch b, and a label. With b = 1, the label shows bit i of r. "
    "With b = 0, it shows whether x has an odd number of ones where r has ones, flipped if a is 1."
)


@lru_cache
def outlook(epsilon: float) -> str:
    """In how many games so many phones find the rule, in one line; some seconds of work."""
    parts = list[str]()
    for phones in CLASSES:
        share = chance(epsilon, phones)
        parts.append(
            f"{'more than 99' if share > ALWAYS else f'{100 * share:.0f}'} % with {phones}"
        )
        if share > ALWAYS:
            break
    return (
        f"At epsilon {number(epsilon)} the class finds the rule in so many games, by the number "
        f"of phones: {', '.join(parts)}."
    )


@lru_cache
def chance(epsilon: float, phones: int) -> float:
    """The share of simulated games in which so many phones find the rule; its standard error is at
    most 0.036."""
    learner, generator, wins = MaskedParityList(d=BITS), np.random.default_rng(1), 0
    for seed in range(GAMES):
        population = learner.synthetic(phones, seed)
        wins += (
            run(learner.algorithm(epsilon, phones), AggregateOracle(population, generator, epsilon))
            == population.concept
        )
    return wins / GAMES


@dataclass(kw_only=True)
class Game(Again[Concept]):
    """Masked parity by list decoding (`MaskedParityList`): each phone answers in one of two rounds.
    The server deals the records, and so it knows them."""

    kind = "game"
    title = "The game"
    population: MaskedParityPopulation
    outlook: str
    pauses: bool  # before round two, until `go_on`
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    _oracle: AsyncOracle[LocalQuery, Tally] | None = None

    @classmethod
    def of(cls, epsilon: float, people: int, seed: int, pauses: bool = False) -> "Game":
        """A new rule, drawn from `seed`. Raises InputError for an epsilon that makes no game."""
        if not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
            raise InputError(
                f"epsilon is {epsilon:g}; a game needs {LEAST_EPSILON:g} to {MOST_EPSILON:g}: "
                "with less, no class is large enough"
            )
        population = MaskedParityList(d=BITS).synthetic(people, seed)
        return cls(epsilon=epsilon, population=population, outlook=outlook(epsilon), pauses=pauses)

    def places(self, first: Round | None, roster: Roster) -> Counts:
        return np.array(
            [at for place in roster.places for at in range(place.start, place.stop)], dtype=np.int64
        )

    def deal(self, start: int, stop: int) -> Records:
        """The records of these places."""
        return self.population.batch(start, stop)

    def record(self, place: int) -> dict[str, int]:
        """The record of one place, as its page gets it."""
        return {
            name: int(values[0]) for name, values in self.deal(place, place + 1).columns.items()
        }

    def algorithm(self, people: int) -> LocalRounds[Concept]:
        return MaskedParityList(d=BITS).algorithm(self.epsilon, people)

    async def play(
        self, places: Counts, people: int, oracle: AsyncOracle[LocalQuery, Tally]
    ) -> None:
        self._oracle = oracle
        await super().play(places, people, self)

    async def answer(self, queries: tuple[LocalQuery, ...]) -> tuple[Tally, ...]:
        """A round, the second one when the presenter says so."""
        assert self._oracle is not None
        if self.pauses and isinstance(queries[0].query, MaskedList):
            await self.go_on.wait()
        return await self._oracle.answer(queries)

    def asking(self, query: LocalQuery) -> list[str]:
        question, phones = query.query, f"{len(query.cohort):,} phones"
        if not isinstance(question, MaskedList):
            return [
                (
                    f"Round 1 asks {phones}: which bit of r does your label show? With b = 0, it "
                    "shows none."
                )
            ]
        open_places = ", ".join(map(str, places_of(question.free)))
        return [
            (
                f"Learned: r = {_digits(question.r, question.free)}, where each ? is open. So "
                f"{2 * question.listed} rules are left."
            ),
            f"Round 2 depends on that, and asks the other {phones}. With b = 0: what is x at the "
            f"places {open_places}, and does your label fit r = {_digits(question.r)}? With b = 1: "
            "which open bit does your label show?",
        ]

    def answered(self, query: LocalQuery, tally: Tally) -> str:
        return f"{tally.n:,} phones answered."

    def offer(self, people: int) -> tuple[str, str]:
        if self.has_begun:
            return "Ask round 2" if self.pauses and len(
                self.steps
            ) > 2 and not self.go_on.is_set() else "", ""
        return "", self.outlook

    @property
    def _beside(self) -> str:
        """What interaction is worth."""
        clients = masked_parity_one_round_clients(BITS, self.epsilon, 1 - SURE)
        proven = masked_parity_one_round_bound(BITS, self.epsilon, SURE)
        least = f" Fewer than {proven:,.0f} are proven too few." if proven > 1 else ""
        return (
            f"In one round, the best known question takes {clients:,} phones for {100 * SURE:.0f} "
            f"% of games.{least}"
        )

    def public(self) -> dict[str, Any]:
        return {"bits": BITS, "rule": RULE}

    def state(self) -> dict[str, Any]:
        return {**super().state(), "question": RULE, "text": self._text(), "beside": self._beside}

    def _text(self) -> str:
        if not self.over:
            return "The rule is hidden."
        if self.result is None:
            return "Too few phones answered."
        truth = self.population.concept
        guess = f"r = {_digits(self.result.r)}, a = {self.result.a}"
        return (
            f"Found: {guess}."
            if self.result == truth
            else (
                f"Not found. The class says {guess}; hidden is r = {_digits(truth.r)}, a = "
                f"{truth.a}."
            )
        )


def _digits(r: int, free: int = 0) -> str:
    """The bits of a vector, place 0 first; ? where they are open."""
    return "".join("?" if free >> place & 1 else str(r >> place & 1) for place in range(BITS))
