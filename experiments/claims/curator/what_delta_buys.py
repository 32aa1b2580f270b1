"""What a delta buys: a lower bound that hardly moves locally, at a curator people that do not grow.
Everybody holds the same bits, which are to be named."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import repeat

import numpy as np
from numpy.random import Generator, default_rng

from local_dp.bounds import common
from local_dp.bounds.channels import parity_interactive_bound
from local_dp.bounds.parity import parity_halving_clients
from local_dp.cube import parity, walsh_hadamard
from local_dp.curator.selection import common as naming
from local_dp.curator.selection.stable import UNIT
from local_dp.experiments.lab.parts import (
    PURE_AND_APPROXIMATE,
    Check,
    Claimed,
    Experiment,
    Figure,
    Finding,
    LogLogFigure,
    Points,
    Rate,
    Row,
    Rows,
    Scale,
    Sheet,
    curve,
    curve_of,
    every,
    holds,
    measured,
    seeded,
    table_of,
    within,
)
from local_dp.loss import exp_epsilon
from local_dp.randomizers.compressed import purified
from local_dp.randomizers.randomizer import NO_COIN
from local_dp.randomizers.signs.binary_rr import BinaryRR

EPSILON, DELTA, SUCCESS = 1.0, 1e-9, 0.9
BITS = (8, 16, 32, 64, 128, 256, 512, 1024)
LARGE = 64  # bits from which on a curator with the delta takes the same number of people
RECORDS = 22
GROWTH = Fraction(27183, 10000)
# trials by the number of bits
HASHED = {"quick": {12: 3000, 16: 700}, "full": {12: 20_000, 16: 5000}}
TRIALS = {"quick": 4000, "full": 20_000}
TABLES = {"quick": 60, "full": 400}
D = 8  # bits of the parity that published examples find
PUBLISHED = (1e-4, 3e-4, 1e-3, 2e-3, 3e-3, 5e-3, 1e-2, 3e-2)
RUN = 3e-3  # the delta at which records are really published


# clients for that parity without a delta: by halving, and at least by any protocol in turn
HALVING = parity_halving_clients(D, EPSILON, 1 - SUCCESS)
IN_TURN = parity_interactive_bound(D, EPSILON, SUCCESS)


class Counts(Row):
    pure: int  # a curator without delta, at least
    approximate: int  # with delta, at least
    local: int  # locally, at least
    local_delta: int  # with delta, at least
    hashing: int  # locally without delta, enough


class Same(Row):
    """L bits that everybody holds: people in closed form."""

    bits: int

    def measure(self, seed: int) -> Counts:
        return Counts(
            common.common_pure_least(self.bits, EPSILON, SUCCESS),
            common.common_approximate_least(self.bits, EPSILON, DELTA, SUCCESS),
            common.common_local_least(self.bits, EPSILON, SUCCESS),
            common.common_local_least(self.bits, EPSILON, SUCCESS, DELTA),
            common.common_hashing_clients(self.bits, EPSILON, SUCCESS),
        )


class Named(Row):
    right: int
    clients: int
    chance: float  # of success, as it is computed: exactly, or at least


class Curator(Row):
    """Releases of the curator's mechanism for records that are all alike."""

    trials: int

    def measure(self, seed: int) -> Named:
        mechanism: naming.CommonRecord[tuple[int, ...], int] = naming.CommonRecord(
            Counter, EPSILON, DELTA, RECORDS
        )
        draws, records = seeded(seed), (7,) * RECORDS
        chance = mechanism.law(records)[7] / UNIT
        right = sum(mechanism.release(records, draws) == 7 for _ in range(self.trials))
        return Named(right, RECORDS, chance)


class Hashing(Row):
    """Runs of the local protocol: one public random parity of each client's bits, by randomized
    response."""

    bits: int
    trials: int

    def measure(self, seed: int) -> Named:
        generator, randomizer = default_rng(seed), BinaryRR(EPSILON)
        clients = common.common_hashing_clients(self.bits, EPSILON, SUCCESS)
        right = 0
        for secret in generator.integers(0, 1 << self.bits, self.trials):
            rows = generator.integers(0, 1 << self.bits, clients)
            words = generator.integers(0, 1 << 32, clients, dtype=np.uint32)
            reports = randomizer.respond(parity(rows & secret), words, NO_COIN)
            sums = np.bincount(rows, weights=1.0 - 2.0 * reports, minlength=1 << self.bits)
            scores = walsh_hadamard(sums)
            right += int(generator.choice(np.flatnonzero(scores == scores.max())) == secret)
        return Named(right, clients, common.common_hashing_success(self.bits, EPSILON, clients))


