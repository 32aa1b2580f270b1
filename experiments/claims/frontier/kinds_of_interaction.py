"""Kinds of interaction: a path that is found by asking once, in turn, and the same people again."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np
from numpy.random import Generator, default_rng

from local_dp.arrays import Ints
from local_dp.bounds.interaction import group_lengths, ladder_clients, ladder_one_round_least
from local_dp.errors import LocalDPError, RefusedError
from local_dp.experiments.lab.parts import (
    FRONTIER,
    Check,
    ClientCount,
    CrossCheck,
    Experiment,
    Figure,
    Finding,
    LogFigure,
    LogLogFigure,
    Points,
    Refusal,
    Row,
    Scale,
    Sheet,
    Table,
    cross_check_shown,
    curve,
    every,
    least_count,
    measured,
    measured_clients,
    reached_check,
    tabulate,
)
from local_dp.interaction import Algorithm, Watched, run
from local_dp.ledger import Ledger
from local_dp.loss import exp_epsilon
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.memory import repeat_of
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.protocols.parity.ladder import DEEPEST, LadderAgain, LadderInTurn, LadderOneRound
from local_dp.queries.examples import PathStep
from local_dp.randomizers.evidence import exact_ratio
from local_dp.randomizers.repeated.memoised import OneOfRounds
from local_dp.tallies import Tally
from local_dp.verification.worst import worst_transcript

EPSILON, BETA = 1.0, 0.1
AGAIN, IN_TURN, BELOW, BY_SUM, ONE_ROUND = (
    "again",
    "in turn",
    "in turn, random nodes below too",
    "again, charged by the sum",
    "one round",
)
WAYS = (AGAIN, IN_TURN, BELOW, BY_SUM, ONE_ROUND)
# E = 3: probabilities of 1/4, 1/2 and 3/4, without rounding
THREE = OneOfRounds(1.09861229, word_bits=2)
LEVELS = (2, 4, 8, 12, 16)
AT, ROUNDS = 12, (1, 2, 3, 4, 6, 12)  # levels, and rounds allowed, of the first figure
LOST = (1, 2, 3, 4, 6)  # rounds of which all transcripts are enumerated
SMALL, LARGE = 4, 16  # levels at which runs are made client by client
TIMES = 200  # how many times fewer than any one round takes
SLACK = 0.06
TRIALS = {"quick": 12_000, "full": 120_000}
USERS = {"quick": 300, "full": 2000}
NAMES = {  # of the kind, and of the model
    **dict.fromkeys((AGAIN, BY_SUM), ("fully interactive", "FI")),
    **dict.fromkeys((IN_TURN, BELOW), ("sequentially interactive", "LI")),
    ONE_ROUND: ("non-interactive", "LNI"),
}
BOUND = "one round, no protocol with fewer"


def rounds_of(way: str, k: int) -> int:
    """The most rounds: one a level, or one."""
    return 1 if way == ONE_ROUND else k


@dataclass(frozen=True)
class Way:
    """One way to follow a ladder of k levels in so many rounds; `again` asks all clients in each,
    with epsilon `each` for one answer."""

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
        return EPSILON / self.rounds if self.name == BY_SUM else EPSILON

    def clients(self, *, apart: bool = False) -> int:
        """The prediction; `apart`: if the answers of other levels were coins."""
        kind = {"again": self.again, "below": self.below, "apart": apart}
        return ladder_clients(self.k, self.each, BETA, self.rounds, **kind)

    @property
    def predicted(self) -> int:
        return self.clients()

    @property
    def least(self) -> int:
        lengths = group_lengths(self.k, self.rounds)
        return (1 if self.again else self.rounds) << max(lengths)

    def __str__(self) -> str:
        return f"{self.name}, k = {self.k}, {self.rounds} rounds"

    def protocol(self) -> LadderAgain | LadderInTurn | LadderOneRound:
        if self.name == ONE_ROUND:
            return LadderOneRound(self.k)
        if self.again:
            return LadderAgain(self.k, self.rounds, "sum" if self.name == BY_SUM else "session")
        return LadderInTurn(self.k, self.rounds, self.below)

    def plan(self, n: int) -> list[tuple[int, int, int]]:
        """The rounds: the first level, the number of levels and the number of clients."""
        lengths = group_lengths(self.k, self.rounds)
        firsts = list(accumulate(lengths, initial=0))
        ends = [n * place // self.rounds for place in range(self.rounds + 1)]
        plan = []
        for first, length, (low, high) in zip(firsts, lengths, pairwise(ends), strict=False):
            clients, depth = n if self.again else high - low, length
            if self.below:
                most = min(self.k - first, DEEPEST, max(1, clients).bit_length() - 1)
                depth = max(length, most)
            plan.append((first, depth, clients))
        return plan


def successes(way: Way, n: int, runs: int, generator: Generator) -> int:
    """In how many of so many runs the path is found: the answers to all questions of a kind from
    their binomial law.

    Fresh clients have independent levels, so for one round this is the law of the protocol. Only
    the sizes of the kinds are rounded as those of the questions. Where the same clients are asked
    again, it ignores that a client has one level only: some clients in a thousand.
    """
    right, leads = np.ones(runs, dtype=np.bool_), list[tuple[int, Ints]]()
    rounds = {first: (depth, many) for first, depth, many in way.plan(n)}
    lean = math.tanh(way.each / 2) / (2 * way.k)
    for level in range(way.k):
        if level in rounds:
            leads.append((level, lead(*rounds[level], lean, runs, generator)))
        score = sum(
            (each[:, level - first] for first, each in leads if level - first < each.shape[1]),
            np.zeros(runs, dtype=np.int64),
        )
        # a tie is called 0, which half of all bits are
        right &= (score > 0) | ((score == 0) & (generator.random(runs) < 0.5))
    return int(right.sum())


def lead(depth: int, many: int, lean: float, runs: int, generator: Generator) -> Ints:
    """The lead of the path's bit in answers at each level along it, shape (runs, depth), among
    `many` clients.

    A path in question is of a kind: where it first leaves the true one (or nowhere), and how many
    of the later levels' tables confirm its step nevertheless. For any tables, of the 2^i ways on
    from a node, j of i steps are confirmed on binomial(i, j). Each level of k confirms or denies by
    `lean`.
    """
    kinds = []  # where it leaves, how many there are, and the mean lead
    for left in range(depth):
        later = depth - left - 1
        for matches in range(depth - left):
            kinds.append((left, math.comb(later, matches), left - 1 + 2 * matches - later))
    leaving, shares, means = np.array([*kinds, (depth, 1, depth)]).T
    sizes = np.diff(many * np.cumsum([0, *shares]) // (1 << depth))
    answers = generator.binomial(sizes, 0.5 + lean * means, (runs, len(sizes)))
    levels = np.arange(depth)[:, None]
    signs = 1 * (leaving > levels) - 1 * (leaving == levels)
    ahead: Ints = (2 * answers - sizes) @ signs.T
    return ahead


class Counted(Row):
    search: ClientCount
    predicted: int


class Count(Row):
    """The least number of clients for 90 % success, beside the closed form's."""

    way: Way
    trials: int

    def measure(self, seed: int) -> Counted:
        way = self.way
        generator = default_rng([seed, WAYS.index(way.name), way.k, way.rounds])

        def success(n: int, runs: int) -> int:
            return successes(way, n, runs, generator)

        search = measured_clients(success, way.predicted, trials=self.trials, least=way.least)
        return Counted(search, way.predicted)


