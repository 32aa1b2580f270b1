"""Ladders followed in every kind of interaction: runs drawn from the law of their answers, and some client by client."""

import math
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from local_dp.arrays import Ints
from local_dp.bounds.interaction import group_lengths, ladder_clients
from local_dp.errors import LocalDPError, RefusedError
from local_dp.experiments.lab.claim import Measurement, Point
from local_dp.experiments.lab.minimal_clients import measured_clients
from local_dp.experiments.lab.store import as_data
from local_dp.interaction import Algorithm, run
from local_dp.ledger import Ledger
from local_dp.loss import exp_epsilon
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.population import PopulationOracle
from local_dp.oracles.watched import Watched
from local_dp.protocols.parity.ladder import DEEPEST, LadderAgain, LadderInTurn, LadderOneRound
from local_dp.queries.examples import PathStep
from local_dp.randomizers.evidence import exact_ratio
from local_dp.randomizers.repeated.one_of_rounds import OneOfRounds
from local_dp.tallies import Tally
from local_dp.verification.watch import worst_transcript

EPSILON, BETA = 1.0, 0.1
AGAIN, IN_TURN, BELOW, BY_SUM, ONE_ROUND = "again", "in turn", "in turn, random nodes below too", "again, charged by the sum", "one round"
WAYS = (AGAIN, IN_TURN, BELOW, BY_SUM, ONE_ROUND)
THREE = OneOfRounds(1.09861229, word_bits=2)  # E = 3: probabilities of 1/4, 1/2 and 3/4, without rounding