class Published(Row):
    """Clients who publish their example of a parity with probability delta."""

    delta: float
    trials: int

    def measure(self, seed: int) -> Named:
        generator = default_rng(seed)
        clients = common.published_parity_clients(D, self.delta, SUCCESS)
        counts, right = generator.binomial(clients, self.delta, self.trials), 0
        for count in counts.tolist():
            span = {0}
            for example in generator.integers(0, 1 << D, count).tolist():
                if example not in span:
                    span |= {example ^ each for each in span}
            right += len(span) == 1 << D
        return Named(right, clients, SUCCESS)


class Moved(Row):
    furthest: float  # total variation of two rows of one value, in units of delta
    ratio: float  # the largest of two probabilities of one report, in units of e^(2 eps)


class Clipped(Row):
    """Random approximate channels made pure, in fractions; the worst of them."""

    tables: int

    def measure(self, seed: int) -> Moved:
        generator, furthest, ratio = default_rng(seed), Fraction(0), Fraction(0)
        for rows in map(random_rows, repeat(generator, self.tables)):
            pure, delta = purified.clipped(rows, GROWTH), purified.exact_delta(rows, GROWTH)
            furthest = max(furthest, purified.moved(rows, pure) / delta) if delta else furthest
            ratios = (
                max(column) / min(column) for column in zip(*pure, strict=True) if any(column)
            )
            ratio = max(
                ratio,
                *ratios,
            )
        return Moved(float(furthest), float(ratio / GROWTH**2))


def random_rows(generator: Generator) -> list[list[Fraction]]:
    """A random channel: rows near one law, each with a report of its own that it sends rarely."""
    values, reports = generator.integers(2, 8, 2)
    table = generator.integers(1000, 2200, reports) * np.exp(
        generator.uniform(-0.6, 0.6, (values, reports))
    )
    scales = generator.exponential(generator.choice([1, 30, 300]), values)
    table = np.hstack([table, np.diag(scales)]).astype(np.int64)
    return [[Fraction(int(part), int(row.sum())) for part in row] for row in table]


class WhatDeltaBuys(Experiment):
    name = "what-delta-buys"
    chapter = PURE_AND_APPROXIMATE
    title = "Delta hardly moves the local bound, and frees a curator from the bits"
    claim = (
        "Everybody holds the same bits, and they are to be named. A trusted curator with pure "
        "privacy needs people in proportion to the number of bits. With a delta of one in a "
        "billion 22 people are enough, however many bits there are. Without a curator people grow "
        "with the bits, and the delta hardly moves the proven least. At a delta of one in a "
        "hundred it lets records be published, and that pays."
    )
    source = "limits 12.6; Bun, Nelson, Stemmer 2018; Desfontaines, Voss, Gipson, Mandayam 2022"

    def points(self, scale: Scale) -> Points:
        trials, channels = TRIALS[scale], TABLES[scale]
        hashed = (Hashing(bits, runs) for bits, runs in HASHED[scale].items())
        return [
            *map(Same, BITS),
            Curator(trials),
            *hashed,
            Published(RUN, trials),
            Clipped(channels),
        ]

    def finding(self, sheet: Sheet) -> Finding:
        same: Rows[Same, Counts] = sheet[Same]
        checks = [
            *_check_counts(same),
            *_check_curator(sheet[Curator]),
            measured(
                "The one-bit protocol, run with the people of its formula, names the bits as "
                "often as the formula promises, or more often",
                {
                    f"{p.bits} bits, {m.clients} people": Rate(m.right, p.trials)
                    for p, m in sheet[Hashing]
                },
                SUCCESS,
            ),
            every(
                "Every random approximate channel, clipped, is pure with twice the epsilon "
                "and moved by at most its delta, in exact fractions",
                (
                    (
                        m.furthest <= 1 and m.ratio <= 1,
                        f"{p.tables} channels, the worst {m.furthest:.2f} delta away",
                    )
                    for p, m in sheet[Clipped]
                ),
            ),
            *_check_published(sheet[Published]),
        ]
        tables = [table_of(PEOPLE, PEOPLE_COLUMNS, same)]
        figures = [_figure(same), _published_figure()]
        return Finding(checks, tables, figures, NOTES, headline=_headline(same))


PEOPLE = (
    f"People to name the bits that all share, epsilon {EPSILON:g}, delta {DELTA:g}, {SUCCESS:.0%}"
)
PEOPLE_COLUMNS = (
    "bits | curator, pure: at least = pure | curator, delta: at least = approximate | local, "
    "pure: at least = local | local, delta: at least = local_delta | local, one-bit hashing: "
    "enough = hashing"
)
NOTES = [
    f"Epsilon {EPSILON:g}, delta {DELTA:g}, {SUCCESS:.0%} success. Bounds of the curator hold for "
    "every mechanism, local ones for every protocol in one round or in turn (limits 12.6). The "
    "server of the one-bit protocol tries every string, so it is run with 12 and 16 bits only.",
    "The curator's delta is enumerated over all 1,002 ways in which 22 records may coincide.",
]


