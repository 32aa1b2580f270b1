"""Questions whose values are numbers, texts, vectors, sets of items, or strings of heavy hitters,
and their randomizers."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np

from local_dp.domains import Domain, Parameter, Vectors
from local_dp.errors import LocalDPError
from local_dp.queries.query import QUERIES
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.wire import Ask
from tests.support.inputs.questions import ANY_COLUMNS, ANY_PARAMETERS, SHARP

BY_VECTOR = ("random-coordinate", "sampled-signs", "nearest-direction", "privunit", "projunit")
BY_SET = ("padding-sampling", "pckv", "pckv-ue")
BY_SYMBOL = (
    "grr",
    "hadamard",
    "olh",
    "pgr",
    "subset-selection",
    "oue",
    "wide-hashing",
    "binary-rr",
    "memoised-grr",
    "loloha",
    *BY_SET,
)
ENDS = ("a", "a\x00", "a\x00\x00")  # labels that a column of text cannot hold apart
Asked = tuple[str, dict[str, Any]]
OF_ANY: list[Asked] = [*ANY_PARAMETERS.items(), *SHARP.items()]
OF_TEXT: list[Asked] = [
    ("category", {"column": "x", "labels": tuple(f"label {place}" for place in range(40))}),
    (
        "category",
        {"column": "x", "labels": ("a" * 999, "b", "1", "1e+300"), "spare": ("other", "missing")},
    ),
    ("crossed", {"parts": ("x", "y"), "labels": ("a\x1fb\x1fc", "1\x1f2"), "spare": ("none",)}),
    (
        "grouped",
        {"column": "y", "low": 0.0, "high": 1.0, "by": "x", "labels": ("a", "b"), "steps": 64},
    ),
    ("question", {"text": 'x == "' + "a" * 300 + '" or x < "label 2"', "spare": ("missing",)}),
    (
        "question",
        {"text": "lower(x) in ['a', 'label 1'] or lower(x) < lower(y)", "spare": ("missing",)},
    ),
    (
        "question",
        {"text": "x > '2020-06-01' or year(x) == 2020 and month(y) < 6", "spare": ("missing",)},
    ),
]


def vector(generator: np.random.Generator) -> Asked:
    """Coordinates or a direction of descent, from 1 to 15 columns."""
    d = int(generator.choice([1, 2, 3, 8, len(ANY_COLUMNS)]))
    columns, ones, body = ANY_COLUMNS[:d], (1.0,) * d, str(generator.choice(["cube", "ball"]))
    if generator.random() < 0.6:
        return "coordinates", {
            "columns": columns,
            "centres": (0.0,) * d,
            "reaches": ones,
            "kind": body,
            "steps": 1 << int(generator.integers(0, 15)),
        }
    return "descent-vector", {
        "loss": "logistic",
        "columns": columns,
        "label": "y",
        "weights": ones,
        "bound": 1.0,
        "kind": body,
    }


def members(generator: np.random.Generator) -> Asked:
    """A set of some of k items, as a number of k bits; or a label of a list, among them labels that
    end in zero characters."""
    k = int(generator.integers(1, 9))
    if generator.random() < 0.3:
        return "category", {
            "column": "x",
            "labels": ENDS,
            "spare": ("other", "missing")[: int(generator.integers(3))],
        }
    return "prefix", {"column": "x", "bits": k, "length": k}


def string(generator: np.random.Generator) -> Asked:
    """A prefix of a string of heavy hitters: as it is, or hashed."""
    bits = int(generator.choice([8, 9, 31, 32, 33, 48, 64, 255, 256]))
    if generator.random() < 0.4:
        return "prefix", {
            "column": "x",
            "bits": bits,
            "length": int(generator.integers(1, min(bits, 18) + 1)),
        }
    return "hashed-prefix", {
        "column": "x",
        "bits": bits,
        "length": int(generator.integers(1, bits + 1)),
        "width": int(generator.integers(1, 9)),
        "seed": 1,
    }


KINDS: dict[str, Callable[[np.random.Generator], Asked]] = {
    "any": lambda generator: OF_ANY[int(generator.integers(len(OF_ANY)))],
    "texts": lambda generator: OF_TEXT[int(generator.integers(len(OF_TEXT)))],
    "vectors": vector,
    "sets": members,
    "strings": string,
}


@cache
def randomizers_of(domain: Domain) -> tuple[tuple[str, Mapping[str, Parameter]], ...]:
    """Randomizers that take these values, with their parameters beside epsilon."""
    if isinstance(domain, Vectors):
        return _fitting(
            BY_VECTOR, domain, {"d": domain.d, "steps": domain.high, "kind": domain.kind}
        )
    if domain.kind != "symbols":
        return (("one-bit-mean", {"steps": domain.high}),)
    bits = domain.high.bit_length()
    names = BY_SYMBOL if domain.size <= 256 else ("olh", "wide-hashing", "hadamard")
    return tuple(
        each
        for k in (domain.size, bits, bits // 2)
        for each in _fitting(names, domain, {"k": k, "length": bits, "limit": min(2, k)})
    )


def _fitting(
    names: tuple[str, ...], domain: Domain, settings: Mapping[str, Parameter]
) -> tuple[tuple[str, Mapping[str, Parameter]], ...]:
    matches = []
    for name in names:
        own = {
            each.name: settings[each.name]
            for each in fields(RANDOMIZERS[name])
            if each.name in settings
        }
        try:
            if RANDOMIZERS.build(name, {"epsilon": 0.9, **own}).domain == domain:
                matches.append((name, own))
        except LocalDPError:
            continue
    return tuple(matches)


def an_ask(kind: str, generator: np.random.Generator, clients: int) -> Ask:
    """A question of this kind to all clients, by a randomizer of its values; one without any gets
    one that does not fit."""
    name, params = KINDS[kind](generator)
    fitting = randomizers_of(QUERIES.build(name, params).domain) or (("grr", {"k": 2}),)
    of_sets = tuple(each for each in fitting if each[0] in BY_SET)
    fitting = of_sets if of_sets and generator.random() < 0.5 else fitting
    by, own = fitting[int(generator.integers(len(fitting)))]
    return Ask(
        query=name,
        query_params=params,
        randomizer=by,
        randomizer_params={"epsilon": 0.9, **own},
        start=0,
        stop=clients,
        coins=bytes(16),
    )