class Ratios(Row):
    together: str  # the largest ratio over all transcripts, a fraction
    alone: str  # that of one answer
    # whether a client with the epsilon of one answer for life answers all rounds in a session
    session: bool
    sum: bool  # and where each answer is charged by itself


class Loss(Row):
    """All transcripts of so many rounds, enumerated."""

    rounds: int

    def measure(self, seed: int) -> Ratios | Refusal:
        try:
            together, alone = worst_transcript(THREE, self.rounds), exact_ratio(THREE)
        except RefusedError as error:
            return Refusal(str(error))
        session, apart = (_allowed(self.rounds, name) for name in ("ladder", ""))
        return Ratios(str(together), str(alone), session, apart)


def _allowed(rounds: int, session: str) -> bool:
    """True if the ledger of one answer's epsilon covers questions to one client about so many
    levels."""
    ledger = Ledger(THREE.epsilon)
    try:
        for level in range(rounds):
            step = PathStep("1" * (level + 1), level)
            query = LocalQuery(step, THREE, Cohort(0, 1), repeat_of(session, THREE))
            ledger.charge("run", [query.charge()])
    except RefusedError:
        return False
    return True


class Seen(Row):
    crossing: CrossCheck
    interaction: str  # the kind that the server saw
    model: str  # the kind by the protocol's type
    spent: float  # the most by any client


