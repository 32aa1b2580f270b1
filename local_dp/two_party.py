"""Two parties, each with half of the data: one-way protocols with the problems that they solve, and the private distance of their bits."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Generic, TypeVar

import numpy as np

from local_dp.arrays import Ints
from local_dp.curator.clipped import ClippedLaplace
from local_dp.curator.mechanism import Law, check_listed
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import nano_epsilon
from local_dp.randomizers.signs.binary_rr import BinaryRR

A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True)
class OneWay(Generic[A, B]):
    """Alice, who has a, sends a number below `messages`; Bob, who has b, answers a bit. With public coins: one such protocol for each outcome of them."""

    messages: int
    send: Callable[[A], int]
    answer: Callable[[int, B], int]

    @property
    def bits(self) -> int:
        return (self.messages - 1).bit_length()


@dataclass(frozen=True)
class Problem(Generic[A, B]):
    """Pairs (a, b) with their probabilities, whole weights, and the right bit f(a, b)."""

    joint: Mapping[tuple[A, B], int]
    wanted: Callable[[A, B], int]

    def given(self, a: A) -> dict[B, int]:
        """The law of Bob's b where Alice has a."""
        return {b: weight for (own, b), weight in self.joint.items() if own == a}

    def error(self, protocol: OneWay[A, B]) -> Fraction:
        """Pr[the answer is not f(a, b)]."""
        wrong = sum(weight for (a, b), weight in self.joint.items() if protocol.answer(protocol.send(a), b) != self.wanted(a, b))
        return Fraction(wrong, sum(self.joint.values()))

    def misses(self, a: A, predict: Callable[[B], int]) -> Fraction:
        """Pr[predict(b) is not f(a, b)] given a."""
        law = self.given(a)
        return Fraction(sum(weight for b, weight in law.items() if predict(b) != self.wanted(a, b)), sum(law.values()))


_LISTED = 12  # bits of a message


@dataclass(frozen=True)
class HammingDistance:
    """Alice has x, Bob y, of {0, 1}^n. She sends each bit by randomized response; he counts the differences from his bits, and sends the count with noise.

    Privacy: epsilon for each bit of either, against the other and everybody: her message is epsilon-private in x whatever y is. His count moves by 1 with a
    bit of y whatever the message. Utility: unbiased, of variance (C^2 - 1) n / 4 + C^2 / (cosh eps - 1), C = (e^eps + 1) / (e^eps - 1). No two-party protocol
    is off by less than about sqrt(n), up to a logarithm. Source: McGregor, Mironov, Pitassi, Reingold, Talwar, Vadhan 2010.
    """

    epsilon: float

    def __post_init__(self) -> None:
        nano_epsilon(self.epsilon)

    @cached_property
    def response(self) -> BinaryRR:
        return BinaryRR(epsilon=self.epsilon, word_bits=64)

    def send(self, x: Ints, draws: Draws) -> Ints:
        """Alice's message, shape (n,)."""
        words = draws.words(len(x))
        return self.response.respond(x, words, np.zeros(len(x), dtype=np.uint8)).astype(np.int64)

    def count(self, message: Ints, y: Ints, draws: Draws) -> int:
        """Bob's noisy count of the places where the message differs from his bits."""
        if message.shape != y.shape:
            raise InputError(f"Alice has {len(message)} bits and Bob {len(y)}; give as many to both")
        return int(np.sum(message != y)) + self._noise(len(y)).noise(draws)

    def estimate(self, count: int, n: int) -> float:
        """The distance of x and y: each of their n bits adds Pr[flip] where they are equal, and 1 - Pr[flip] where not."""
        return (count - n * self.response.flip / self.response.total) * self.response.gain

    def run(self, x: Ints, y: Ints, draws: Draws) -> float:
        return self.estimate(self.count(self.send(x, draws), y, draws), len(y))

    def deviation(self, n: int) -> float:
        """The standard error, in places, whatever x and y are."""
        gain = self.response.gain
        return math.sqrt((gain**2 - 1) * n / 4 + gain**2 / (math.cosh(self.epsilon) - 1))

    def curator_deviation(self) -> float:
        """That of a curator of both, who adds discrete Laplace noise to the distance."""
        return 1 / math.sqrt(math.cosh(self.epsilon) - 1)

    def law(self, x: Ints, y: Ints) -> Law[tuple[tuple[int, ...], int]]:
        """Of the message and the count, cut to 0..n. Raises InputError above 12 bits."""
        n = len(x)
        check_listed(f"{n} bits in a message", n, _LISTED)
        flip, total = self.response.flip, self.response.total
        law = {}
        for message in product((0, 1), repeat=n):
            flipped = int(np.sum(np.array(message) != x))
            weight = flip**flipped * (total - flip) ** (n - flipped)
            for count, share in self._noise(n).law(int(np.sum(np.array(message) != y))).items():
                law[message, count] = weight * share
        return law

    def _noise(self, n: int) -> ClippedLaplace:
        return ClippedLaplace(nano_epsilon(self.epsilon), 1, n)
