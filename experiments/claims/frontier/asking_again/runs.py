"""What the experiment `asking-again` measures: protocols written out, the best channels of one person, and tests of two laws."""

import math
from typing import Any

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.channels import best_channel, best_two_laws, easiest_laws, two_laws_clients
from local_dp.bounds.parity import parity_halving_clients
from local_dp.bounds.response import response_gain
from local_dp.cube import character
from local_dp.experiments.lab.claim import Measurement, Point
from local_dp.experiments.lab.minimal_clients import exact_recovery
from local_dp.hardness.transcripts import WorstProtocols, cut_distances, cut_inputs, random_protocol, transcript_laws
from local_dp.noise import stream_key
from local_dp.protocols.parity.parity import ParityHalving

EPSILON, SUCCESS, VARIATION = 1.0, 0.9, 0.1


def protocols(point: Point, generator: np.random.Generator) -> Measurement:
    """h^2 of everybody over the sum of those of each client alone, for protocols that were drawn."""
    inputs = cut_inputs(point["clients"])
    drawn = (random_protocol(point["clients"], point["turns"], generator) for _ in range(point["count"]))
    distances = [cut_distances(transcript_laws(protocol, inputs)) for protocol in drawn]
    return {"ratios": [whole / parts for whole, parts in distances if parts > 0], "broken": sum(whole > 0 == parts for whole, parts in distances)}


def worst(point: Point) -> Measurement:
    """The two numbers for the worst protocol that a search finds, and how many transcripts it has."""
    found, _ = WorstProtocols(point["clients"], point["turns"], point["steps"], point["reach"]).find()
    laws = transcript_laws(found, cut_inputs(point["clients"]))
    whole, parts = cut_distances(laws)
    return {"whole": whole, "parts": parts, "transcripts": laws.shape[1]}


def curator(point: Point) -> Measurement:
    """The same two numbers for a curator who sees all bits and answers their AND by randomized response: epsilon-private, but nothing factors."""
    bits = cut_inputs(point["clients"]).all(axis=1)
    true = 1 / (1 + math.exp(-EPSILON))
    ones = np.where(bits, true, 1 - true)
    whole, parts = cut_distances(np.stack([1 - ones, ones], axis=1))
    return {"whole": whole, "parts": parts}


def person(point: Point) -> Measurement:
    """The mean over parities of the h^2 that one report puts between one parity and random labels: of the best of all channels, and of randomized parities."""
    d, epsilon = point["d"], point["epsilon"]
    best = best_channel(epsilon, 2 << d, lambda columns: parity_distances(columns, d)).value
    shrink = 1 / response_gain(epsilon)
    masks = sum(shrink_distance(sign * shrink) for sign in (1, -1)) / 2 / 2**d
    return {"best": best, "masks": masks}


def shrink_distance(change: float) -> float:
    """1 + t/2 - sqrt(1 + t), what a report adds to h^2 per probability if its own changes by the factor 1 + t."""
    return change**2 / (2 * (1 + math.sqrt(1 + change)) ** 2)


def parity_distances(columns: Floats, d: int) -> Floats:
    """The mean over r of a report's (sqrt M_r - sqrt M)^2 / 2; the first 2^d symbols bear the label +1, the others -1."""
    plus, minus = np.split(columns, 2, axis=-1)
    signs = np.array([character(r, np.arange(1 << d, dtype=np.uint64)) for r in range(1 << d)])
    labels = ((plus - minus) / 2) @ signs.T / 2**d
    random = ((plus + minus) / 2).mean(axis=-1, keepdims=True)
    found: Floats = ((np.sqrt(random + labels) - np.sqrt(random)) ** 2).mean(axis=-1) / 2
    return found


def laws(point: Point, generator: np.random.Generator) -> Measurement:
    """How often the likelier law is the right one: with two answers, and with those of the best report, each with the clients that it should take."""
    epsilon, trials = point["epsilon"], point["trials"]
    shrunk, best = VARIATION / response_gain(epsilon), best_two_laws(epsilon, VARIATION)
    two = np.array([[1 + shrunk, 1 - shrunk], [1 - shrunk, 1 + shrunk]]) / 2
    carried = best.value / (1 - math.sqrt(1 - shrunk**2))
    clients = two_laws_clients(epsilon, VARIATION, 1 - SUCCESS)
    fewer = math.ceil(clients / carried)
    told = np.array([best.columns @ law for law in easiest_laws(VARIATION)])
    found = {"two": told_apart(two, clients, trials, generator), "best": told_apart(told, fewer, trials, generator)}
    return {"carried": carried, "clients": clients, "fewer": fewer, "reports": len(best.columns), **found}


def told_apart(reports: Floats, clients: int, trials: int, generator: np.random.Generator) -> float:
    """The share of trials, half of them under either law of a report, in which the reports are likelier under the right one; a tie counts one half."""
    scores = np.log(reports[0] / reports[1])
    sums = [sign * (generator.multinomial(clients, law / law.sum(), size=trials // 2) @ scores) for law, sign in zip(reports, (1, -1), strict=True)]
    return float(np.mean([(np.abs(total) < 1e-9) / 2 + (total >= 1e-9) for total in sums]))


def parity(point: Point, seed: int) -> Measurement:
    """How often halving, which asks in turn, finds the parity with the number of clients that its formula gives."""
    clients = parity_halving_clients(point["d"], EPSILON, 1 - SUCCESS)
    own_seed = int.from_bytes(stream_key("asking again", seed, point["d"])[:8], "little")
    return {"clients": clients, "successes": exact_recovery(ParityHalving(d=point["d"]), EPSILON, own_seed)(clients, point["trials"])}


def measure(point: Point, seed: int) -> Measurement:
    """One part of the experiment."""
    parts: dict[str, Any] = {
        "protocols": lambda: protocols(point, np.random.default_rng(seed)),
        "worst": lambda: worst(point),
        "curator": lambda: curator(point),
        "person": lambda: person(point),
        "laws": lambda: laws(point, np.random.default_rng(seed)),
        "parity": lambda: parity(point, seed),
    }
    measured: Measurement = parts[point["part"]]()
    return measured
