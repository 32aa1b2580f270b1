"""Margin complexity: files that prove how many people one round takes to learn a class barely,
whatever the distribution (limits 12.4)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng

from local_dp.arrays import Floats
from local_dp.bounds.interaction import margin_clients, margin_constant, vote_clients
from local_dp.bounds.response import response_gain
from local_dp.errors import InputError
from local_dp.experiments.lab.parts import (
    FRONTIER,
    Check,
    Claimed,
    Crossing,
    Experiment,
    Figure,
    Finding,
    LogFigure,
    Points,
    Rate,
    Row,
    Rows,
    Scale,
    Sheet,
    Table,
    Trial,
    cross_check,
    cross_check_shown,
    curve,
    curve_of,
    holds,
    tabulate,
)
from local_dp.hardness.certificates import verify_certificate
from local_dp.hardness.margins import Margin, margin, margin_limit, on_the_matrix
from local_dp.learners.rules import DecisionLists
from local_dp.populations.concepts import FUNCTIONS, BlockClass
from local_dp.protocols.learning.learned import advantage, cohorts, hard_examples, vote

EPSILON, SUCCESS = 1.0, 0.9
MULTIPLES = (4.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0, 16.0)  # of MC^2: how many clients vote
LISTS = "odd-max-bit"
RUN = BlockClass(LISTS, 4, 2)  # small enough to be run client by client
CERTIFIED = (
    (LISTS, 4, 2),
    (LISTS, 8, 2),
    (LISTS, 8, 4),
    (LISTS, 8, 8),
    (LISTS, 8, 16),
    ("and", 8, 4),
    ("majority", 7, 4),
    ("parity", 4, 4),
)
LARGER = ((LISTS, 9, 81), (LISTS, 10, 16), ("parity", 8, 4))
SMALL = ((2, 2), (2, 3), (3, 2), (3, 3))
VOTED = ((LISTS, 4, 2), (LISTS, 8, 16), ("and", 8, 4), ("majority", 7, 4), ("parity", 4, 4))
MAX_LIST = 40  # variables of the learner of lists
CLOSE = 1e-6
# of the bound, for nine tenths of the votes: parity takes 3.02 times, the others 2.45 to 2.56, as
# measured in 200,000 runs with seed 3
TIMES = 3.1


@dataclass(frozen=True)
class Side:
    t: int
    b: int
    at_least: float  # the margin complexity
    at_most: float

    @classmethod
    def of(cls, result: Margin) -> "Side":
        return cls(result.concepts.t, result.concepts.b, result.at_least, result.at_most)


class Certified(Row):
    side: Side
    certificate: dict[str, Any]
    valid: bool
    forgeries: int
    accepted: int  # forgeries


class Certificate(Row):
    """The certificate of a class, the checker's verdict on it and on its forgeries."""

    function: str
    t: int
    b: int

    def measure(self, seed: int) -> Certified:
        result = margin(BlockClass(self.function, self.t, self.b))
        certificate = result.certificate(EPSILON, SUCCESS)
        verdicts = [accepted(forgery) for forgery in forgeries(certificate)]
        return Certified(
            Side.of(result),
            certificate,
            verify_certificate(certificate).valid,
            len(verdicts),
            sum(verdicts),
        )


def forgeries(certificate: dict[str, Any]) -> list[dict[str, Any]]:
    """The certificate with one weight altered, for each of them; with b altered; and with a figure
    that says more."""
    weights = certificate["weights"]
    changes = []
    for place, weight in enumerate(weights):
        forgery = [*weights[:place], weight + 1, *weights[place + 1 :]]
        changes.append({**certificate, "weights": forgery})
    changes += [{**certificate, "b": b} for b in (certificate["b"] - 1, certificate["b"] + 1)]
    return [
        *changes,
        {**certificate, "clients_at_least": certificate["clients_at_least"] + 1},
        {**certificate, "squared_margin_at_most": "1/1000000000"},
    ]


def accepted(certificate: dict[str, Any]) -> bool:
    """True if the checker accepts it; it accepts nothing malformed."""
    try:
        return verify_certificate(certificate).valid
    except InputError:
        return False


