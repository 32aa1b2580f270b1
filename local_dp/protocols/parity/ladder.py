"""A ladder of k levels: the bits on a path, found by the same clients in every round, by others in
each round, or in one round (limits 12.1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product

from local_dp.bounds.interaction import group_lengths, ladder_clients
from local_dp.checks import check_built, check_whole
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Nonadaptive, Repeated
from local_dp.loss import split_epsilon
from local_dp.oracles.local.asked import Cohort, Local, LocalPlay, LocalQuery, LocalRounds
from local_dp.oracles.local.memory import repeat_of
from local_dp.populations.finite import Population
from local_dp.populations.parity import LadderPopulation
from local_dp.protocols.local_protocol import BETA, LocalProtocol, PlainData, parameter
from local_dp.queries.examples import MOST_LEVELS, PathStep
from local_dp.randomizers.repeated.memoised import OneOfRounds
from local_dp.tallies import Tally

DEEPEST = 12  # levels in one round: 2^12 questions are what a request holds


def ways_on(
    node: str, levels: int, clients: range, randomizer: OneOfRounds, session: str = ""
) -> tuple[LocalQuery, ...]:
    """Queries about `node`'s 2^levels continuations, with equal parts of the clients. Raises
    InputError for more than clients or a request hold."""
    many = 1 << levels
    if levels > DEEPEST or many > len(clients):
        raise InputError(
            f"{levels} levels in one round are {many} questions; give each a client of its own, "
            f"of {len(clients)}, and at most {DEEPEST} levels"
        )
    ends = [clients.start + len(clients) * place // many for place in range(many + 1)]
    paths = (node + "".join(steps) for steps in product("01", repeat=levels))
    return tuple(
        LocalQuery(
            PathStep(path, len(node)),
            randomizer,
            Cohort(start, stop),
            repeat_of(session, randomizer),
        )
        for path, (start, stop) in zip(paths, pairwise(ends), strict=True)
    )


@dataclass
class Answers:
    """The answers so far: each path, its first level, and the clients that confirm it less those
    that deny it."""

    scores: list[tuple[str, int, float]] = field(default_factory=list)

    def add(self, queries: Sequence[LocalQuery], tallies: Sequence[Tally]) -> None:
        """Adds answers to `ways_on`. Raises InputError if one of them has no reports."""
        for query, tally in zip(queries, tallies, strict=True):
            assert isinstance(query.query, PathStep)
            against, for_it = tally.weights[0].tolist()
            self.scores.append((query.query.path, query.query.first, for_it - against))

    def step(self, node: str) -> str:
        """The step from a node that more clients confirm; clients of other levels add nothing on
        average, whatever the tables hold."""
        level = len(node)
        score = sum(
            more if path[level] == "1" else -more
            for path, first, more in self.scores
            if first <= level < len(path) and path.startswith(node)
        )
        return "1" if score > 0 else "0"

    def follow(self, node: str, levels: int) -> str:
        """The path from a node after `levels` more steps."""
        for _ in range(levels):
            node += self.step(node)
        return node


@dataclass(frozen=True)
class _Ladder(LocalProtocol[str]):
    """Level i < k has a hidden table of 2^i bits, the steps at its nodes; each client has the table
    of one uniform level."""

    asks = ("one-of-rounds",)
    figureless = "a hypothesis"
    error_unit = "share of the path from its first wrong step on"
    k: int = parameter(4, "Number of levels, from 1 to 16", unit="levels")

    def check(self) -> None:
        check_whole("k", self.k, 1, MOST_LEVELS)

    def synthetic(self, clients: int, seed: int) -> LadderPopulation:
        return LadderPopulation(self.k, clients, seed)

    def describe(self, result: str) -> PlainData:
        return {"hypothesis": {"k": self.k, "path": result}}

    def truth(self, population: Population) -> str:
        assert isinstance(population, LadderPopulation)
        return population.path

    def explain(self, result: str) -> str:
        return f"From the root, the bits on the path are {' '.join(result)}."

    def true_error(self, result: str, population: Population) -> float:
        """The share of the path that comes from its first wrong step on."""
        path = self.truth(population)
        right = next((level for level in range(self.k) if result[level] != path[level]), self.k)
        return 1 - right / self.k


@dataclass(frozen=True)
class _LadderInRounds(_Ladder):
    """The common part of the protocols of several rounds: the levels of each round."""

    rounds: int | None = parameter(None, "Most rounds; default: one for each level")

    def check(self) -> None:
        super().check()
        check_built(self.lengths)

    @property
    def lengths(self) -> tuple[int, ...]:
        return group_lengths(self.k, self.k if self.rounds is None else self.rounds)

    def climb(self, ask: Callable[[str, int, int], tuple[LocalQuery, ...]]) -> LocalPlay[str]:
        """Follows the path round by round, by the answers to what `ask` asks at a node, about some
        levels, in a round."""
        answers, node = Answers(), ""
        for round, levels in enumerate(self.lengths):
            queries = ask(node, levels, round)
            answers.add(queries, (yield queries))
            node = answers.follow(node, levels)
        return node


@dataclass(frozen=True)
class LadderAgain(_LadderInRounds):
    """Finds the path by all clients in every round: clients of the round's level answer by
    randomized response, all others report a fair coin.

    Privacy: the answers of all rounds together are epsilon-locally private, for a client answers
    truthfully in one of them (a session, limits 12.1); `charged` sum gives each round a part of
    epsilon instead, as in KLNRS's Definition 4.4. Utility: all k bits with probability 95 % for
    about (z k C)^2 clients, a k-th of `ladder-in-turn`. Cost: one bit a client and round. With
    fewer `rounds` than levels a round asks about random nodes below.
    """

    name = "ladder"
    summary = "Finds a hidden path; every client answers in every round"
    source = (
        "Joseph, Mao, Neel, Roth 2019 and Joseph, Mao, Roth 2020, in a binary form; limits 12.1"
    )
    charged: str = parameter(
        "session",
        "How the rounds share the budget",
        help="session: epsilon for all of them; sum: a part of it for each",
        choices=("session", "sum"),
    )
    session: str = parameter(
        "ladder",
        "Label of the session",
        help="Clients with a store need another label for another session",
    )

    def each(self, epsilon: float) -> float:
        return epsilon if self.charged == "session" else split_epsilon(epsilon, len(self.lengths))

    def clients(self, epsilon: float) -> int:
        return max(
            1 << max(self.lengths),
            ladder_clients(self.k, self.each(epsilon), BETA, len(self.lengths), again=True),
        )

    def algorithm(self, epsilon: float, clients: int) -> Repeated[LocalQuery, Tally, str]:
        randomizer = OneOfRounds(self.each(epsilon))
        session = self.session if self.charged == "session" else ""

        def ask(node: str, levels: int, round: int) -> tuple[LocalQuery, ...]:
            return ways_on(node, levels, range(clients), randomizer, session)

        return Repeated(lambda: self.climb(ask))


@dataclass(frozen=True)
class LadderInTurn(_LadderInRounds):
    """Finds the path by other clients in each round: clients of the round's level answer by
    randomized response, all others report a fair coin.

    With `below`, clients of later levels answer about a random node of their level below the one
    reached. Later rounds use the answers on the path. Privacy: each client answers once,
    epsilon-locally private. Utility: all k bits with probability 95 % for about k (z k C)^2
    clients, with `below` about half as many. Cost: one bit a client. With fewer `rounds` than
    levels a round asks about random nodes below.
    """

    name = "ladder-in-turn"
    summary = "Finds a hidden path; each round asks other clients"
    source = "pointer chasing: Joseph, Mao, Roth 2020, in a binary form; limits 12.1"
    below: bool = parameter(
        False,
        "Whether clients of later levels answer too",
        help="They answer about a random node below",
    )

    def clients(self, epsilon: float) -> int:
        rounds = len(self.lengths)
        return max(
            rounds << max(self.lengths),
            ladder_clients(self.k, epsilon, BETA, rounds, below=self.below),
        )

    def algorithm(self, epsilon: float, clients: int) -> LocalRounds[str]:
        randomizer, rounds = OneOfRounds(epsilon), len(self.lengths)
        ends = [clients * place // rounds for place in range(rounds + 1)]

        def ask(node: str, levels: int, round: int) -> tuple[LocalQuery, ...]:
            cohort = range(ends[round], ends[round + 1])
            if self.below:
                most = max(1, len(cohort)).bit_length() - 1
                levels = max(levels, min(self.k - len(node), DEEPEST, most))
            return ways_on(node, levels, cohort, randomizer)

        return Adaptive(lambda: self.climb(ask))


@dataclass(frozen=True)
class LadderOneRound(_Ladder):
    """Finds the path in one round: each client reports whether its table has the step of a random
    path at its level.

    Privacy: each client answers once, epsilon-locally private. Utility: all k bits with probability
    95 % for about 2^(k-1) (z k C)^2 clients; every protocol of one round needs k 2^(k-1) (ln 2 -
    h(beta)) / capacity (limits 12.1). Cost: one bit a client. 1 <= k <= 12.
    """

    name = "ladder-one-round"
    summary = "Finds a hidden path in one round"
    source = "limits 12.1"

    def check(self) -> None:
        check_whole("k", self.k, 1, DEEPEST)

    def clients(self, epsilon: float) -> int:
        return max(1 << self.k, ladder_clients(self.k, epsilon, BETA, 1))

    def algorithm(self, epsilon: float, clients: int) -> Local[str]:
        queries = ways_on("", self.k, range(clients), OneOfRounds(epsilon))

        def decode(tallies: tuple[Tally, ...]) -> str:
            answers = Answers()
            answers.add(queries, tallies)
            return answers.follow("", self.k)

        return Nonadaptive(queries, decode)
