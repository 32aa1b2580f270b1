"""Two parties, each with half of the data: one-way protocols with the problems that they solve."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True)
class OneWay(Generic[A, B]):
    """Alice, who has a, sends a number below `messages`; Bob, who has b, answers a bit. With public
    coins: one such protocol for each outcome of them."""

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
    function: Callable[[A, B], int]

    def given(self, a: A) -> dict[B, int]:
        """The law of Bob's b where Alice has a."""
        return {b: weight for (own, b), weight in self.joint.items() if own == a}

    def error(self, protocol: OneWay[A, B]) -> Fraction:
        """Pr[the answer is not f(a, b)]."""
        wrong = sum(
            weight
            for (a, b), weight in self.joint.items()
            if protocol.answer(protocol.send(a), b) != self.function(a, b)
        )
        return Fraction(wrong, sum(self.joint.values()))

    def misses(self, a: A, predict: Callable[[B], int]) -> Fraction:
        """Pr[predict(b) is not f(a, b)] given a."""
        law = self.given(a)
        return Fraction(
            sum(weight for b, weight in law.items() if predict(b) != self.function(a, b)),
            sum(law.values()),
        )
