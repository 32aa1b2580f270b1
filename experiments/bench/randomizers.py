"""Randomizers of `local-dp bench`: reports a second of clients and of servers, each beside bare numpy on as many words or bytes."""

import os
from collections.abc import Callable
from functools import partial

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.experiments.bench.speeds import Speed, best_of, once
from local_dp.experiments.text.screen import SCREEN
from local_dp.noise import Draw, KeyedNoise, philox_words, stream_key
from local_dp.oracles.local.asked import CHUNK, cells_of, fitting
from local_dp.oracles.local.population import keep_memory
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.frequencies.local_hashing import OLH
from local_dp.randomizers.frequencies.projective import PGR
from local_dp.randomizers.frequencies.subset_selection import SubsetSelection
from local_dp.randomizers.frequencies.unary import OUE
from local_dp.randomizers.numbers.noise import DiscreteLaplace
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.randomizers.simulated import answers
from local_dp.randomizers.vectors.nearest_direction import NearestDirection
from local_dp.randomizers.vectors.privunit import PrivUnit
from local_dp.verification.audit import audit
from local_dp.verification.black_box import NUMBERS

REPEATS = 32  # batches timed at once
SINGLE = 4096  # reports made one by one
VECTORS = 1 << 16
DIMENSION = 100
MILLION = 1e6
ONE = np.ones(1, dtype=np.uint8)
NO_COIN = np.zeros(1, dtype=np.uint8)


def randomizer_speeds() -> list[Speed]:
    """Both ends of each at epsilon 1; clients are simulated as in the population tier, or answer alone."""
    keep_memory()
    asked: list[tuple[Randomizer, float, float]] = [
        (BinaryRR(1.0), 800, 600),
        (GRR(1.0, k=1024), 200, 800),
        (Hadamard(1.0, k=1024), 150, 500),
        (OUE(1.0, k=128), 8, 100),
        (OUE(1.0, k=1024), 1, 15),
        (OLH(1.0, k=128), 60, 500),
        (OLH(1.0, k=1024), 60, 500),
        (SubsetSelection(1.0, k=128), 4, 100),
        (PGR(1.0, k=1024), 10, 100),
        (DiscreteLaplace(1.0), 100, 100),
    ]
    ends = [speed for randomizer, client, server in asked for speed in _both_ends(randomizer, client, server)]
    return [*ends, *_single(), *_of_vectors(), _slowest_audit()]


def _both_ends(randomizer: Randomizer, client: float, server: float) -> list[Speed]:
    what = f"{randomizer.name}, k = {randomizer.domain.size}"
    SCREEN.working(f"measuring {what}")
    batch, words = fitting(randomizer), randomizer.words
    sent, added = (_speed(*each) for each in end_work(randomizer))
    bare = _speed(lambda: philox_words(stream_key("bench", 0), 0, batch * words, randomizer.width) < 1 << 20, batch)
    first = _reports(randomizer).reshape(CHUNK, -1)[:, 0]
    read = _speed(lambda: np.bincount(first), CHUNK)
    return [
        Speed(f"{what}: clients", sent, "million reports/s", bare, client, sent >= client),
        Speed(f"{what}: server", added, "million reports/s", read, server, added >= server),
    ]


def end_work(randomizer: Randomizer) -> tuple[tuple[Callable[[], object], int], tuple[Callable[[], object], int]]:
    """What a batch of clients does, who draw their words and answer, and a server that adds up a chunk; each with the number of its reports."""
    batch = fitting(randomizer)
    reports, cells = _reports(randomizer), cells_of(randomizer, stream_key("bench coins", 0), 0, CHUNK)
    return (partial(_answers, randomizer, _values(randomizer, batch), 0), batch), (partial(randomizer.tally, reports, cells), CHUNK)


def _values(randomizer: Randomizer, count: int) -> Ints:
    values: Ints = randomizer.domain.low + np.arange(count, dtype=np.int32) % randomizer.domain.size
    return values.astype(np.uint8) if randomizer.domain.size == 2 else values