@dataclass(frozen=True)
class Way:
    """One way to follow a ladder of k levels in so many rounds; `again` asks all clients in each, with an `each` of epsilon a round."""

    name: str
    k: int
    rounds: int

    @property
    def again(self) -> bool:
        return self.name in (AGAIN, BY_SUM)

    @property
    def below(self) -> bool:
        return self.name == BELOW

    @property
    def each(self) -> float:
        """The epsilon of one answer."""
        return EPSILON / self.rounds if self.name == BY_SUM else EPSILON

    @property
    def predicted(self) -> int:
        """The clients that the closed form asks for."""
        return ladder_clients(self.k, self.each, BETA, self.rounds, again=self.again, below=self.below)

    @property
    def apart(self) -> int:
        """The same, if the answers of other levels were coins."""
        return ladder_clients(self.k, self.each, BETA, self.rounds, again=self.again, below=self.below, apart=True)

    @property
    def least(self) -> int:
        """As many as there are questions."""
        lengths = group_lengths(self.k, self.rounds)
        return (1 if self.again else self.rounds) << max(lengths)

    def protocol(self) -> LadderAgain | LadderInTurn | LadderOneRound:
        """The protocol that does it."""
        if self.name == ONE_ROUND:
            return LadderOneRound(self.k)
        if self.again:
            return LadderAgain(self.k, self.rounds, "sum" if self.name == BY_SUM else "session")
        return LadderInTurn(self.k, self.rounds, self.below)

    def asked(self, n: int) -> list[tuple[int, int, int]]:
        """The rounds: the first level, how many are asked, and how many clients are."""
        lengths = group_lengths(self.k, self.rounds)
        firsts = list(accumulate(lengths, initial=0))
        each = [n] * self.rounds if self.again else [high - low for low, high in pairwise(n * place // self.rounds for place in range(self.rounds + 1))]
        depths = [
            max(length, min(self.k - first, DEEPEST, max(1, m).bit_length() - 1)) if self.below else length
            for first, length, m in zip(firsts, lengths, each, strict=False)
        ]
        return list(zip(firsts, depths, each, strict=False))


def successes(way: Way, n: int, runs: int, generator: np.random.Generator) -> int:
    """In how many of so many runs the path is found: the answers to all questions of a kind from their binomial law.

    Fresh clients have independent levels, so of one round this is the law of the protocol, but that the sizes of the kinds are rounded as those of the
    questions are. Where the same clients are asked again, it leaves out that who holds one level holds no other: some clients in a thousand.
    """
    right, told = np.ones(runs, dtype=np.bool_), list[tuple[int, Ints]]()
    rounds = {first: (depth, many) for first, depth, many in way.asked(n)}
    for level in range(way.k):
        if level in rounds:
            told.append((level, lead(*rounds[level], math.tanh(way.each / 2) / (2 * way.k), runs, generator)))
        score = sum((each[:, level - first] for first, each in told if level - first < each.shape[1]), np.zeros(runs, dtype=np.int64))
        right &= (score > 0) | ((score == 0) & (generator.random(runs) < 0.5))  # a tie is called 0, which half of all bits are
    return int(right.sum())


def lead(depth: int, many: int, lean: float, runs: int, generator: np.random.Generator) -> Ints:
    """At each of so many levels, by how many answers the path's bit is ahead on the way along it, shape (runs, depth), of `many` clients asked.

    A path in question is of a kind: where it first leaves the true one (or nowhere), and how many of the later levels' tables confirm its step all the same.
    Whatever the tables hold, of the 2^i ways on from a node, j of i steps are confirmed on binomial(i, j). Each level of k confirms or denies by `lean`.
    """
    kinds = [(left, agreed) for left in range(depth) for agreed in range(depth - left)] + [(depth, 0)]
    shares = [math.comb(depth - left - 1, agreed) if left < depth else 1 for left, agreed in kinds]
    means = [left - 1 + 2 * agreed - (depth - left - 1) if left < depth else depth for left, agreed in kinds]
    sizes = np.diff(many * np.cumsum([0, *shares]) // (1 << depth))
    confirmed = 2 * generator.binomial(sizes, 0.5 + lean * np.array(means), (runs, len(kinds))) - sizes
    leaving = np.array([left for left, _ in kinds])
    ahead: Ints = np.stack([confirmed @ (1 * (leaving > level) - 1 * (leaving == level)) for level in range(depth)], axis=1)
    return ahead


def measure_count(point: Point, seed: int) -> Measurement:
    """The least number of clients for 90 % success, beside the closed form's."""
    way = Way(point["way"], point["k"], point["rounds"])
    generator = np.random.default_rng([seed, WAYS.index(way.name), way.k, way.rounds])
    found = as_data(measured_clients(lambda n, runs: successes(way, n, runs, generator), way.predicted, trials=point["trials"], least=way.least))
    return {**found, "predicted": way.predicted}


def measure_loss(point: Point) -> Measurement:
    """Over all transcripts of so many rounds the largest ratio, and what the rounds' losses add up to; whether a client with epsilon for life answers all of
    them in a session, and where each is charged by itself."""
    rounds = point["rounds"]
    try:
        alone, together = exact_ratio(THREE), worst_transcript(THREE, rounds)
    except RefusedError as error:
        return {"refused": str(error)}
    return {
        "ratio": [together.numerator, together.denominator],
        "alone": [alone.numerator, alone.denominator],
        "session": _allowed(rounds, "ladder"),
        "sum": _allowed(rounds, ""),
    }


def _allowed(rounds: int, session: str) -> bool:
    """Whether the ledger of one answer's epsilon lets one client be asked about so many levels."""
    ledger = Ledger(THREE.epsilon)
    try:
        for level in range(rounds):
            ledger.charge("run", [LocalQuery(PathStep("1" * (level + 1), level), THREE, Cohort(0, 1), session).charge()])
    except RefusedError:
        return False
    return True


def measure_users(point: Point, seed: int) -> Measurement:
    """The same point client by client: success beside that of the law, the name of what was seen, what was spent, and whom it asked."""
    way = Way(point["way"], point["k"], point["rounds"])
    n, generator = way.predicted, np.random.default_rng([seed, WAYS.index(way.name), way.k])
    protocol = way.protocol()
    found, made, owed, seen = 0, 0, 0, set[tuple[str, float, int]]()
    try:
        algorithm: Algorithm[LocalQuery, Tally, str] = protocol.algorithm(EPSILON, n)
        for drawn in generator.integers(1 << 62, size=int(point["users"])).tolist():
            population, queries = protocol.synthetic(n, drawn), list[LocalQuery]()
            oracle = PopulationOracle(population, KeyedNoise(drawn), drawn, EPSILON)
            found += run(algorithm, Watched(oracle, before=queries.extend)) == population.path
            made += sum(summary.n for summary in oracle.rounds if summary.digest)
            owed += sum(len(query.cohort) for query in queries)
            seen.add((oracle.interaction, oracle.ledger.max_spent, len(oracle.rounds)))
        ratio = exact_ratio(OneOfRounds(way.each))
    except LocalDPError as error:
        return {"refused": str(error)}
    (interaction, spent, rounds), *others = seen
    return {
        "clients": n,
        "users": [found, point["users"]],
        "law": [successes(way, n, point["laws"], generator), point["laws"]],
        "made": [made, owed],
        "loss": math.log(ratio),
        "charged": ratio <= exp_epsilon(OneOfRounds(way.each).nano) and not others,
        "epsilon": EPSILON,
        "interaction": interaction,
        "spent": spent,
        "rounds": rounds,
        "model": protocol.model(),
    }
