"""Weights of the randomizers that a poll needs, in whole numbers, and reports at the edges of the
words."""

from decimal import Decimal, localcontext
from itertools import product
from typing import Any

import numpy as np

from local_dp.loss import NANO, nano_epsilon
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.signed import SignedBlocks
from local_dp.randomizers.frequencies.subset_selection import SubsetSelection
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.binary_rr import BinaryRR
from tests.support.vectors.files import Case, File, plain, unplain

EPSILONS = (0.001, 0.01, 0.1, 0.25, 0.5, 0.6931471805599453, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
SIZES: dict[str, list[dict[str, int]]] = {
    "binary-rr": [{}],
    "one-bit-mean": [{"steps": 1}, {"steps": 100}, {"steps": 1 << 16}],
    "grr": [{"k": k} for k in (2, 3, 7, 100)],
    "subset-selection": [{"k": k} for k in (3, 6, 9, 16, 40)],
    "signed-blocks": [{"k": 5, "size": 4}],
}
NARROW: list[tuple[str, dict[str, int]]] = [  # few enough words to enumerate
    ("binary-rr", {"word_bits": 8}),
    ("one-bit-mean", {"word_bits": 12, "steps": 4}),
    ("grr", {"word_bits": 10, "k": 3}),
    ("subset-selection", {"word_bits": 12, "k": 5}),
]
COINS = (0, 0x9E3779B97F4A7C15)


def cases() -> dict[str, Case]:
    wide = (
        (name, epsilon, size) for name in SIZES for epsilon, size in product(EPSILONS, SIZES[name])
    )
    narrow = ((name, epsilon, size) for (name, size), epsilon in product(NARROW, (0.5, 1.0)))
    return dict(
        _case(name, {"epsilon": epsilon, **size}) for name, epsilon, size in (*wide, *narrow)
    )


def _case(name: str, params: dict[str, Any]) -> tuple[str, Case]:
    randomizer = RANDOMIZERS.build(name, params)
    assert isinstance(randomizer, FiniteChannel)
    return (
        ", ".join((name, *(f"{key} {value}" for key, value in params.items()))),
        {
            "randomizer": name,
            "params": plain(randomizer.params()),  # as a server sends them: with the width of words
            "values": _values(randomizer),
            "coins": list(map(str, COINS[: 2 if randomizer.uses_coins else 1])),
            "words": list(map(str, _words(randomizer))),
        },
    )


def _coded(randomizer: SignedBlocks) -> GRR:
    """The randomizer of its codes."""
    return GRR(randomizer.epsilon, k=randomizer.alphabet, word_bits=randomizer.word_bits)


def _values(randomizer: FiniteChannel) -> list[int]:
    low, high = randomizer.domain.low, randomizer.domain.high
    return sorted({low, (low + high) // 2, high})


def _words(randomizer: FiniteChannel) -> list[int]:
    """The first and the last word, and both sides of the ends of some steps."""
    match randomizer:
        case BinaryRR():
            ends = [randomizer.flip]
        case OneBitMean():
            ends = [randomizer.base, randomizer.base + randomizer.slope * randomizer.domain.high]
        case GRR():
            ends = [randomizer.other, (randomizer.k - 1) * randomizer.other]
        case SignedBlocks():
            return _words(_coded(randomizer))
        case SubsetSelection():
            inner = randomizer.inner
            ends = [inner.held, inner.w * inner.held, randomizer.total - inner.other - 1]
        case _:
            raise AssertionError(randomizer)
    return sorted({0, randomizer.total - 1, *(word for end in ends for word in (end - 1, end))})


def expected(given: Case) -> Case:
    randomizer = RANDOMIZERS.build(given["randomizer"], unplain(given["params"]))
    assert isinstance(randomizer, FiniteChannel)
    draws = list(product(given["values"], map(int, given["coins"]), map(int, given["words"])))
    held, coins, words = (
        np.array(column, dtype=kind)
        for column, kind in zip(
            zip(*draws, strict=True), ("i8", "u8", f"<u{randomizer.width // 8}"), strict=True
        )
    )
    reports = randomizer.respond(held, words, randomizer.cells_of(coins))
    return {
        "nano": randomizer.nano,
        "exp": _exp(nano_epsilon(randomizer.epsilon)),
        "width": randomizer.report_dtype.itemsize,
        "total": str(randomizer.total),
        "weights": {name: str(weight) for name, weight in _weights(randomizer).items()},
        "reports": [int(report) for report in reports],
    }


def _exp(nano: int) -> str:
    """e^epsilon to 60 digits."""
    with localcontext(prec=60):
        return str((Decimal(nano) / NANO).exp())


def _weights(randomizer: FiniteChannel) -> dict[str, int]:
    match randomizer:
        case BinaryRR():
            return {"flip": randomizer.flip}
        case OneBitMean():
            return {"base": randomizer.base, "slope": randomizer.slope}
        case GRR():
            return {"other": randomizer.other, "truth": randomizer.truth}
        case SignedBlocks():
            return {"blocks": randomizer.blocks, **_weights(_coded(randomizer))}
        case SubsetSelection():
            inner = randomizer.inner
            return {
                "order": inner.k,
                "w": inner.w,
                "multipliers": randomizer.cells,
                "held": inner.held,
                "other": inner.other,
            }
    raise AssertionError(randomizer)


THRESHOLDS = File(
    "thresholds",
    (
        "The weights of a randomizer, and its report for each value, then each public coin, then "
        "each word of `word_bits` bits."
    ),
    cases,
    expected,
)
