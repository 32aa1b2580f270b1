"""Transcripts enumerated: products of laws, branches, and what is possible on one database alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import pytest

from local_dp.curator.laws import SmallDatabases
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.transcripts import transcripts, worst_transcripts
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Nonadaptive, Play
from local_dp.loss import Pure


@dataclass(frozen=True)
class Coin(Mechanism[tuple[int, ...], int, Pure]):
    """1 with weight `high` if the only record is 1, else `low`; 0 with weight 1."""

    high: int
    low: int = 1

    @property
    def loss(self) -> Pure:
        return Pure(0)

    def release(self, database: tuple[int, ...], draws: Draws) -> int:
        raise NotImplementedError

    def law(self, database: tuple[int, ...]) -> Mapping[int, int]:
        return {1: self.high if database == (1,) else self.low, 0: 1}


DATABASES: SmallDatabases[tuple[int], tuple[int, ...]] = SmallDatabases([(0,), (1,)], 1, lambda records: records[0])


def again_after_one() -> Play[Coin, int, int]:
    """Asks a second coin if the first one shows 1."""
    (first,) = yield (Coin(3),)
    if first:
        yield (Coin(5),)
    return first


def test_a_round_is_a_product() -> None:
    """Of two coins asked at once."""
    both = Nonadaptive((Coin(3), Coin(1)), sum)
    assert transcripts(both, (1,)) == {((x, y),): Fraction(3 if x else 1, 8) for x in (0, 1) for y in (0, 1)}


def test_what_is_asked_depends_on_what_was_told() -> None:
    """The branch that ends has one answer, the other two; and the worst ratio of each transcript, either way round."""
    algorithm = Adaptive(again_after_one)
    assert transcripts(algorithm, (1,)) == {((0,),): Fraction(1, 4), ((1,), (0,)): Fraction(1, 8), ((1,), (1,)): Fraction(5, 8)}
    assert worst_transcripts(algorithm, DATABASES) == {((0,),): 2, ((1,), (0,)): 2, ((1,), (1,)): Fraction(5, 2)}


def test_what_is_possible_on_one_database_alone_is_told() -> None:
    """Weight 0 on one side is an infinite loss; more transcripts than can be listed are refused."""
    with pytest.raises(InputError, match="impossible on its neighbour"):
        worst_transcripts(Nonadaptive((Coin(1, 0),), sum), DATABASES)
    with pytest.raises(InputError, match="more than 262,144"):
        transcripts(Nonadaptive((Coin(2),) * 19, sum), (1,))
