"""Noise is a function of (seed, round, client, width) alone, private words never repeat, and no two
draws share a stream; draws from words are exact."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_dp import draws
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.noise import (
    Draw,
    KeyedNoise,
    Noise,
    StoreNoise,
    SystemNoise,
    public_coins,
    stream_key,
)
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.records import chunks
from tests.support import golden
from tests.support.inputs.refusals import refuse
from tests.support.mechanisms.paths import Cut, Tree, law_of
from tests.support.runs.scripted import Script
from tests.support.wrong import wrong

WIDTHS = (32, 64)


@wrong(
    "local_dp.noise:philox_words",
    "start - first * per_block",
    "0",
    "a client's word depends on where the chunk was cut",
)
@settings(max_examples=200)
@given(
    seed=st.integers(0, 2**64 - 1),
    round=st.integers(1, 2**31),
    start=st.integers(0, 2**40),
    cuts=st.lists(st.integers(1, 37), min_size=1, max_size=8),
    bits=st.sampled_from(WIDTHS),
)
def test_a_clients_word_does_not_depend_on_who_is_drawn_with_it(
    seed: int, round: int, start: int, cuts: list[int], bits: int
) -> None:
    noise, stop = KeyedNoise(seed), start + sum(cuts)
    whole = noise.words(Draw(round), start, stop, bits)
    ends = [start + sum(cuts[:place]) for place in range(len(cuts) + 1)]
    parts = [noise.words(Draw(round), low, high, bits) for low, high in pairwise(ends)]
    assert np.concatenate(parts).tolist() == whole.tolist()
    assert [
        int(noise.words(Draw(round), client, client + 1, bits)[0]) for client in range(start, stop)
    ] == whole.tolist()
    assert whole.dtype == np.dtype(f"<u{bits // 8}")
    assert len(noise.words(Draw(round), start, start, bits)) == 0


@settings(max_examples=100)
@given(start=st.integers(0, 500), length=st.integers(0, 500), size=st.integers(1, 100))
def test_chunks_cover_once_and_at_fixed_places(start: int, length: int, size: int) -> None:
    cut = list(chunks(start, start + length, size))
    assert [client for low, high in cut for client in range(low, high)] == list(
        range(start, start + length)
    )
    assert all(low // size == (high - 1) // size for low, high in cut)


def test_golden_words_and_coins() -> None:
    assert golden.words() == golden.kept()["words"]
    assert golden.coins() == golden.kept()["coins"]
    golden_file = golden.kept()
    assert set(golden_file["reports"]) == set(RANDOMIZERS.built_in)
    assert list(golden_file["messages"]) == [message.kind for message in golden.MESSAGES]


@pytest.mark.parametrize("name", RANDOMIZERS.built_in)
def test_golden_reports(name: str) -> None:
    """The first clients' report bytes at epsilon 1 and seed 1, written down for every built-in
    randomizer."""
    assert golden.reports(name) == golden.kept()["reports"].get(name), (
        "new values: python -m tests.support.golden"
    )


@wrong(
    "local_dp.noise:stream_key",
    "f'local-dp {label} {seed} {index}'",
    "f'local-dp {label} {seed}'",
    "public coins and noise repeat in every round",
)
@wrong(
    "local_dp.noise:Draw.key",
    "stream_key(f'{purpose} ask {self.ask}', seed, self.round)",
    "stream_key(f'{purpose} ask {self.ask}', seed)",
    "a client's noise is the same in every round",
)
def test_streams_do_not_meet() -> None:
    """Words of neighbouring seeds and rounds, of both widths, and public coins share no aligned
    8-byte word among 2^13 each (chance below 1e-7)."""
    n = 1 << 13
    streams = [
        KeyedNoise(seed).words(Draw(round), 0, 2 * n if bits == 32 else n, bits).view("<u8")
        for seed in (0, 1, 2)
        for round in (1, 2, 3)
        for bits in WIDTHS
    ]
    streams += [
        public_coins(stream_key(label, seed, index), 0, n)
        for label in ("coins", "population", "masks")
        for seed in (0, 1)
        for index in (0, 1)
    ]
    sample = np.concatenate(streams)
    assert len(np.unique(sample)) == len(sample) == len(streams) * n
    assert (
        len(
            {
                stream_key(label, seed, index)
                for label in ("noise", "coins")
                for seed in range(50)
                for index in range(50)
            }
        )
        == 5000
    )
    halves = KeyedNoise(1).words(Draw(1), 0, 256, 64).view("<u4")
    assert not set(halves.tolist()) & set(KeyedNoise(1).words(Draw(1), 0, 512, 32).tolist())


def test_system_noise_is_fresh() -> None:
    """Operating-system words never repeat, also in a forked process, and take no seed."""
    noise = SystemNoise()
    first, second = noise.words(Draw(1), 0, 1000, 64), noise.words(Draw(1), 0, 1000, 64)
    assert len(np.unique(np.concatenate([first, second]))) == 2000
    assert noise.words(Draw(1), 5, 9, 32).dtype == np.dtype("<u4")
    assert len(noise.words(Draw(1), 5, 9, 32)) == 4
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, noise.words(Draw(1), 0, 4, 64).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 32) != noise.words(Draw(1), 0, 4, 64).tobytes()
    os.close(reading)
    os.close(writing)
    with pytest.raises(TypeError):
        SystemNoise(1)  # type: ignore[call-arg]


@wrong(
    "local_dp.draws:Draws.below",
    "if number < limit:\n            return number",
    "return number % limit",
    "small numbers are drawn more often than large ones",
)
def test_below_is_uniform_by_enumeration() -> None:
    """Over all words of three bits, a draw below 5 takes each value once and rejects 5, 6 and 7; a
    coin of bias 3/8 is heads for three."""
    for limit in range(1, 18):
        least = 1 << (limit - 1).bit_length()
        assert [Script([word, 0]).below(limit) for word in range(least)] == [
            word if word < limit else 0 for word in range(least)
        ]
    assert Script([7, 6, 5, 4]).below(5) == 4
    assert Script([]).below(1) == 0
    assert Script([3, 1]).below(1 << 65) == 3 + (1 << 64)
    assert sum(Script([word]).coin(Fraction(3, 8)) for word in range(8)) == 3


@wrong(
    "local_dp.draws:Draws.many_below",
    "(1 << WORD_BITS) // limit * limit - 1",
    "(1 << WORD_BITS) - 1",
    "the first remainders are likelier than the last",
)
def test_many_below_are_uniform_by_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of words of four bits each limit takes whole rounds, in order, and draws the rest again,
    until it is one of them."""
    monkeypatch.setattr(draws, "WORD_BITS", 4)
    for limit in range(1, 17):
        rest = range(16 // limit * limit, 16)
        assert Script([*range(16), *rest, *[0] * len(rest)]).many_below(limit, 16).tolist() == [
            word % limit if word not in rest else 0 for word in range(16)
        ]
    monkeypatch.undo()
    assert Script([7, (3 << 62) - 1, 3 << 62, 5]).many_below(3 << 61, 3).tolist() == [
        7,
        (3 << 61) - 1,
        5,
    ]
    assert Draws(KeyedNoise(4)).many_below(1, 3).tolist() == [0, 0, 0]
    with pytest.raises(InputError, match="below 0"):
        Draws(KeyedNoise(4)).many_below(0, 3)


def test_orders_are_uniform_by_enumeration() -> None:
    """Of three words of two bits: each order as often, and a word that occurs twice draws all of
    them again."""
    orders = Counter(
        tuple(Script([*words, 0, 1, 2]).order(3).tolist()) for words in product(range(4), repeat=3)
    )
    assert orders == {order: 4 + 40 * (order == (0, 1, 2)) for order in permutations(range(3))}


def test_words_are_read_once_and_in_order() -> None:
    """Two sources over one seed agree word for word, however the words are asked for; the operating
    system's source works too."""
    first, second = Draws(KeyedNoise(3)), Draws(KeyedNoise(3))
    assert np.array_equal(np.concatenate([first.words(3), first.words(5)]), second.words(8))
    assert not np.array_equal(Draws(KeyedNoise(3), round=1).words(8), Draws(KeyedNoise(3)).words(8))
    assert len(Draws(SystemNoise()).words(4)) == 4


class Pieces(Tree):
    """The draws from enumerated pieces: e^-gamma counts as (3/4)^(gamma / `unit`); a second `first`
    ends the path, which leaves the law up to a factor."""

    first, unit, least = 0, Fraction(1), Fraction(1, 10**5)
    discrete_laplace = Draws.discrete_laplace

    def below(self, limit: int) -> Any:
        if limit == self.first and ("below", limit) in self.asks:
            raise Cut
        return super().below(limit)

    def coin(self, probability: Fraction) -> bool:
        return self.branch([1 - probability, probability]) == 1

    def coin_exp(self, gamma: Fraction) -> bool:
        return self.coin(Fraction(3, 4) ** int(gamma / self.unit)) and gamma % self.unit == 0


@pytest.mark.parametrize("numerator", [0, 1, 3, 2**39 + 1, 2**40])
def test_coins_have_their_bias(numerator: int) -> None:
    bias = Fraction(numerator, 2**40)
    exact = type("Exact", (Tree,), {"least": Fraction(0)})
    assert law_of(lambda draws: draws.coin(bias), kind=exact).get(True, 0) == bias


@wrong(
    "local_dp.draws:Draws.coin_exp",
    "self.coin(gamma / failed_at)",
    "failed_at < 8 and self.coin(gamma / failed_at)",
    "the series of e^-gamma is cut",
    at="gamma0",
)
@pytest.mark.parametrize("gamma", [Fraction(0), Fraction(1, 3), Fraction(1)])
def test_a_coin_of_e_to_the_minus_gamma_is_its_series(gamma: Fraction) -> None:
    """After j heads of the biases gamma, gamma / 2, ..., of probability gamma^j / j!, and a tail,
    it is whether j is even: sum (-gamma)^j / j!."""
    for heads in range(60):
        left, biases = iter([True] * heads + [False]), list[Fraction]()

        class Run(Draws):
            def coin(self, probability: Fraction) -> bool:
                biases.append(probability)  # noqa: B023
                return next(left)  # noqa: B023

        assert Run(KeyedNoise(0)).coin_exp(gamma) == (heads % 2 == 0)
        assert biases == [gamma / number for number in range(1, heads + 2)]


@wrong(
    "local_dp.draws:Draws.discrete_laplace",
    "(epsilon.numerator, epsilon.denominator)",
    "(epsilon * Fraction(101, 100)).as_integer_ratio()",
    "each release loses 1 % more than it is charged",
    at="epsilon0",
)
@wrong(
    "local_dp.draws:Draws.discrete_laplace",
    "self.coin_exp(_ONE)",
    "high < 12 and self.coin_exp(_ONE)",
    "a large noise rules the other database out",
    at="epsilon0",
)
@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 2), Fraction(7, 3), Fraction(2, 11)])
def test_discrete_laplace_has_its_law(epsilon: Fraction) -> None:
    """By all paths: each further step, on both sides, is as likely as a step before times
    e^-epsilon, exactly."""
    s, t = epsilon.numerator, epsilon.denominator
    paths = law_of(
        lambda draws: draws.discrete_laplace(epsilon),
        kind=type("Steps", (Pieces,), {"first": t, "unit": Fraction(1, t)}),
    )
    far = range(-(20 // s), 20 // s + 1)
    assert all(paths[y] == paths[0] * Fraction(3, 4) ** (s * abs(y)) for y in far)


@wrong(
    "local_dp.draws:Draws.discrete_cauchy",
    "size * size + scale * scale",
    "size * size + scale * scale + 1",
    "the staircase is kept by the law of another scale",
    at="1",
)
@pytest.mark.parametrize("scale", [1, 2, pytest.param(5, marks=pytest.mark.long)])
def test_discrete_cauchy_has_its_law(scale: int) -> None:
    """By all paths: y is as likely as 0 times scale^2 / (y^2 + scale^2), exactly, up to 6 times the
    scale and on both sides."""
    paths = law_of(
        lambda draws: draws.discrete_cauchy(scale), kind=type("Staircase", (Pieces,), {"first": 3})
    )
    assert all(
        paths[y] * (y * y + scale * scale) == paths[0] * scale * scale
        for y in range(-6 * scale, 6 * scale + 1)
    )


def test_discrete_cauchy_of_a_large_scale() -> None:
    """Scales beyond 64 bits: half of 2,000 draws within the scale, and one in 20 beyond 12.706
    scales (binomial, failure 1e-6 each)."""
    source, scale = Draws(KeyedNoise(8)), 1 << 70
    sample = [abs(source.discrete_cauchy(scale)) / scale for _ in range(2000)]
    for bound, share in ((1.0, 0.5), (12.706, 0.05)):
        assert (
            abs(sum(size > bound for size in sample) - 2000 * share)
            < 4.9 * (2000 * share * (1 - share)) ** 0.5
        )


def test_bad_parameters_are_refused() -> None:
    draws = Draws(KeyedNoise(0))
    refuse(
        ("below 0", lambda: draws.below(0)),
        ("positive number of nats", lambda: draws.discrete_laplace(Fraction(0))),
        ("scale is 0", lambda: draws.discrete_cauchy(0)),
    )


DRAWS = [
    *(Draw(round, ask) for round, ask in product((0, 1, 2, 11, 111), (0, 1, 2, 11))),
    *(
        Draw(round, ask, memo)
        for round, ask, memo in product((0, 3), (0, 3), ("a", "b", "a b", "ask 0", "0", "a0"))
    ),
]
ALL_WIDTHS = (8, 16, 32, 64)
CLIENTS = 512


def stream(which: Draw) -> tuple[object, ...]:
    """What a stream belongs to: a label is one stream in all rounds and asks, which is what it is
    for."""
    return ("label", which.label) if which.label else ("ask", which.round, which.ask)


def drawn(noise: Noise) -> Iterator[tuple[tuple[object, ...], bytes]]:
    for which, bits in product(DRAWS, ALL_WIDTHS):
        if which.label and not isinstance(noise, KeyedNoise):
            continue
        yield (*stream(which), bits), np.asarray(noise.words(which, 0, CLIENTS, bits)).tobytes()


SOURCES: dict[str, Callable[[int], Noise]] = {
    "keyed": KeyedNoise,
    "store": lambda seed: StoreNoise(seed.to_bytes(32)).bound(b"records", b"request"),
}


@wrong(
    "local_dp.noise:BoundNoise.words",
    "f'{which.round} {which.ask} {bits}'",
    "f'{which.round} {bits}'",
    "all asks of a round have the same words, so two reports differ as their values do",
    at="store",
)
@wrong(
    "local_dp.noise:Draw.key",
    "f'{purpose} once {self.label}'",
    "f'{purpose} once'",
    "a simulation repeats the words of one label under another",
    at="keyed",
)
@pytest.mark.parametrize("source", SOURCES)
def test_streams_differ_where_anything_differs(source: str) -> None:
    """512 words of every pair: two equal ones of different streams would be 512 equal bytes or more
    by chance, 2^-4096."""
    owners: dict[bytes, tuple[object, ...]] = {}
    for seed in (0, 1, 11):
        for owner, words in drawn(SOURCES[source](seed)):
            assert owners.setdefault(words, (seed, *owner)) == (seed, *owner), (
                "two streams have the same words"
            )
            for other in (words[: len(words) // 2], words[len(words) // 2 :]):
                assert owners.setdefault(other, (seed, *owner)) == (seed, *owner), (
                    "a stream holds a part of another"
                )


def test_private_words_are_of_one_request_and_certain_records() -> None:
    """The words of a store are the same for the same records and request, differ where either does
    however they are split, and a label has none."""
    noise, which = StoreNoise(bytes(32)), Draw(1)
    assert np.array_equal(
        noise.bound(b"ab", b"c").words(which, 0, 64, 32),
        StoreNoise(bytes(32)).bound(b"ab", b"c").words(which, 0, 64, 32),
    )
    others = [
        noise.bound(b"ab", b"d"),
        noise.bound(b"ad", b"c"),
        noise.bound(b"a", b"bc"),
        StoreNoise(bytes(31) + b"\1").bound(b"ab", b"c"),
    ]
    words = {
        np.asarray(each.words(which, 0, 64, 32)).tobytes()
        for each in (noise.bound(b"ab", b"c"), *others)
    }
    assert len(words) == 5
    assert not hasattr(noise, "words")
    for private in (SystemNoise(), noise.bound(b"", b"")):
        with pytest.raises(ValueError, match="label"):
            private.words(Draw(1, 0, "weekly"), 0, 1, 32)
    with pytest.raises(InputError, match="32 bytes"):
        StoreNoise(b"short")
