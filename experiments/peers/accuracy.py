"""How far off the oracles of ours and of the peers are, a client: n E||f^ - f||^2 measured, beside the closed form of ours."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from local_dp.bounds.frequencies import oue_variance, sue_variance
from local_dp.bounds.response import response_gain
from local_dp.experiments.peers.oracles import Task, peers
from local_dp.loss import exp_epsilon, nano_epsilon
from local_dp.noise import Draw, KeyedNoise, public_coins, stream_key
from local_dp.randomizers.frequencies.local_hashing import best_hash
from local_dp.randomizers.frequencies.subset_selection import best_blocks, total_variance
from local_dp.randomizers.registry import RANDOMIZERS

EPSILON, K = 1.0, 16
SURVEYS, CLIENTS = 2000, 1000  # of ours: the squared error of so many surveys of so many clients
REPORTS = 40_000  # of a peer's clients: the variance of what each report says
PAIRS = {"grr": "grr", "sue": "sue", "oue": "oue", "olh": "olh", "subset-selection": "subset-selection", "hadamard": "hadamard-response"}


@dataclass(frozen=True)
class Variance:
    """n E||f^ - f||^2 at the uniform law of K symbols: the closed form of ours, what was measured of ours, and of each library's channel."""

    oracle: str
    closed: float
    ours: float
    theirs: dict[str, float]


def variances() -> list[Variance]:
    """Of each oracle, at epsilon 1 and 16 symbols; the chi-square of 15 degrees leaves ours an error of .8 % (a standard deviation)."""
    values = np.random.default_rng(3).integers(0, K, REPORTS)
    found = []
    for ours, theirs in PAIRS.items():
        reports = {peer.library: peer.singles(peer.respond(values)) for peer in peers(Task(theirs, EPSILON, K))}
        measured = {library: float(singles.var(axis=0).sum()) for library, singles in reports.items()}
        found.append(Variance(ours, closed_form(ours), _of_ours(RANDOMIZERS.build(ours, {"epsilon": EPSILON, "k": K})), measured))
    return found


def closed_form(oracle: str) -> float:
    """n times the sum of the variances of all shares at the uniform law (limits 2)."""
    nano, growth = nano_epsilon(EPSILON), Fraction(float(exp_epsilon(nano_epsilon(EPSILON))))
    unary = {"sue": sue_variance, "oue": oue_variance}
    if oracle in unary:
        return K * unary[oracle](EPSILON, 1 / K)
    if oracle == "hadamard":
        return K * (response_gain(EPSILON) ** 2 - 1 / K**2)
    if oracle == "olh":
        order, w = best_hash(nano, K).points, best_hash(nano, K).points // best_hash(nano, K).g
    else:
        order, w = (K, 1) if oracle == "grr" else best_blocks(nano, K)
    return float(total_variance(growth, order, w, K))


def _of_ours(randomizer: Any) -> float:
    """The squared error of whole surveys, averaged, times the clients of one."""
    total, n = 0.0, SURVEYS * CLIENTS
    values = np.random.default_rng(4).integers(0, K, n)
    coins = randomizer.cells_of(public_coins(stream_key("coins", 9, 1), 0, n)) if randomizer.uses_coins else np.zeros(n, dtype=np.uint8)
    for start in range(0, n, CLIENTS):
        stop = start + CLIENTS
        reports = randomizer.respond(values[start:stop], randomizer.draw(KeyedNoise(9), Draw(1), start, stop), coins[start:stop])
        total += math.fsum((randomizer.estimate(randomizer.tally(reports, coins[start:stop])).value - 1 / K) ** 2)
    return CLIENTS * total / SURVEYS
