"""Parity between the models: from a noisy sum of examples, behind a shuffler or an aggregator, a
parity takes about 2^(d/2) clients."""

import math

import numpy as np
from numpy.random import Generator, default_rng

from local_dp.arrays import Counts, Floats
from local_dp.bounds.channels import parity_interactive_bound
from local_dp.bounds.curator import parity_examples
from local_dp.bounds.parity import parity_cells_clients, parity_halving_clients
from local_dp.curator.inversion import mu_squared
from local_dp.curator.parity.learner import amplified_learner
from local_dp.experiments.lab.parts import (
    LOCAL_MODEL,
    Check,
    Claimed,
    ClientCount,
    Curve,
    Experiment,
    Finding,
    LogFigure,
    Points,
    Rate,
    Row,
    Scale,
    Sheet,
    Table,
    curve,
    holds,
    least_count,
    measured,
    measured_clients,
    own_seed,
    reached_check,
    tabulate,
)
from local_dp.loss import approximate
from local_dp.populations.parity import ParityPopulation
from local_dp.queries.examples import ParityExample
from local_dp.shuffle.central import Shuffler
from local_dp.shuffle.parity import blanket_for_parity, parity_of_cells

EPSILON, DELTA, SUCCESS = 1.0, 1e-9, 0.9
BETA = 1 - SUCCESS
SUMMED, SHUFFLED = "noisy sum of examples", "behind a shuffler, blanket messages"
DIMENSIONS = {"quick": (8, 12, 14), "full": (8, 12, 16, 20)}
TRIALS = {8: 3000, 12: 2000, 14: 1500, 16: 3000, 20: 600}
BLANKETS = {"quick": (4, 6, 8), "full": (4, 6, 8, 10)}
RUNS = 2000  # of the blanket's law
CLIENT_BY_CLIENT, BATCHES = 6, 150  # the dimension, and runs through the shuffler's role
# doublings of the noisy sum's n for each dimension: a half, and what sqrt(d) adds
LOW, HIGH = 0.5, 0.58
CROWD = 100
_CELLS = 1 << 21  # at a time


def cell_variance() -> float:
    """Of normal noise on every cell: a replaced example moves two cells by one."""
    return 2 / float(mu_squared(approximate(EPSILON, DELTA)))


def drawn_cells(d: int, n: int, runs: int, generator: Generator) -> Counts:
    """The counts of n uniform examples of the parity 0, shape (2^(d + 1), runs): all labels are +1.
    Every other parity is alike, by renaming the labels."""
    cells = np.zeros((2 << d, runs), dtype=np.int64)
    for run in range(runs):
        cells[0::2, run] = np.bincount(generator.integers(0, 1 << d, n), minlength=1 << d)
    return cells


def summed(d: int, n: int, runs: int, generator: Generator) -> Floats:
    """Differences of both cells of each x with normal noise, in place of the cells, shape (2^(d +
    1), runs): half of the draws, and the same scores."""
    cells = drawn_cells(d, n, runs, generator).astype(np.float64)
    cells[0::2] += generator.normal(0, math.sqrt(2 * cell_variance()), (1 << d, runs))
    return cells


class Summed(Row):
    """The least number of clients that find the parity in 90 % of the runs."""

    d: int

    def measure(self, seed: int) -> ClientCount:
        generator = default_rng(own_seed(SUMMED, seed, self.d))

        def successes(n: int, runs: int) -> int:
            each, wins = max(1, _CELLS >> (self.d + 1)), 0
            for start in range(0, runs, each):
                cells = summed(self.d, n, min(each, runs - start), generator)
                wins += int(np.sum(parity_of_cells(cells) == 0))
            return wins

        return measured_clients(successes, _formula(self.d), target=SUCCESS, trials=TRIALS[self.d])


class Found(Row):
    clients: int
    messages: float  # of a client, on average
    found: int
    runs: int

    @property
    def rate(self) -> Rate:
        return Rate(self.found, self.runs)


