"""Questions whose values are vectors, sets of items, or strings of heavy hitters; their
randomizers; and the same with a parameter that is wrong."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np
from pydantic import ValidationError

from local_dp.domains import Domain, Parameter, Vectors
from local_dp.errors import LocalDPError
from local_dp.queries.query import QUERIES
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.wire import Ask
from tests.support.inputs.questions import ANY_COLUMNS

BY_SET = ("padding-sampling", "pckv", "pckv-ue")
SMALL = 256  # symbols: of more, the tables of some randomizers take long to verify
ENDS = ("a", "a\x00", "a\x00\x00")  # labels that a column of text cannot hold apart
Asked = tuple[str, dict[str, Any]]


def vector(generator: np.random.Generator) -> Asked:
    """Coordinates or a direction of descent, from 1 to 15 columns."""
    d = int(generator.choice([1, 2, 3, 8, len(ANY_COLUMNS)]))
    columns, ones = ANY_COLUMNS[:d], (1.0,) * d
    body, steps = str(generator.choice(["cube", "ball"])), 1 << int(generator.integers(0, 15))
    if generator.random() < 0.6:
        return "coordinates", {
            "columns": columns,
            "centres": (0.0,) * d,
            "reaches": ones,
            "kind": body,
            "steps": steps,
        }
    loss = str(generator.choice(["hinge", "logistic", "perceptron"]))
    return "descent-vector", {
        "loss": loss,
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
    sets = "prefix", {"column": "x", "bits": k, "length": k}
    listed = "category", {"column": "x", "labels": tuple(map(str, range(1 << k)))}
    ends = (
        "category",
        {
            "column": "x",
            "labels": ENDS,
            "spare": ("other", "missing")[: int(generator.integers(3))],
        },
    )
    crossed = (
        "crossed",
        {
            "parts": ("x", "y"),
            "labels": ("a\x1fa\x00\x1fa\x00\x00", "1\x1f2\x1f3"),
            "spare": ("none",),
        },
    )
    return (sets, sets, listed, ends, crossed)[int(generator.integers(5))]


def string(generator: np.random.Generator) -> Asked:
    """A prefix of a string of heavy hitters: as it is, hashed, or by its place among those that are
    kept."""
    bits = int(generator.choice([8, 9, 31, 32, 33, 48, 64, 255, 256]))
    length, width = int(generator.integers(1, min(bits, 18) + 1)), int(generator.integers(1, 9))
    if generator.random() < 0.3:
        return "prefix", {"column": "x", "bits": bits, "length": length}
    if generator.random() < 0.5:
        return "hashed-prefix", {
            "column": "x",
            "bits": bits,
            "length": int(generator.integers(1, bits + 1)),
            "width": width,
            "seed": 1,
        }
    step = int(generator.integers(0, min(length, width)))
    kept = tuple(f"{each:x}" for each in range(min(1 << length - step, (1 << width - step) - 1)))
    return "kept-prefix", {
        "column": "x",
        "bits": bits,
        "length": length,
        "step": step,
        "width": width,
        "kept": kept or ("0",),
    }


KINDS: dict[str, Callable[[np.random.Generator], Asked]] = {
    "vectors": vector,
    "sets": members,
    "strings": string,
}

ODD: tuple[Any, ...] = (
    0, 1, -1, 2, 3, 7, 22, 23, 255, 256, 257, 1023, 1025, 4095, 4096, 4097, 1 << 20, (1 << 62) - 1,
    0.5, -0.0, 1e-300, 1e300, "", "x", "zzz", "\x00", "ball",
    "a" * 1000, "a" * 1001, "a" * 60_000, "é€😀" * 300, (), ("x",), ("zzz",), ("x", "x"),
    ANY_COLUMNS, ENDS, tuple(map(str, range(4097))), ("a" * 1000, "b"),
    ("0", "-1"), ("f" * 64,), (0.0,), (1e300,) * 15, (-1e300, 1e300), (5e-324,) * 2,
)  # fmt: skip


def wrong(params: Mapping[str, Any], generator: np.random.Generator) -> dict[str, Any]:
    """The parameters with one of them odd, left out, or unknown."""
    changed, name = dict(params), str(generator.choice([*params]))
    if generator.random() < 0.8:
        changed[name] = ODD[int(generator.integers(len(ODD)))]
    elif generator.random() < 0.5:
        del changed[name]
    else:
        changed["more"] = ODD[int(generator.integers(len(ODD)))]
    return changed


@cache
def randomizers_of(domain: Domain) -> tuple[tuple[str, tuple[tuple[str, Parameter], ...]], ...]:
    """Every randomizer that takes these values, with its parameters beside epsilon."""
    if isinstance(domain, Vectors):
        chosen: dict[str, Parameter] = {"d": domain.d, "steps": domain.high, "kind": domain.kind}
        return tuple(
            (name, _own(name, chosen))
            for name in RANDOMIZERS.built_in
            if _takes(name, _own(name, chosen), domain)
        )
    bits = domain.high.bit_length()
    found = []
    for name in (
        RANDOMIZERS.built_in if domain.size <= SMALL else ("olh", "wide-hashing", "hadamard")
    ):
        for k in (domain.size, bits, bits // 2):
            own = _own(name, {"k": k, "length": bits, "limit": min(2, k)})
            if _takes(name, own, domain):
                found.append((name, own))
                break
    return tuple(found)


def _own(name: str, chosen: Mapping[str, Parameter]) -> tuple[tuple[str, Parameter], ...]:
    taken = {each.name for each in fields(RANDOMIZERS[name])}
    return tuple((key, value) for key, value in chosen.items() if key in taken)


def _takes(name: str, own: tuple[tuple[str, Parameter], ...], domain: Domain) -> bool:
    try:
        return bool(RANDOMIZERS.build(name, {"epsilon": 0.9, **dict(own)}).domain == domain)
    except LocalDPError:
        return False


def an_ask(kind: str, generator: np.random.Generator, clients: int) -> Ask | None:
    """A question of this kind to all clients, by a randomizer of its values; four in ten have a
    wrong parameter. None where that cannot be sent."""
    name, params = KINDS[kind](generator)
    fitting = randomizers_of(QUERIES.build(name, params).domain)
    of_sets = tuple(each for each in fitting if each[0] in BY_SET)
    fitting = of_sets if kind == "sets" and of_sets and generator.random() < 0.5 else fitting
    by, own = fitting[int(generator.integers(len(fitting)))] if fitting else ("grr", (("k", 2),))
    settings: dict[str, Any] = {"epsilon": 0.9, **dict(own)}
    if generator.random() < 0.4:
        if generator.random() < 0.8:
            params = wrong(params, generator)
            settings = {**settings, **_again(name, params, by, settings)}
        else:
            settings = wrong(settings, generator)
    try:
        return Ask(
            query=name,
            query_params=params,
            randomizer=by,
            randomizer_params=settings,
            start=0,
            stop=clients,
            coins=bytes(16),
        )
    except ValidationError:
        return None


def _again(
    name: str, params: Mapping[str, Any], by: str, settings: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The settings of the same randomizer for the changed question, where it is a question and the
    randomizer takes its values."""
    try:
        domain = QUERIES.build(name, params).domain
    except LocalDPError:
        return settings
    return next((dict(own) for each, own in randomizers_of(domain) if each == by), settings)