def _check_counts(rows: Rows[Same, Counts]) -> Iterator[Check]:
    large = [(p, m) for p, m in rows if p.bits >= LARGE]
    cases = []
    for p, m in large:
        verdict = m.approximate == RECORDS and m.pure >= 0.69 * p.bits
        cases.append((verdict, f"{p.bits} bits: {m.approximate} and {m.pure}"))
    yield every(
        f"From {LARGE} bits on a curator with the delta needs {RECORDS} people, however "
        "many bits, and one without at least .69 for each bit",
        cases,
    )
    shares = {f"{p.bits} bits": m.local_delta / m.local for p, m in large}
    yield within(
        "Locally the delta saves less than 1 % of the people that are needed at the least",
        shares,
        0.99,
        1.0,
        spec=".4f",
    )


def _check_curator(rows: Rows[Curator, Named]) -> Iterator[Check]:
    loss = naming.CommonRecord(Counter, EPSILON, DELTA, RECORDS).loss
    spend = float(naming.spent(naming.naming(loss, RECORDS), exp_epsilon(loss.nano)))
    yield every(
        f"With {RECORDS} records the curator's mechanism spends all of its delta, and no more",
        [(0.999 * DELTA <= spend <= DELTA, f"{spend:.6g}")],
    )
    claims = {
        f"{m.clients} records": Claimed(Rate(m.right, p.trials), m.chance, m.chance)
        for p, m in rows
    }
    promise = all(m.chance >= SUCCESS for _, m in rows)
    yield holds(
        "Its releases name the record that everybody has as often as it says, which is in "
        "90 % or more",
        claims,
        also=promise,
    )


def _check_published(rows: Rows[Published, Named]) -> Iterator[Check]:
    clients = {
        delta: common.published_parity_clients(D, delta, SUCCESS) for delta in (1e-3, 3e-3, 1e-2)
    }
    fewer = clients[1e-3] > HALVING > clients[3e-3] > IN_TURN > clients[1e-2]
    numbers = ", ".join(f"{n:,}" for n in clients.values())
    yield measured(
        f"Published examples find a parity of {D} bits in 90 % of the runs with the "
        "people of the formula, within 1 %",
        {f"delta {p.delta:g}, {m.clients:,} people": Rate(m.right, p.trials) for p, m in rows},
        SUCCESS - 0.01,
        SUCCESS + 0.01,
    )
    yield every(
        "With a delta of .001 that takes more people than halving, the pure protocol; "
        "with .003 fewer; with .01 fewer than any pure protocol in turn",
        [(fewer, f"{numbers}; halving {HALVING:,}; at least {IN_TURN:,.0f}")],
    )


def _headline(rows: Rows[Same, Counts]) -> str:
    p, m = rows[-1]
    curator = f"{m.approximate} people with a delta of {DELTA:g}, and provably {m.pure} without"
    return (
        f"To name {p.bits:,} bits that everybody shares takes a curator {curator}. Locally it "
        f"takes at least {m.local_delta:,} with it and {m.local:,} without."
    )


def _figure(rows: Rows[Same, Counts]) -> Figure:
    curves = [
        curve_of(
            "local: one bit each is enough, without a delta",
            "bits | hashing",
            rows,
            "theory",
            group="local",
        ),
        curve_of(
            "local: at least, with the delta and without",
            "bits | local_delta",
            rows,
            "bound",
            group="local",
        ),
        curve_of("curator, pure: at least", "bits | pure", rows, "bound", group="curator, pure"),
        curve(
            f"curator, delta {DELTA:g}: enough",
            ((p.bits, RECORDS) for p, _ in rows),
            "measured",
            group="curator, delta",
        ),
    ]
    title = "People to name the bits that everybody shares"
    return LogLogFigure("people", title, "bits", "people for 90 % success", curves)


def _published_figure() -> Figure:
    clients = [(delta, common.published_parity_clients(D, delta, SUCCESS)) for delta in PUBLISHED]
    halving, in_turn = ([(delta, n) for delta in PUBLISHED] for n in (HALVING, IN_TURN))
    records = [(delta, delta * n) for delta, n in clients]
    publishing = curve(
        "local: records published with probability delta", clients, "theory", group="published"
    )
    curves = [
        publishing,
        curve("local, pure: halving", halving, "theory", group="halving"),
        curve("local, pure: at least, in turn", in_turn, "bound", group="halving"),
        curve("records that are published as they are", records, "theory", group="people"),
    ]
    title = f"A parity of {D} bits: where a delta pays, it publishes records"
    return LogLogFigure("published", title, "delta", "people", curves, model="interactive")


EXPERIMENT = WhatDeltaBuys()