class Blanketed(Row):
    """How often the formula's number of clients find the parity with blanket messages, counted by
    their law."""

    d: int

    def measure(self, seed: int) -> Found:
        n, histogram = blanket_for_parity(self.d, EPSILON, DELTA, BETA, cell_variance())
        generator, wins = default_rng(own_seed(SHUFFLED, seed, self.d)), 0
        for _ in range(RUNS):
            cells = drawn_cells(self.d, n, 1, generator)[:, 0]
            wins += int(parity_of_cells(histogram.draw_tally(cells, generator).counts) == 0)
        return Found(n, histogram.messages_each, wins, RUNS)


class Batches(Row):
    """The same, client by client: all messages of all clients in one batch, ordered by the
    shuffler's role."""

    d: int

    def measure(self, seed: int) -> Found:
        n, histogram = blanket_for_parity(self.d, EPSILON, DELTA, BETA, cell_variance())
        wins = 0
        for batch in range(BATCHES):
            own = own_seed("batch", seed, batch)
            population = ParityPopulation(self.d, own % (1 << self.d), n, own)
            words = default_rng(own).integers(0, 1 << 32, (n, histogram.tries), dtype=np.uint64)
            messages = histogram.respond(population.values(ParityExample(self.d), 0, n), words)
            reports = Shuffler.of(own, CROWD).passed(messages[:, None].astype(np.uint64))
            tally = histogram.tally(reports[:, 0].astype(np.int64), n)
            shares = histogram.estimate(tally).value
            wins += int(parity_of_cells(shares) == population.r)
        return Found(n, histogram.messages_each, wins, BATCHES)


class ParityShuffled(Experiment):
    name = "parity-shuffled"
    chapter = LOCAL_MODEL
    title = "Parity between local and central: a shuffler takes the square root"
    claim = (
        "Clients who trust nobody need about 2^d of them to find a parity of d bits, a trusted "
        "curator a number that grows with d. Between the two lies a sum of all examples that only "
        "its noise protects, as a shuffler with blanket messages or an aggregator makes it: about "
        "2^(d/2) clients are enough."
    )
    source = "Cheu, Zhilyaev 2022; lower bounds, cited: Cheu, Ullman 2021; Yan 2021"

    def points(self, scale: Scale) -> Points:
        return [
            *map(Summed, DIMENSIONS[scale]),
            *map(Blanketed, BLANKETS[scale]),
            Batches(CLIENT_BY_CLIENT),
        ]

    def finding(self, sheet: Sheet) -> Finding:
        counts = {p.d: m for p, m in sheet[Summed]}
        blankets = {p.d: m for p, m in sheet[Blanketed]}
        batches = {p.d: m for p, m in sheet[Batches]}
        checks = [reached_check(counts), *_rate_checks(counts, blankets, batches)]
        title = (
            f"Clients or records that find a parity in {SUCCESS:.0%} of runs, epsilon {EPSILON:g}"
        )
        curves = _curves(counts, blankets)
        return Finding(
            [*checks, *_between(counts)],
            [_table(counts, blankets | batches)],
            [LogFigure("parity-shuffled", title, "dimension d", "least n", curves)],
            _NOTES,
            headline=_headline(counts),
        )


_NOTES = [
    f"Epsilon is {EPSILON:g}, delta {DELTA:g} for the sum and the shuffler, none for clients alone "
    "and the curator. Examples are uniform, with right labels. The curves of clients alone and of "
    "the curator are formulas; `parity` measures them.",
    "Robust shuffle protocols of one round need of the order 2^(d/2): cited, for agnostic learners "
    "(Cheu, Ullman 2021) and for learners under every law of the examples (Yan 2021). Robust means "
    "private although some clients leave. No bound is cited for uniform examples with right "
    "labels. In two rounds a shuffler computes anything (Beimel, Haitner, Nissim, Stemmer 2020).",
]