class Sides(Row):
    sides: list[Side]


class Blocks(Row):
    """The margin complexity of one function for several numbers of blocks of b variables; with b =
    0, of as many as the square of their number."""

    function: str
    ts: tuple[int, ...]
    b: int

    def measure(self, seed: int) -> Sides:
        classes = (BlockClass(self.function, t, self.b or t * t) for t in self.ts)
        return Sides([Side.of(margin(each)) for each in classes])


class Values(Row):
    values: list[float]


class Limits(Row):
    """The limit of the margin complexity of odd-max-bit over sqrt(B), for large B."""

    blocks: tuple[int, ...]

    def measure(self, seed: int) -> Values:
        return Values([margin_limit(BlockClass(LISTS, t, 1)) for t in self.blocks])


class Bounds(Row):
    side: Side
    bounds: list[float]  # from the whole sign matrix


class Matrix(Row):
    """The margin complexity of a class, beside bounds from its whole sign matrix."""

    concepts: str
    t: int
    b: int

    def measure(self, seed: int) -> Bounds:
        result = margin(BlockClass(self.concepts, self.t, self.b))
        return Bounds(Side.of(result), [float(bound) for bound in on_the_matrix(result)])


class Votes(Row):
    squared: float  # MC^2
    clients: list[int]
    won: list[int]  # votes that are right more often than wrong
    trials: int

    def rate(self, clients: int) -> Rate:
        """Of the votes of so many clients."""
        return Rate(self.won[self.clients.index(clients)], self.trials)

    @property
    def bound(self) -> int:
        """The least number of clients for any method."""
        return margin_clients(self.squared, EPSILON, SUCCESS)

    @property
    def needed(self) -> float:
        """The clients with which nine tenths of the votes are right more often than wrong: by a
        line through the two numbers around it."""
        rates = [wins / self.trials for wins in self.won]
        for place, (low, high) in enumerate(pairwise(rates)):
            if low < SUCCESS <= high:
                before, after = self.clients[place : place + 2]
                return float(before + (SUCCESS - low) / (high - low) * (after - before))
        return math.inf


class Vote(Row):
    """Votes of several sizes, for the concept and the law that are hardest."""

    function: str
    t: int
    b: int
    trials: int

    def measure(self, seed: int) -> Votes:
        result = margin(BlockClass(self.function, self.t, self.b))
        generator = default_rng([seed, self.t, self.b])
        squared = result.at_least**2
        fewest = margin_clients(squared, EPSILON, SUCCESS) - 1
        most = vote_clients(squared, EPSILON, SUCCESS)
        multiples = (round(multiple * squared) for multiple in MULTIPLES)
        clients = sorted(
            [
                fewest,
                *multiples,
                enough(fewest + 1),
                most,
            ]
        )
        wins = [int((advantages(result, n, self.trials, generator) > 1e-9).sum()) for n in clients]
        return Votes(squared, clients, wins, self.trials)


def enough(bound: int) -> int:
    """The clients with which the vote is claimed to be right."""
    return math.ceil(TIMES * bound)


def advantages(result: Margin, clients: int, trials: int, generator: Generator) -> Floats:
    """n E[y h] of so many votes under the hardest law, by the law of the answers.

    Of each set of blocks those clients count whose mask has the right variables in it; of other
    masks the label is independent.
    """
    total: Floats = np.zeros(trials)
    for S, cohort in cohorts(result, clients).items():
        correlation = float(result.correlations[S])
        voters = generator.binomial(
            len(cohort), float(result.concepts.b) ** -S.bit_count(), size=trials
        )
        ayes = generator.binomial(voters, min(1.0, (1 + correlation / response_gain(EPSILON)) / 2))
        total += correlation * (2 * ayes - voters)
    return total


class Users(Row):
    """A small vote client by client."""

    clients: int
    users: int

    def measure(self, seed: int) -> Crossing:
        result, n = margin(RUN), self.clients

        def trial() -> Trial:
            return Trial(
                vote(result, EPSILON, n),
                lambda own: hard_examples(result, n, own),
                lambda words, _: advantage(result, words) > 1e-12,
                n,
                EPSILON,
            )

        return cross_check(trial, seed, users=self.users, laws=4 * self.users)


