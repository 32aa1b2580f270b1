"""Outcomes under a label, against a dictionary: what a client restores is what it stored."""

from random import Random

import numpy as np
import pytest

from local_dp.errors import InputError
from local_dp.oracles.local.memory import Memo, Memoised
from tests.support.wrong import wrong

WIDTH = np.dtype((np.uint16, 2))


@wrong(
    "local_dp.oracles.local.memory:Memo.restore",
    "np.arange(span[part], span[part] + span[2])",
    "np.arange(span[2])",
    "after a restart an outcome belongs to another client",
)
def test_what_is_restored_is_what_was_stored() -> None:
    """Random places with random numbers, in two memos: the one that stored them, and one that was
    given what was added."""
    chance = Random(1)
    for _ in range(50):
        memo, other, reference = Memo().copy(()), Memo(), dict[int, tuple[int, list[int]]]()
        for _ in range(3):
            free = [place for place in range(30) if place not in reference]
            places = np.array(chance.sample(free, chance.randrange(1, 8)))
            numbers = np.array([chance.choice((place, place + 100)) for place in places.tolist()])
            outcomes = np.array([[chance.randrange(1 << 16)] * 2 for _ in places])
            outcomes[:, 1] += numbers
            outcomes %= 1 << 16
            memo.keep("a", places, numbers, outcomes, WIDTH)
            for place, number, outcome in zip(
                places.tolist(), numbers.tolist(), outcomes.tolist(), strict=True
            ):
                reference[place] = (number, outcome)
        assert memo.additions is not None
        for addition in memo.additions:
            other.restore(addition)
        every, own = np.arange(40), np.array(sorted(reference))
        for each in (memo, other):
            numbers_of = [reference[place][0] if place in reference else -1 for place in range(40)]
            assert each.numbers("a", every).tolist() == numbers_of
            assert each.known("a", own).all()
            assert not each.known("b", own).any()
            outcomes_of = [reference[place][1] for place in own.tolist()]
            assert each.outcomes("a", own, WIDTH).reshape(-1, 2).tolist() == outcomes_of


@pytest.mark.parametrize("label", ["", "a b", "é", "a" * 65, "a\n"])
def test_a_label_is_a_short_plain_word(label: str) -> None:
    with pytest.raises(InputError, match="give 1 to 64 letters"):
        Memoised(label)