class Users(Row):
    """The same way client by client: success beside that of the law, the kind of interaction, the
    loss."""

    way: Way
    runs: int

    def measure(self, seed: int) -> Seen | Refusal:
        way, n, protocol = self.way, self.way.predicted, self.way.protocol()
        generator = default_rng([seed, WAYS.index(way.name), way.k])
        right, answers, requests, observations = 0, 0, 0, set[tuple[str, float, int]]()
        try:
            algorithm: Algorithm[LocalQuery, Tally, str] = protocol.algorithm(EPSILON, n)
            for own in generator.integers(1 << 62, size=self.runs).tolist():
                population, queries = protocol.synthetic(n, own), list[LocalQuery]()
                oracle = PopulationOracle(population, KeyedNoise(own), own, EPSILON)
                right += run(algorithm, Watched(oracle, before=queries.extend)) == population.path
                answers += sum(summary.n for summary in oracle.rounds if summary.digest)
                requests += sum(len(query.cohort) for query in queries)
                observations.add((oracle.interaction, oracle.ledger.max_spent, len(oracle.rounds)))
            randomizer = OneOfRounds(way.each)
            ratio = exact_ratio(randomizer)
        except LocalDPError as error:
            return Refusal(str(error))
        (interaction, loss, _), *others = observations
        law = (successes(way, n, 8 * self.runs, generator), 8 * self.runs)
        charged = ratio <= exp_epsilon(randomizer.nano) and not others
        users = (right, self.runs)
        crossing = CrossCheck(
            clients=n,
            users=users,
            law=law,
            made=(answers, requests),
            loss=math.log(ratio),
            charged=charged,
            epsilon=EPSILON,
        )
        return Seen(crossing, interaction, protocol.model(), loss)


Counts = dict[Way, tuple[ClientCount, int]]  # the count and the prediction