def _reports(randomizer: Randomizer) -> Words:
    """A chunk of reports."""
    batch = fitting(randomizer)
    return np.concatenate([_answers(randomizer, _values(randomizer, batch), start) for start in range(0, CHUNK, batch)])[:CHUNK]


def _answers(randomizer: Randomizer, values: Ints, start: int) -> Words:
    cells = cells_of(randomizer, stream_key("bench coins", 0), start, start + len(values))
    return answers(randomizer, KeyedNoise(0), Draw(1), start, values, cells)


def _speed(work: Callable[[], object], reports: int) -> float:
    def repeated() -> None:
        for _ in range(REPEATS):
            work()

    return REPEATS * reports / best_of(repeated) / MILLION


def _single() -> list[Speed]:
    """One report at a time: with the entropy of the system, with its value checked too, and with keyed noise; beside one look at the system's entropy."""
    randomizer, keyed = BinaryRR(1.0), KeyedNoise(0)

    def alone(report: Callable[[], object]) -> float:
        return SINGLE / best_of(lambda: [report() for _ in range(SINGLE)]) / 1e3

    SCREEN.working("measuring one report at a time")
    bare = alone(lambda: os.urandom(4))
    ways: list[tuple[str, Callable[[], object], float]] = [
        ("private", lambda: randomizer.private_report(1), 300),
        ("keyed", lambda: randomizer.respond(ONE, randomizer.draw(keyed, Draw(1), 0, 1), NO_COIN), 100),
    ]
    rates = [(way, alone(report), asked) for way, report, asked in ways]
    return [Speed(f"binary-rr: one {way} report", rate, "thousand reports/s", bare, asked, rate >= asked) for way, rate, asked in rates]


def _of_vectors() -> list[Speed]:
    """Reports of vectors a second, clients and server; the reference computes one inner product of as many normal vectors."""
    noise, speeds = KeyedNoise(0), []
    for randomizer in (PrivUnit(1.0, d=DIMENSION), NearestDirection(1.0, d=DIMENSION)):
        SCREEN.working(f"measuring {randomizer.name}, d = {DIMENSION}")
        rows = np.resize(randomizer.domain.some(64), (VECTORS, DIMENSION))
        words, cells = randomizer.draw(noise, Draw(1), 0, VECTORS), cells_of(randomizer, stream_key("bench coins", 0), 0, VECTORS)
        reports = randomizer.respond(rows, words, cells)
        reference = VECTORS / best_of(partial(_inner_products, rows)) / MILLION
        sides: list[tuple[str, Callable[[], object]]] = [
            ("clients", partial(randomizer.respond, rows, words, cells)),
            ("server", partial(randomizer.tally, reports, cells)),
        ]
        for side, work in sides:
            value = VECTORS / best_of(work) / MILLION
            speeds.append(Speed(f"{randomizer.name}, d = {DIMENSION}, {side}", value, "million reports/s", reference, 0.4, value >= 0.4))
    return speeds


def _slowest_audit() -> Speed:
    """Seconds that `local-dp audit` computes for the slowest built-in at epsilon 1; the reference draws as many words as a black box's reports may."""
    SCREEN.working("auditing every built-in")
    made = [RANDOMIZERS[name](1.0) for name in RANDOMIZERS.built_in]
    seconds, slowest = max((once(partial(audit, randomizer)), randomizer.name) for randomizer in made)
    bare = best_of(lambda: philox_words(stream_key("bench", 0), 0, NUMBERS, 64))
    return Speed(f"audit, the slowest of {len(made)} built-ins: {slowest}", seconds, "s", bare, 5.0, seconds <= 5.0)


def _inner_products(rows: Ints) -> None:
    (np.random.default_rng(0).standard_normal(rows.shape) * rows).sum(axis=1)
