"""Randomizers of `local-dp bench`: reports of clients and of servers beside bare numpy on as many words or bytes, and tallies from their law."""

import os
from collections.abc import Callable
from functools import partial
from typing import cast

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.experiments.bench.speeds import Case, Speed, best_of, once
from local_dp.experiments.text.screen import SCREEN
from local_dp.noise import Draw, KeyedNoise, philox_words, stream_key
from local_dp.oracles.local.asked import CHUNK, cells_of, fitting
from local_dp.oracles.local.oracles import keep_memory
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.verification.audit import audit
from local_dp.verification.black_box import NUMBERS

REPEATS = 32  # batches timed at once
SINGLE = 4096  # reports made one by one
VECTORS, DIMENSION = 1 << 16, 100
MANY = 10**12  # clients of a drawn tally
ENDS = (  # name, k, the least ratio of clients and of servers to bare numpy: two thirds of the measured ones
    ("binary-rr", 2, 1.6, 36.0),
    ("grr", 1024, 1.05, 0.9),
    ("hadamard", 1024, 0.25, 1.1),
    ("oue", 128, 1.6, 0.22),
    ("oue", 1024, 1.6, 0.095),
    ("olh", 128, 0.11, 0.9),
    ("olh", 1024, 0.12, 0.74),
    ("subset-selection", 128, 0.056, 0.73),
    ("pgr", 1024, 0.14, 0.9),
    ("discrete-laplace", 0, 0.35, 0.89),
)
DRAWN = (("binary-rr", 2, 6.3), ("grr", 1024, 0.01), ("oue", 128, 0.14), ("hadamard", 128, 1.9), ("subset-selection", 128, 0.45), ("olh", 128, 0.44))
BALLS = (("privunit", 0.72, 7.1), ("nearest-direction", 1.27, 1.25))  # the least ratios of clients and of servers to inner products with normal vectors


def randomizer_speeds() -> list[Speed]:
    """Clients and servers of each randomizer at epsilon 1; clients are simulated as in the population tier, or answer alone."""
    keep_memory()
    cases = [case for name, k, *asked in ENDS for case in _both_ends(_built(name, k), *asked)]
    cases += [
        *_single(),
        *(case for name, *asked in BALLS for case in _of_vectors(name, *asked)),
        *(_drawn(cast(FiniteChannel, _built(name, k)), most) for name, k, most in DRAWN),
    ]
    return [*(case.measured() for case in cases), _slowest_audit()]


def _built(name: str, k: int) -> Randomizer:
    return RANDOMIZERS.build(name, {"epsilon": 1.0, "k": k} if k > 2 else {"epsilon": 1.0})


def _both_ends(randomizer: Randomizer, client: float, server: float) -> list[Case]:
    what, batch = f"{randomizer.name}, k = {randomizer.domain.size}", fitting(randomizer)
    (answer, _), (tally, _) = end_work(randomizer)
    first = _reports(randomizer).reshape(CHUNK, -1)[:, 0]

    def words() -> object:
        return philox_words(stream_key("bench", 0), 0, batch * randomizer.words, randomizer.width) < 1 << 20

    return [
        Case(f"{what}: clients", _repeated(answer), _repeated(words), client, REPEATS * batch),
        Case(f"{what}: server", _repeated(tally), _repeated(lambda: np.bincount(first)), server, REPEATS * CHUNK),
    ]


def end_work(randomizer: Randomizer) -> tuple[tuple[Callable[[], object], int], tuple[Callable[[], object], int]]:
    """The work of a batch of clients, and of a server that adds up a chunk; each with its number of reports."""
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
    return randomizer.simulated(KeyedNoise(0), Draw(1), start, values, cells)


def _repeated(work: Callable[[], object], times: int = REPEATS) -> Callable[[], object]:
    def repeated() -> None:
        for _ in range(times):
            work()

    return repeated


def _single() -> list[Case]:
    """One report at a time, with the system's entropy and with keyed noise, beside one read of the system's entropy."""
    randomizer, keyed = BinaryRR(1.0), KeyedNoise(0)
    one, no_coin = np.ones(1, dtype=np.uint8), np.zeros(1, dtype=np.uint8)
    bare = _repeated(lambda: os.urandom(4), SINGLE)
    ways: list[tuple[str, Callable[[], object], float]] = [
        ("private", lambda: randomizer.private_report(1), 0.097),
        ("keyed", lambda: randomizer.respond(one, randomizer.draw(keyed, Draw(1), 0, 1), no_coin), 0.044),
    ]
    return [Case(f"binary-rr: one {way} report", _repeated(report, SINGLE), bare, asked, SINGLE) for way, report, asked in ways]


def _of_vectors(name: str, client: float, server: float) -> list[Case]:
    """Vectors of the ball, beside inner products with as many normal vectors."""
    randomizer = RANDOMIZERS.build(name, {"epsilon": 1.0, "d": DIMENSION})
    rows = np.resize(randomizer.domain.some(64), (VECTORS, DIMENSION))
    words, cells = randomizer.draw(KeyedNoise(0), Draw(1), 0, VECTORS), cells_of(randomizer, stream_key("bench coins", 0), 0, VECTORS)
    reports = randomizer.respond(rows, words, cells)

    def products() -> object:
        return (np.random.default_rng(0).standard_normal(rows.shape) * rows).sum(axis=1)

    return [
        Case(f"{name}, d = {DIMENSION}: clients", partial(randomizer.respond, rows, words, cells), products, client, VECTORS),
        Case(f"{name}, d = {DIMENSION}: server", partial(randomizer.tally, reports, cells), products, server, VECTORS),
    ]


def _drawn(randomizer: FiniteChannel, most: float) -> Case:
    """A tally of 10^12 clients from its law, beside as many multinomial draws by numpy alone."""
    values = randomizer.domain.values().tolist()
    counts = dict.fromkeys(values, MANY // len(values))
    cells, generator = randomizer.empty().counts.size, np.random.default_rng(0)

    def multinomial() -> object:
        return generator.multinomial(MANY // len(values), np.full(cells, 1 / cells), len(values))

    return Case(f"{randomizer.name}, k = {len(values)}: tally of 10^12", partial(randomizer.draw_tally, counts, generator), multinomial, most)


def _slowest_audit() -> Speed:
    """The slowest audit of a built-in at epsilon 1, beside drawing the words of the reports of a black box."""
    SCREEN.working("auditing every built-in")
    made = [RANDOMIZERS[name](1.0) for name in RANDOMIZERS.built_in]
    seconds, slowest = max((once(partial(audit, randomizer)), randomizer.name) for randomizer in made)
    bare = best_of(lambda: philox_words(stream_key("bench", 0), 0, NUMBERS, 64))
    return Speed(f"audit, the slowest of {len(made)} built-ins: {slowest}", seconds, "s", bare, 35.0)