class Margins(Experiment):
    name = "margins"
    chapter = FRONTIER
    title = "A file that proves how many people one round takes, whatever the distribution"
    claim = (
        "A file that anybody can check proves that every one-round method with pure privacy needs "
        "n people to learn these rules, even barely: to be right more often than wrong. For lists "
        "of rules and other functions of variables that nobody knows, n is about 3.17 times the "
        "square of a number that a small linear program computes. One round in which everybody is "
        "asked about one random parity comes within a factor of 3.1 of it."
    )
    source = (
        "Daniely, Feldman 2019, with a constant; the linear program and the converse are proved "
        "in limits 12.4"
    )

    def points(self, scale: Scale) -> Points:
        full = scale == "full"
        most = 10 if full else 8
        return [
            *(Certificate(*each) for each in (*CERTIFIED, *(LARGER if full else ()))),
            *(
                Blocks(function, tuple(range(1, most + 1, 1 + (function == "majority"))), 4)
                for function in FUNCTIONS
            ),
            Blocks(LISTS, tuple(range(2, 10)), 0),
            Limits(tuple(range(1, 9))),
            *(Matrix(function, *sizes) for function in FUNCTIONS for sizes in SMALL),
            *(Vote(*each, 80_000 if full else 20_000) for each in VOTED),
            Users(282, 400 if full else 300),
        ]

    def finding(self, sheet: Sheet) -> Finding:
        certificates, votes = sheet[Certificate], sheet[Vote]
        blocks: Rows[Blocks, Sides] = sheet[Blocks]
        fixed = [(p, m.sides) for p, m in blocks if p.b]
        (squares,) = (m.sides for p, m in blocks if not p.b)
        checks = [
            *_check_sides(sheet),
            _check_certificates(certificates),
            _check_closed({p.function: sides for p, sides in fixed}["parity"], sheet[Limits]),
            _check_votes(votes),
            *(
                cross_check_shown("the vote on odd-max-bit, 4 blocks of 2", m, least=0.85)
                for _, m in sheet[Users]
            ),
        ]
        proofs = [
            (p.function, p.t, p.b, p.t * p.b, m.side.at_least, m.certificate["clients_at_least"])
            for p, m in certificates
        ]
        headings = (
            "function | blocks | B | variables | margin complexity | clients of one round, at least"
        )
        tables = [
            tabulate("The proofs of the certificates, epsilon 1", headings, proofs),
            _squares_table(squares),
            _votes_table(votes),
        ]
        title = "Margin complexity of one variable of each block, four in a block"
        curves = [curve_of(p.function, "t | at_least", each, "theory") for p, each in fixed]
        figures = [
            LogFigure("margins", title, "blocks t", "margin complexity", curves, "one-round"),
            _votes_figure(votes),
        ]
        files = {f"certificate {p.function} {p.t} {p.b}": m.certificate for p, m in certificates}
        notes, headline = _notes(fixed, squares, certificates), _headline(certificates)
        return Finding(checks, tables, figures, notes, files, headline=headline)


def _check_sides(sheet: Sheet) -> Iterator[Check]:
    """The two bounds of each class, and four ways to the same number for whole matrices."""
    matrices = sheet[Matrix]
    sides = [side for _, m in sheet[Blocks] for side in m.sides]
    sides += [m.side for _, m in (*sheet[Certificate], *matrices)]
    gaps = [abs(side.at_most / side.at_least - 1) for side in sides]
    off = [abs(value / m.side.at_least - 1) for _, m in matrices for value in m.bounds]
    far = sum(value > CLOSE for value in off)
    sizes = ", ".join(sorted({str((p.t, p.b)) for p, _ in matrices}))
    classes = f"{len(gaps)} classes, {sum(gap > CLOSE for gap in gaps)} further apart"
    yield Check(
        "The law that bounds the margin complexity from below and the polynomial that "
        "bounds it from above agree to one part in a million",
        max(gaps) <= CLOSE,
        classes,
    )
    evidence = f"{len(matrices)} matrices of {sizes} blocks: {far} of {len(off)} bounds differ"
    yield Check(
        "On whole sign matrices, with no symmetry used, the spectral norm and vectors "
        "written out for every concept and point give the same number",
        max(off) <= CLOSE,
        evidence,
    )