def _rate_checks(
    counts: dict[int, ClientCount], blankets: dict[int, Found], batches: dict[int, Found]
) -> list[Check]:
    ratios = {f"d = {d}": least_count(m) / _formula(d) for d, m in counts.items()}
    laws = {f"d = {d}, {m.clients:,} clients": m.rate for d, m in blankets.items()}
    users = {f"d = {d}, {m.messages:.0f} messages each": m.rate for d, m in batches.items()}
    return [
        measured(
            "the noisy sum needs .97 to 1.03 of the clients that its formula says",
            ratios,
            0.97,
            1.03,
        ),
        measured(
            "behind a shuffler the formula's number of clients finds the parity in 88 to 92 % "
            "of runs, by the law of the messages",
            laws,
            0.88,
            0.92,
        ),
        measured(
            "and client by client, in the order of the shuffler's role, in 85 % and more",
            users,
            0.85,
        ),
    ]


def _curator(d: int) -> int:
    return parity_examples(amplified_learner(EPSILON, BETA), d, SUCCESS)


def _alone(d: int) -> float:
    return parity_interactive_bound(d, EPSILON, SUCCESS)


def _formula(d: int) -> int:
    return parity_cells_clients(d, cell_variance(), BETA)


def _between(counts: dict[int, ClientCount]) -> list[Check]:
    """The exponents, and the distances to both sides at the greatest d that is measured."""
    first, last = min(counts), max(counts)
    greatest, steps = least_count(counts[last]), last - first
    growth = {f"from d = {first} to {last}": greatest / least_count(counts[first])}
    growing = f"each dimension takes the noisy sum 2^{LOW:g} to 2^{HIGH:g} times as many clients"
    below, above = greatest / _alone(last), greatest / _curator(last)
    sides = {
        "over clients alone, by a proven bound": Claimed(below, high=1 / 20),
        "over a curator": Claimed(above, 100),
    }
    statement = (
        f"at d = {last} the sum needs a 20th of what clients alone need, and 100 times as many as "
        "a curator"
    )
    return [
        measured(growing, growth, 2 ** (LOW * steps), 2 ** (HIGH * steps)),
        holds(statement, sides),
    ]


def _table(counts: dict[int, ClientCount], blankets: dict[int, Found]) -> Table:
    sums = {d: (SUMMED, d, m.n, m.low, m.high, _formula(d)) for d, m in counts.items()}
    mixed = {d: (SHUFFLED, d, "", "", "", each.clients) for d, each in blankets.items()}
    rows = []
    for d, cells in (*sums.items(), *mixed.items()):
        rows.append((*cells, round(_alone(d)), _curator(d)))
    headings = (
        "from | d | clients for 90 %, measured minimum | 95 % low | 95 % high | formula | clients "
        "alone, proven bound | curator"
    )
    return tabulate("Clients or records that find a parity", headings, rows)


def _curves(counts: dict[int, ClientCount], blankets: dict[int, Found]) -> list[Curve]:
    dimensions = sorted({*counts, *blankets})
    bounds = [(d, _alone(d)) for d in dimensions]
    halving = [(d, parity_halving_clients(d, EPSILON, BETA)) for d in dimensions if d <= 12]
    mixed = [(d, each.clients) for d, each in blankets.items()]
    sums = [(d, m.n, m.low, m.high) for d, m in counts.items()]
    curator = [(d, _curator(d)) for d in dimensions]
    return [
        curve("clients alone, proven bound", bounds, "bound"),
        curve("clients alone, halving in rounds", halving, "theory"),
        curve(SHUFFLED, mixed, "theory"),
        curve(SUMMED, sums),
        curve("curator", curator, "theory"),
    ]


def _headline(counts: dict[int, ClientCount]) -> str:
    d = max(counts)
    return (
        f"At d = {d} a noisy sum of examples takes {counts[d].n:,} clients, clients alone "
        f"{_alone(d):,.0f} at least, a curator {_curator(d):,}."
    )


EXPERIMENT = ParityShuffled()
