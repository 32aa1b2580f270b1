"""Frequency oracles of `local-dp bench`: reports a second of clients and of servers, each beside bare numpy on the same words or bytes."""

from collections.abc import Callable
from functools import partial

import numpy as np

from experiments.cli.screen import SCREEN
from experiments.cli.speeds import Speed, best_of
from local_dp.arrays import Words
from local_dp.noise import Draw, KeyedNoise, philox_words, public_coins, stream_key
from local_dp.oracles.local.asked import CHUNK, cells_of
from local_dp.randomizers.base import Randomizer
from local_dp.randomizers.frequencies.local_hashing import OLH
from local_dp.randomizers.frequencies.projective import PGR
from local_dp.randomizers.frequencies.unary import OUE

REPEATS = 32  # batches timed at once
MILLION = 1e6


def frequency_speeds() -> list[Speed]:
    """Of each oracle both ends, at epsilon 1."""
    asked: list[tuple[Randomizer, float, float]] = [
        (OUE(1.0, k=128), 8, 100),
        (OUE(1.0, k=1024), 1, 15),
        (OLH(1.0, k=128), 60, 500),
        (OLH(1.0, k=1024), 60, 500),
        (PGR(1.0, k=1024), 10, 100),
    ]
    return [speed for randomizer, client, server in asked for speed in _both_ends(randomizer, client, server)]


def _both_ends(randomizer: Randomizer, client: float, server: float) -> list[Speed]:
    what = f"{randomizer.name}, k = {randomizer.domain.size}"
    SCREEN.working(f"measuring {what}")
    batch, words = max(1, CHUNK // randomizer.words), randomizer.words
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
    batch = max(1, CHUNK // randomizer.words)
    values = (np.arange(batch) % randomizer.domain.size).astype(np.uint32)
    reports, cells = _reports(randomizer), cells_of(randomizer, stream_key("bench coins", 0), 0, CHUNK)
    return (partial(_answers, randomizer, values, 0), batch), (partial(randomizer.tally, reports, cells), CHUNK)


def _reports(randomizer: Randomizer) -> Words:
    """A chunk of reports."""
    batch = max(1, CHUNK // randomizer.words)
    values = (np.arange(batch) % randomizer.domain.size).astype(np.uint32)
    return np.concatenate([_answers(randomizer, values, start) for start in range(0, CHUNK, batch)])


def _answers(randomizer: Randomizer, values: Words, start: int) -> Words:
    stop, noise = start + len(values), KeyedNoise(0)
    coins = public_coins(stream_key("bench coins", 0), start, stop) if randomizer.uses_coins else np.zeros(1, dtype=np.uint64)
    return randomizer.respond(values, randomizer.draw(noise, Draw(1), start, stop), randomizer.cells_of(coins))


def _speed(work: Callable[[], object], reports: int) -> float:
    def repeated() -> None:
        for _ in range(REPEATS):
            work()

    return REPEATS * reports / best_of(repeated) / MILLION