def _votes_table(votes: Rows[Vote, Votes]) -> Table:
    rows = []
    for p, m in votes:
        need = m.needed if math.isinf(m.needed) else round(m.needed)
        rows.append((_name(p), m.squared**0.5, m.bound, need, m.clients[-1]))
    headings = (
        "function (blocks, B) | margin complexity | any method, at least | the vote, measured | "
        "the vote, proved"
    )
    return tabulate("Clients to learn barely in one round", headings, rows)


def _votes_figure(votes: Rows[Vote, Votes]) -> Figure:
    constant = margin_constant(EPSILON, SUCCESS)
    curves = []
    for p, m in votes:
        counts = zip(m.clients, m.won, strict=True)
        shares = ((n / m.squared, wins / m.trials) for n, wins in counts)
        curves.append(curve(_name(p), shares))
    ends = [(constant, 0.5), (constant, SUCCESS)]
    curves.append(curve("no method with fewer reaches 90 %", ends, "bound"))
    title = "One round is right more often than wrong"
    axes = ("clients, in units of MC^2", "share of runs")
    return Figure("votes", title, *axes, curves, "one-round", log_x=True)


def _name(point: Certificate | Vote) -> str:
    return f"{point.function} ({point.t}, {point.b})"


def _headline(certificates: Rows[Certificate, Certified]) -> str:
    lists = [(p, m) for p, m in certificates if p.function == LISTS]
    p, m = max(lists, key=lambda row: int(row[1].certificate["clients_at_least"]))
    return (
        f"A file of {len(m.certificate['weights'])} whole numbers "
        f"{'proves' if m.valid else 'does not prove'}: to learn lists of {p.t} rules over "
        f"{p.t * p.b} variables, even barely, every one-round method needs "
        f"{m.certificate['clients_at_least']:,} people."
    )


def _check_certificates(rows: Rows[Certificate, Certified]) -> Check:
    forgery_count = sum(m.forgeries for _, m in rows)
    accepted_count = sum(m.accepted for _, m in rows)
    valid_count = sum(m.valid for _, m in rows)
    short = []
    for p, m in rows:
        bound = margin_clients(m.side.at_most**2, EPSILON, SUCCESS) * (1 - CLOSE) - 1
        if m.certificate["clients_at_least"] < bound:
            short.append(_name(p))
    evidence = (
        f"{valid_count} of {len(rows)} certificates verified; {accepted_count} of {forgery_count} "
        f"forgeries accepted{'; short of the bound: ' if short else ''}{', '.join(short)}"
    )
    return Check(
        "Every certificate passes the independent checker, and none with one altered weight, "
        "another B or a larger count does",
        valid_count == len(rows) and forgery_count > 0 == accepted_count and not short,
        evidence,
    )


def fibonacci(k: int) -> int:
    """The k-th number of 1, 1, 2, 3, 5, ..."""
    first, second = 0, 1
    for _ in range(k):
        first, second = second, first + second
    return first


def _check_closed(parity: list[Side], limits: Rows[Limits, Values]) -> Check:
    roots = [side.at_least / side.b ** (side.t / 2) for side in parity]
    values = [each for p, m in limits for each in zip(p.blocks, m.values, strict=True)]
    ratios = roots + [value / (fibonacci(t + 2) - 1) for t, value in values]
    return Check(
        "Parity of one variable of each of t blocks of B has margin complexity B^(t/2); "
        "odd-max-bit has sqrt(B) times a Fibonacci number less 1, for large B",
        all(abs(ratio - 1) <= CLOSE for ratio in ratios),
        f"parity {', '.join(f'{side.at_least:.4g}' for side in parity)}; limits "
        f"{', '.join(f'{value:.4g}' for _, value in values)}",
    )


