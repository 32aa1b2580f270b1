"""Words drawn as far as they are needed: their first bytes decide exactly as whole words would, in
any draw."""

from collections.abc import Callable, Collection
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from local_dp import noise as module
from local_dp.arrays import Bools, Words
from local_dp.noise import Draw, KeyedNoise, Leading, leading_words, philox_words, stream_key, ties
from local_dp.oracles.local.asked import Asking
from local_dp.populations.finite import Finite
from local_dp.queries.tables import Question
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.unary import OUE, SUE, UnaryEncoding
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from tests.support.inputs.builders import survey_query
from tests.support.wrong import wrong

TIED = stream_key("tied", 1)
KEYS = stream_key("first", 1), lambda: TIED
CUTS = (77 << 56 | 12345, 200 << 56, 200 << 56 | 5)


def _whole(start: int, stop: int, cuts: Collection[int] = CUTS) -> Words:
    """The words; undrawn bytes are zeros."""
    draw = leading_words(KEYS, start, stop, 8, ties(cuts))
    words = draw.first.astype(np.uint64) << np.uint64(56)
    words[draw.places] = draw.whole
    assert (draw.whole >> np.uint64(56) == draw.first[draw.places]).all()
    return words


def test_a_cut_of_one_byte_ties_nobody() -> None:
    """The first byte decides about a multiple of 2^56: no other byte is drawn for it, in any order
    of the cuts."""
    draw = leading_words(KEYS, 0, 1 << 12, 8, ties((200 << 56,)))
    assert draw.places.tolist() == []
    assert draw.below(200 << 56).tolist() == (draw.first < 200).tolist()
    draw = leading_words(KEYS, 0, 1 << 12, 8, ties(CUTS))
    for cut in CUTS:
        places = np.arange(3, 1 << 12, 7)
        below = _whole(0, 1 << 12) < np.uint64(cut)
        assert draw.below(cut).tolist() == below.tolist()
        assert draw.below_at(cut, places).tolist() == below[places].tolist()


def test_all_that_are_tied_and_no_others_are_whole_each_with_a_word_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The tied words of a block take the words of the second stream in order, from the block's
    first number on: none is used twice."""
    monkeypatch.setattr(module, "_TIED", 1 << 12)
    draw = leading_words(KEYS, 0, 3 << 12, 8, ties(CUTS))
    assert draw.first.tolist() == philox_words(KEYS[0], 0, 3 << 12, 8).tolist()
    assert draw.places.tolist() == np.flatnonzero(np.isin(draw.first, (77, 200))).tolist()
    ends = np.searchsorted(draw.places, np.arange(4) << 12)
    assert (np.diff(ends) > 0).all()
    for block, (low, high) in enumerate(pairwise(ends.tolist())):
        second = philox_words(TIED, block << 12, (block << 12) + high - low)
        assert (draw.whole[low:high] << np.uint64(8)).tolist() == (
            second >> np.uint64(8) << np.uint64(8)
        ).tolist()


def _open(first: Words) -> Bools:
    """Some pairs of bytes that leave a word open."""
    return np.asarray(first % np.uint16(50) == 7)


def test_two_bytes_that_leave_a_word_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only open words are whole. They begin with their two bytes, and have the rest of a word of
    their own, wherever the draw is cut."""
    monkeypatch.setattr(module, "_TIED", 1 << 10)
    start, stop = 700, 5000
    draw = leading_words(KEYS, start, stop, 16, _open)
    first = philox_words(KEYS[0], start, stop, 16)
    assert draw.places.tolist() == np.flatnonzero(first % 50 == 7).tolist()
    assert (draw.whole >> np.uint64(48)).tolist() == first[draw.places].tolist()
    assert len(set((draw.whole << np.uint64(16)).tolist())) == len(draw.whole) > 50
    for low, high in ((700, 1025), (1023, 1024), (1024, 2049), (3333, 5000)):
        part = leading_words(KEYS, low, high, 16, _open)
        inside = slice(*np.searchsorted(draw.places, (low - start, high - start)))
        assert (part.places + low - start).tolist() == draw.places[inside].tolist()
        assert part.whole.tolist() == draw.whole[inside].tolist()


class Given(
    KeyedNoise
    # noise of all 16-bit words in order where a byte is looked at, and of all 20-bit words where
    # two are
):
    def leading(
        self, which: Draw, start: int, stop: int, bits: int, undecided: Callable[[Words], Bools]
    ) -> Leading:
        words = np.arange(start, stop, dtype=np.uint64) << np.uint64(48 if bits == 8 else 44)
        first = (words >> np.uint64(64 - bits)).astype(f"u{bits // 8}")
        places = np.flatnonzero(undecided(first))
        return Leading(first, places, words[places])