class KindsOfInteraction(Experiment):
    name = "kinds-of-interaction"
    chapter = FRONTIER
    title = "Asked once, asked in turn, asked again"
    claim = (
        "To find a path of k steps, each known to other people, one must ask in turn: one "
        "question to all takes exponentially many people. Asking the same people at every step "
        "costs no privacy, if each speaks in one round and tosses a coin in all others, and takes "
        "k times fewer."
    )
    source = "Joseph, Mao, Neel, Roth 2019; Joseph, Mao, Roth 2020; docs/limits 12.1"

    def points(self, scale: Scale) -> Points:
        small = (Users(Way(way, SMALL, rounds_of(way, SMALL)), USERS[scale]) for way in WAYS)
        users = [
            *small,
            Users(Way(AGAIN, LARGE, LARGE), USERS[scale] // 2),
        ]
        ways = [Way(way, k, rounds_of(way, k)) for way in WAYS for k in LEVELS]
        ways += [
            Way(way, AT, rounds) for way in (AGAIN, IN_TURN) for rounds in ROUNDS if rounds < AT
        ]
        return [*map(Loss, LOST), *users, *(Count(way, TRIALS[scale]) for way in ways)]

    def finding(self, sheet: Sheet) -> Finding:
        searches, users = sheet[Count], sheet[Users]
        losses = [(p, m) for p, m in sheet[Loss] if isinstance(m, Ratios)]
        counts: Counts = {p.way: (m.search, m.predicted) for p, m in searches}
        table = _table(counts)
        crossings = (
            cross_check_shown(f"{p.way.name}, k = {p.way.k}", getattr(m, "crossing", m))
            for p, m in users
        )
        parts = {str(way): least_count(count) / most for way, (count, most) in counts.items()}
        cases = []
        for p, m in losses:
            right = m.together == m.alone == "3" and m.session and m.sum == (p.rounds == 1)
            cases.append((right, f"{p.rounds} rounds: {m.together}"))
        checks = [
            every(
                "All answers of a session lose exactly the loss of one, whatever the server "
                "asks; their sum would be refused (ratios at E = 3)",
                cases,
                also=len(losses) == len(LOST),
            ),
            *crossings,
            _check_names({p.way.name: m for p, m in users}),
            reached_check(searches),
            measured(
                f"The closed forms predict the counts, within {SLACK:.0%} (in units of the "
                "prediction)",
                parts,
                1 - SLACK,
                1 + SLACK,
            ),
            *_check_counts(counts),
            *_check_rounds(counts),
        ]
        return Finding(checks, [table], [*_figures(table)], NOTES, headline=_headline(counts))


NOTES = [
    f"Epsilon {EPSILON:g} for all reports of a client; {1 - BETA:.0%} of runs find all k "
    "bits. Counts are of runs drawn from the law of the answers; runs client by client "
    "agree.",
    (
        "The bound is proved for one round alone (docs/limits 12.1). Counts in turn and "
        "again are those of the best method known here."
    ),
    "In a round that asks about several levels, the answers of the levels above all "
    "confirm the true path, so they vary less than coins. The last column is the count if "
    "they did not, as with a public coin that flips each level's answers.",
]


def _of(counts: Counts, way: str, k: int, rounds: int | None = None) -> ClientCount:
    """The count of one way."""
    return counts[Way(way, k, rounds or rounds_of(way, k))][0]


def _headline(counts: Counts) -> str:
    again, turn = _of(counts, AGAIN, LARGE).n, _of(counts, IN_TURN, LARGE).n
    least = ladder_one_round_least(LARGE, EPSILON, BETA)
    few = f"{again:,} people if all are asked at every step, {turn:,} if others are"
    return (
        f"A path of {LARGE} steps: {few}, and in one round more than {least:,.0f}, whatever is "
        "asked."
    )


def _check_names(users: dict[str, Seen | Refusal]) -> Check:
    observations = {
        way: (m.interaction, m.model, m.spent) for way, m in users.items() if isinstance(m, Seen)
    }
    right = {way: (*NAMES[way], EPSILON) for way in WAYS}
    statement = (
        "Each way is of its stated kind, as the server saw it, and nobody spends more than "
        f"{EPSILON:g}"
    )
    names = ", ".join(
        f"{way}: {interaction}, {model}" for way, (interaction, model, _) in observations.items()
    )
    return Check(
        statement,
        observations == right,
        names,
    )


def _check_counts(counts: Counts) -> Iterator[Check]:
    """Asking again against asking in turn, and both against one round."""
    ways = (AGAIN, IN_TURN, ONE_ROUND)
    again, turn, one_round = ({k: least_count(_of(counts, way, k)) for k in LEVELS} for way in ways)
    bounds = {k: ladder_one_round_least(k, EPSILON, BETA) for k in LEVELS}
    turns = {f"k = {k}": again[k] / turn[k] * k for k in (4, 8, 16)}
    above = {f"k = {k}": one_round[k] / bound for k, bound in bounds.items()}
    fewer = (
        "Asking the same people again takes k times fewer than asking others in turn, within "
        f"{SLACK:.0%} (in units of a k-th)"
    )
    far = (
        f"Asked again, k = {LARGE} takes {TIMES} times fewer people than any protocol of one "
        "round (in units of its least)"
    )
    yield measured(fewer, turns, 1 - SLACK, 1 + SLACK)
    yield measured(far, {"": again[LARGE] / bounds[LARGE]}, high=1 / TIMES)
    yield measured(
        "One round takes more than the theorem's least, at every k (in units of it)", above, 1
    )


def _check_rounds(counts: Counts) -> Iterator[Check]:
    """The closed forms give factors of 1.6 and more for each step with the same people, and 1.24 in
    turn."""
    ways = (IN_TURN, AGAIN)
    in_turn, again = (
        [least_count(_of(counts, way, AT, rounds)) for rounds in ROUNDS] for way in ways
    )
    searches = pairwise(zip(ROUNDS, again, strict=True))
    steps = {
        f"{more} rounds for {fewer}": before / after for (fewer, before), (more, after) in searches
    }
    worse = in_turn[-1] / in_turn[-2]
    yield measured(
        f"At k = {AT}, each step to more rounds with the same people takes at least 1.5 "
        "times fewer",
        steps,
        1.5,
    )
    yield measured(
        f"At k = {AT}, {ROUNDS[-1]} rounds in turn take at least 1.15 times as many "
        f"people as {ROUNDS[-2]}",
        {"": worse},
        1.15,
    )


def _table(counts: Counts) -> Table:
    rows = [
        (
            way.name,
            way.k,
            way.rounds,
            count.n,
            count.low,
            count.high,
            prediction,
            way.clients(apart=True),
        )
        for way, (count, prediction) in counts.items()
    ]
    bounds = [
        (BOUND, k, 1, math.ceil(ladder_one_round_least(k, EPSILON, BETA)), None, None, None, None)
        for k in LEVELS
    ]
    headings = (
        "way | levels k | rounds | clients | 95 % from | to | predicted | predicted, others as "
        "coins"
    )
    return tabulate(f"Least clients for {1 - BETA:.0%} success", headings, [*rows, *bounds])


def _figures(table: Table) -> Iterator[Figure]:
    """Over the rounds at AT levels; and over the levels, with one round a level or one in all."""
    over_rounds = table.where("levels k", AT).curves(
        "way | rounds | clients | 95 % from | to", IN_TURN, AGAIN
    )
    bound = ladder_one_round_least(AT, EPSILON, BETA)
    over_rounds.append(curve(BOUND, [(1, bound), (ROUNDS[-1], bound)], "bound"))
    rows = [row for row in table.rows if row[2] == rounds_of(*row[:2])]
    usual = replace(table, rows=rows)
    over_levels = usual.curves(
        "way | levels k | clients | 95 % from | to", ONE_ROUND, BY_SUM, IN_TURN, BELOW, AGAIN
    )
    bounds = ((k, ladder_one_round_least(k, EPSILON, BETA)) for k in LEVELS)
    over_levels.append(curve(BOUND, bounds, "bound"))
    yield LogLogFigure(
        "kinds-of-interaction",
        f"Clients to find a path of {AT} steps, epsilon 1",
        "rounds allowed",
        "clients",
        over_rounds,
    )
    yield LogFigure(
        "kinds-of-interaction-levels",
        "Clients to find a path of k steps, epsilon 1",
        "steps k",
        "clients",
        over_levels,
    )


EXPERIMENT = KindsOfInteraction()