def _check_votes(rows: Rows[Vote, Votes]) -> Check:
    """Fewer clients than the certificate's bound must fail in more than a tenth of runs, and the
    number of Cantelli's inequality must not."""
    claims = {}
    for p, m in rows:
        claims[f"{_name(p)}, one client too few"] = Claimed(m.rate(m.bound - 1), high=0.85)
        rate = m.rate(enough(m.bound))
        claims[f"{_name(p)}, {TIMES:g} times the bound"] = Claimed(rate, SUCCESS)
        claims[f"{_name(p)}, as proved"] = Claimed(m.rate(m.clients[-1]), low=0.99)
    return holds(
        f"The vote is right more often than wrong in {SUCCESS:.0%} of runs with {TIMES:g} times "
        "the clients that every one-round method needs, in at most 85 % with fewer than these, "
        "and in 99 % with the number of its proof",
        claims,
    )


def _slope(first: Side, second: Side) -> float:
    """Of ln MC over ln d between two neighbours."""
    variables = second.t * second.b / (first.t * first.b)
    return math.log(second.at_least / first.at_least) / math.log(variables)


def _squares_table(squares: list[Side]) -> Table:
    slopes = ["", *(_slope(*each) for each in pairwise(squares))]
    rows = [
        (side.t, side.b, side.t * side.b, side.at_least, slope)
        for side, slope in zip(squares, slopes, strict=True)
    ]
    return tabulate(
        "Odd-max-bit, t blocks of t^2",
        "blocks | B | variables | margin complexity | its growth since the line above, as a "
        "power of the variables",
        rows,
    )


def _notes(
    fixed: list[tuple[Blocks, list[Side]]],
    squares: list[Side],
    certificates: Rows[Certificate, Certified],
) -> list[str]:
    enough = vote_clients(1e6, EPSILON, SUCCESS) / 1e6
    notes = [
        "A class: all functions of one variable, or its negation, of each of t blocks of B, where "
        "nobody knows which. Odd-max-bit of them is a list of rules: the last block that contains "
        "a 1 decides, by whether its place is odd.",
        f"Epsilon {EPSILON:g}, success {SUCCESS:.0%}: n >= "
        f"{margin_constant(EPSILON, SUCCESS):.4f} MC^2, and {enough:.1f} MC^2 are enough "
        "(Cantelli's inequality). Barely means an error below 1/2. To learn well is another "
        "matter: a class with large margins may still need exponentially many people in one round "
        "(Dagan, Feldman 2020), so MC^2 is no upper bound for that.",
        (
            "A certificate with B and all dependent figures altered is no forgery: it proves its "
            "statement, of the class with so many variables."
        ),
    ]
    factors = []
    for p, (*_, before, last) in fixed:
        factor = (last.at_least / before.at_least) ** (1 / (last.t - before.t))
        factors.append(f"{p.function} by {factor:.2f}")
    slopes = [_slope(*each) for each in pairwise(squares)]
    lists = [
        (p.t * p.b, m) for p, m in certificates if p.function == LISTS and p.t * p.b <= MAX_LIST
    ]
    variables, m = lists[-1]
    learner = DecisionLists(d=variables)
    return [
        *notes,
        "The margin complexity of lists of rules over d variables is exponential in d^(1/3) "
        "(recalled: Buhrman, Vereshchagin, de Wolf 2007). That is invisible at these sizes: "
        f"with B = t^2 it grows as a power of d between {min(slopes):.2f} and "
        f"{max(slopes):.2f} from one t to the next, up to d = {squares[-1].t * squares[-1].b}. "
        "Only parity grows by a constant factor with every block: with four variables in "
        f"each, over the last steps of t, {', '.join(factors)} a block.",
        f"The bound lies far below our learners: the one for lists of rules over {variables} "
        f"variables needs {learner.clients(EPSILON, 0.1):,} people in {learner.rounds} "
        "rounds, for an error of a tenth; to learn barely, one round takes "
        f"{m.certificate['clients_at_least']:,} at least.",
    ]


EXPERIMENT = Margins()