@wrong(
    "local_dp.noise:Leading.below",
    "below[self.places] = self.whole < np.uint64(cut)",
    "pass",
    "a bit is flipped with a probability in 256ths, less than privacy needs",
    at="0.01",
)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0, 8.0])
def test_a_simulated_bit_is_flipped_exactly_as_often_as_its_weight_says(epsilon: float) -> None:
    """Over all 2^16 words of 16 bits, the flipped bits are those of the words below the threshold,
    as `respond` has it."""
    randomizer, n = BinaryRR(epsilon, word_bits=16), 1 << 16
    values = np.arange(n) % 2
    words = np.arange(n, dtype=np.uint32)
    cells = np.zeros(1, dtype=np.uint8)
    reports = randomizer.simulated(Given(0), Draw(1), 0, values, cells)
    assert int((reports != values).sum()) == randomizer.flip
    assert reports.tolist() == randomizer.respond(values, words, cells).tolist()


@pytest.mark.parametrize("k", [8, 13])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("kind", [SUE, OUE])
def test_simulated_bits_are_those_of_respond(
    kind: type[UnaryEncoding], epsilon: float, k: int
) -> None:
    """Over all 2^16 words of 16 bits at each place, the own one and others, the packed bits are
    those that `respond` gives for the same words."""
    randomizer, n = kind(epsilon, word_bits=16, k=k), 1 << 16
    words = (np.arange(n * k, dtype=np.uint64) % n).astype(np.uint32).reshape(n, k)
    # an odd number of places meets all words at each place by itself
    for turn in range(k if k % 2 == 0 else 1):
        values, cells = (np.arange(n) + turn) % k, np.zeros(1, dtype=np.uint8)
        reports = randomizer.simulated(Given(0), Draw(1), 0, values, cells)
        assert np.array_equal(reports, randomizer.respond(values, words, cells))


@pytest.mark.parametrize("k", [3, 8, 200])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_simulated_symbols_are_those_of_respond(epsilon: float, k: int) -> None:
    """Over all 2^20 words of 20 bits, each symbol is sent as often as its weight says, and by the
    words by which `respond` sends it."""
    randomizer, n = GRR(epsilon, word_bits=20, k=k), 1 << 20
    values = np.arange(n) // 7 % k
    words = np.arange(n, dtype=np.uint32)
    cells = np.zeros(1, dtype=np.uint8)
    reports = randomizer.simulated(Given(0), Draw(1), 0, values, cells)
    assert int((reports == values).sum()) == randomizer.truth
    assert reports.dtype == randomizer.report_dtype
    assert np.array_equal(reports, randomizer.respond(values, words, cells))


@pytest.mark.parametrize(
    "randomizer", [GRR(1.0, k=3), GRR(1.0, k=1000), SUE(1.0, k=5), OUE(1.0, k=5)], ids=str
)
def test_a_client_alone_sends_what_it_sends_among_many(randomizer: GRR | UnaryEncoding) -> None:
    """The simulated reports of 200,000 clients, many of them with tied words, are those of the same
    clients asked in parts, or one by one."""
    n, cells = 200_000, np.zeros(1, dtype=np.uint8)
    values = np.arange(n) % randomizer.k
    together = randomizer.simulated(KeyedNoise(1), Draw(1), 0, values, cells)
    for part in (
        slice(0, 7),
        slice(7, 120_001),
        slice(120_001, n),
        *(slice(start, start + size) for size in (100, 1) for start in range(0, n, 901 * size)),
    ):
        assert np.array_equal(
            randomizer.simulated(KeyedNoise(1), Draw(1), part.start, values[part], cells),
            together[part],
        )


@wrong(
    "local_dp.randomizers.randomizer:Randomizer.__init_subclass__",
    "min(home.values()) < home['simulated']",
    "home['simulated'] < 0",
    "a class with its own sampler is simulated by that of its base",
)
def test_who_answers_in_its_own_way_is_asked_itself() -> None:
    class Silent(BinaryRR):
        def respond(self, values: Any, words: Any, cells: Any) -> Any:
            return np.zeros(len(values), dtype=np.uint8)

    n = 1000
    query = survey_query(n)
    object.__setattr__(query, "randomizer", Silent(1.0))
    asking = Asking(query, 0, KeyedNoise(1), Draw(1), b"")
    assert not asking.randomize(np.ones(n, dtype=np.int8)).any()


@pytest.mark.parametrize(
    "shares", [(1.0,), (3.0, 7.0), (1.0, 0.0, 2.0, 1e-9, 5.0), tuple([1.0] * 40)]
)
def test_values_are_those_of_the_records(shares: tuple[float, ...]) -> None:
    """Values are those of the records, for any range."""
    n, query = 1 << 20, Question("kind >= 1")
    population = Finite(Records({"kind": np.arange(len(shares))}), shares, n, 5)
    kinds = population.batch(0, n)["kind"]
    for start, stop in ((0, n), (17, 200_000), (n - 3, n)):
        assert (
            population.values(query, start, stop).tolist()
            == query.values(population.batch(start, stop)).tolist()
            == (kinds[start:stop] >= 1).tolist()
        )
