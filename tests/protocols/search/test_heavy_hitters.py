"""Frequent strings: found without a list of them, estimated without bias, with intervals that hold
all at once."""

import json
import math
from itertools import combinations, product
from unicodedata import category

import numpy as np
import pytest
from scipy import stats

from local_dp.arrays import Ints, Words
from local_dp.bounds.frequencies import NARROW, WIDE
from local_dp.errors import InputError
from local_dp.populations.finite import Population, Rows
from local_dp.protocols.search.heavy_hitters import (
    Chosen,
    Found,
    FrequentStrings,
    HeavyHitters,
    HeavyHittersAsked,
    Level,
)
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.strings import (
    HashedPrefix,
    KeptPrefix,
    Prefix,
    chunks_of,
    ends_of,
    first_bits,
    numbers_of,
    readable,
    split_mix,
    strings_of,
)
from local_dp.records import Records
from local_dp.tallies import Estimate
from tests.support.runs.protocols import by_client
from tests.support.wrong import wrong


def test_text_is_its_bytes() -> None:
    """Text of up to four bytes is whole and shown again; a longer one is cut by whole characters
    and shown with an ellipsis; nothing is all zeros."""
    words = np.array(["the", "then", "thence", "th\u00e9e", "\u00e9", ""])
    strings = strings_of(words, 32)
    assert strings[:, 0].tolist() == [0x74686500, 0x7468656E, 0x746865FF, 0x7468FF00, 0xC3A90000, 0]
    four = HeavyHitters(text=True, text_bytes=4)
    assert four.shown(numbers_of(strings, 32)) == [
        "the",
        "then",
        "the\u2026",
        "th\u2026",
        "\u00e9",
        "(missing)",
    ]
    assert HeavyHitters(bits=12).shown([255]) == ["0x0ff"]
    assert Prefix("w", 32, 8)(Records({"w": words})).tolist() == [0x74, 0x74, 0x74, 0x74, 0xC3, 0]
    hashed = HashedPrefix("w", 32, 32, 18, 12345)
    np.testing.assert_array_equal(hashed(Records({"w": words})), hashed.of(strings))


def test_long_strings_are_rows_of_words() -> None:
    """Prefixes of every length, their ends and their codes by Python's own whole numbers, for
    strings of 100 bits."""
    generator = np.random.default_rng(2)
    numbers = [int.from_bytes(generator.bytes(13), "big") >> 4 for _ in range(20)]
    strings = chunks_of(numbers, 100, 100)
    assert numbers_of(strings, 100) == numbers
    for length in (1, 20, 32, 33, 63, 64, 90):
        prefixes = first_bits(strings, length)
        assert numbers_of(prefixes, length) == [number >> 100 - length for number in numbers]
        ends = ends_of(length, 5, 100)
        both = (prefixes[:, None] | ends).reshape(-1, strings.shape[1])
        assert numbers_of(both, length + 5) == [
            number >> 100 - length << 5 | end for number in numbers for end in range(32)
        ]
        hashed = HashedPrefix("s", 100, length + 5, 18, 7)
        np.testing.assert_array_equal(hashed.of_each(prefixes, ends), hashed.of(both))
        words = [number >> 100 - length << 128 - length for number in numbers]
        parts = [[word >> 96 - 32 * place & 0xFFFFFFFF for place in range(4)] for word in words]
        sums = [sum(split_mix(7, place) * part for place, part in enumerate(row)) for row in parts]
        assert hashed.of(prefixes).tolist() == [total % 2**64 >> 46 for total in sums]
        listing = sorted({number >> 100 - length for number in numbers[:8]})
        query = KeptPrefix("s", 100, length + 5, 5, 10, tuple(f"{prefix:x}" for prefix in listing))
        parents = [number >> 100 - length for number in numbers]
        expected = [
            listing.index(p) * 32 + (n >> 95 - length & 31) if p in listing else 1023
            for p, n in zip(parents, numbers, strict=True)
        ]
        assert query.of(strings).tolist() == expected
        np.testing.assert_array_equal(query.of_each(prefixes, ends), query.of(both))
    assert split_mix(0, 0) == 0xE220A8397B1DCDAF  # the published first output


def test_two_prefixes_rarely_have_one_hash() -> None:
    """Over 4,096 seeds, pairs of texts collide in 8 bits no more often than 2^-7 and five standard
    errors (fails with 3e-7 each), also in their last bits."""
    names = ["AIRBUS", "AIRBUS INDUSTRIE", "BIRBUS", "AIRBUS INDUSTRIA", "QIRBUS INDUSTRIE"]
    texts = strings_of(np.array(names), 128)
    seeds = np.random.default_rng(4).integers(1 << 62, size=4096).tolist()
    codes = np.array([HashedPrefix("s", 128, 128, 8, seed).of(texts) for seed in seeds])
    for first, second in combinations(range(5), 2):
        assert np.mean(codes[:, first] == codes[:, second]) <= 2**-7 + 5 * (2**-7 / 4096) ** 0.5


@wrong(
    "local_dp.queries.strings:readable",
    "all((category(character) != 'Cc' for character in text))",
    "bool(text or octets)",
    "strings with control characters or padding inside are listed",
)
def test_only_texts_are_readable() -> None:
    """Every string of two bytes is readable if Python makes it of some text; of longer ones ghosts
    are not, and no text is a ghost, nor any of its prefixes."""
    texts = {b"\0\0", b"\xff\0"}  # a missing value, and a character of three or four bytes
    for first in filter(lambda code: category(chr(code)) not in ("Cc", "Cs"), range(0x800)):
        octets = chr(first).encode()
        texts |= {octets.ljust(2, b"\0"), (octets + b"\xff")[:2]} if len(octets) == 1 else {octets}
        texts |= (
            {octets + bytes([second]) for second in range(0x20, 0x7F)}
            if len(octets) == 1
            else set()
        )
    assert {
        string.to_bytes(2, "big") for string in range(1 << 16) if readable(string, 16, 2)
    } == texts
    for ghost in (
        b"CA\x018",
        b"CA\0A",
        b"\xc3AAA",
        b"CAA\xc3",
        b"C\xffAA",
        b"C\x85AA",
        b"\xed\xa0\x80A",
    ):
        assert not readable(int.from_bytes(ghost, "big"), 32, 4)
    for text in (
        "CA18",
        "S\u00e3o Paulo",
        "\u6771\u4eac\u90fd\u6771\u4eac\u90fd",
        "\U0001f600" * 5,
        "a" * 17,
        "a" * 15 + "\u00e9",
    ):
        (string,) = numbers_of(strings_of(np.array([text]), 128), 128)
        assert all(readable(string >> 128 - length, length, 16) for length in range(1, 129)), text
    assert not readable(int.from_bytes(b"short\xff".ljust(16, b"\0"), "big"), 128, 16)


def test_strings_of_a_table_need_a_policy_and_a_type() -> None:
    protocol = HeavyHitters(column="word", share=0.2, text_bytes=4)
    for values, words in (
        (np.array(["milk", ""]), "missing=category"),
        (np.array([0.5]), "no whole number"),
    ):
        with pytest.raises(InputError, match=words):
            protocol.for_table(Launch(Records({"word": values}), False))


def test_hostile_lists_of_prefixes_are_refused() -> None:
    """Hostile lists are refused."""
    for prefixes in (
        (),
        ("5", "0"),
        ("5", "5"),
        ("10",),
        ("-1",),
        ("x",),
        tuple(f"{each:x}" for each in range(16)),
    ):
        with pytest.raises(InputError, match="prefix"):
            KeptPrefix("s", 8, 6, 2, 6, prefixes)


MAKERS = {
    "BOEING": 0.4,
    "AIRBUS": 0.15,
    "AIRBUS INDUSTRIE": 0.15,
    "BOMBARDIER INC": 0.15,
    "MCDONNELL DOUGLAS AIRCRAFT CO": 0.06,
    "MCDONNELL DOUGLAS CORPORATION": 0.05,
}
SMALL = {f"MAKER {place}": 0.002 for place in range(20)}


def makers(clients: int) -> Rows:
    """Names with common beginnings, exactly in these shares."""
    shares = {**MAKERS, **SMALL}
    counts = [round(share * clients) for share in shares.values()]
    return Rows(Records({"name": np.repeat(np.array(list(shares)), counts)}))


def listed_of(
    protocol: FrequentStrings, population: Population, epsilon: float, seed: int
) -> tuple[list[str], Found]:
    order = np.random.default_rng(seed).permutation(population.size)
    shuffled = Rows(population.batch(0, population.size).take(order))
    result = by_client(protocol, shuffled, epsilon, seed)
    return protocol.shown(result.strings), result


@wrong(
    "local_dp.protocols.search.heavy_hitters:counted",
    "level.mean_of(codes)",
    "search.sums[:len(strings), 0] / search.sizes[0]",
    (
        "the clients who found a string estimate its share, with all other strings of the same "
        "beginning"
    ),
    at="HeavyHitters-8",
)
@pytest.mark.parametrize(
    ("kind", "size"),
    [(HeavyHitters, 8), pytest.param(HeavyHittersAsked, 16, marks=pytest.mark.long)],
)
def test_names_with_common_beginnings_are_estimated_without_bias(
    kind: type[FrequentStrings], size: int
) -> None:
    """AIRBUS stays apart from AIRBUS INDUSTRIE, names merged by the cut have an ellipsis, and no
    ghost is listed. Each error is within 5 standard errors (fails with 6e-7); estimates
    by clients of the search miss by 20."""
    population = makers(60_000)
    protocol = kind(column="name", share=0.1, text_bytes=size).for_table(
        Launch(population.whole, False)
    )
    truth: dict[str, float] = {}
    for name, share in MAKERS.items():
        label = name if len(name) <= size else f"{name[: size - 1]}\u2026"
        truth[label] = truth.get(label, 0.0) + share
    assert sum(name.startswith("AIRBUS") for name in truth) == 2
    names, result = listed_of(protocol, population, 8.0, 0)
    assert set(truth) <= set(names) <= {*truth, *SMALL}
    shares, estimate = [{**SMALL, **truth}[name] for name in names], result.estimate
    assert np.all(np.abs(estimate.value - shares) < 5 * estimate.standard_error)
    description = json.loads(json.dumps(protocol.describe(result), allow_nan=False))
    assert description["cut"] == [name.endswith("\u2026") for name in names]
    assert f"cut to its first {size - 1} bytes" in description["choice"]["explanation"]


@wrong(
    "local_dp.protocols.search.heavy_hitters:Chosen.interval",
    "normal_tail(z) / self.candidates",
    "normal_tail(z)",
    "each listed interval holds in 95 % of runs, all of them together in fewer",
)
def test_intervals_of_the_chosen_hold_all_at_once() -> None:
    """By the exact binomial law an interval misses with probability 0.05 / candidates at most, for
    any number of clients, epsilon, candidates and share."""
    for candidates, (epsilon, size), n in product(
        (1, 10, 100, 512), ((0.25, 2), (1.0, 4), (6.0, 8), (6.0, 32)), (20, 200, 5000)
    ):
        own = math.exp(epsilon) / (math.exp(epsilon) + size - 1)
        other = 1 / size if size < 32 else (1 - own) / (size - 1)
        ends = -other / (own - other), (1 - other) / (own - other)
        values = ends[0] + (ends[1] - ends[0]) * np.arange(n + 1) / n
        low, high = Chosen(values, np.zeros(n + 1), n, ends, candidates).interval()
        truths = np.concatenate([np.linspace(0.0, 0.1, 101), np.linspace(0.11, 1.0, 90)])
        chances = other + truths * (own - other)
        below = np.searchsorted(high, truths) - 1
        above = np.searchsorted(low, truths, side="right") - 1
        misses = stats.binom.cdf(below, n, chances) + stats.binom.sf(above, n, chances)
        assert misses.max() * candidates <= 0.05
        assert n < 5000 or misses.max() * candidates >= 0.04


def test_strings_with_one_hash_are_told_apart_by_other_queries() -> None:
    """Only queries that give all candidates different codes are counted; if none does, the
    candidates that the first one tells apart remain."""

    class Coded(HashedPrefix):
        def of(self, prefixes: Words) -> Ints:
            return prefixes[:, 0].astype(np.int64) % self.seed

    strings = np.arange(6, dtype=np.uint64)[:, None]
    tables = [Estimate(np.arange(size) / 10, np.zeros(size), 100, (0.0, 1.0)) for size in (4, 8, 5)]
    level = Level(32, tuple(Coded("s", 32, 32, 18, seed) for seed in (4, 8, 5)), tuple(tables))
    left, survivors = level.apart(strings)
    assert (left.tables, len(survivors)) == ((tables[1],), 6)
    left, survivors = Level(32, level.codings[::2], level.tables[::2]).apart(strings)
    assert (left.tables, survivors[:, 0].tolist()) == ((tables[0],), [0, 1, 2, 3])


def test_a_string_competes_with_all_prefixes_of_its_level() -> None:
    """By the normal law: 511 of 2^20 are followed, or 31 of 2^12 and then of 40 2^7, 20 are listed,
    and each of ten strings passes three tests or four."""
    places: list[float] = [31 / 2**12, 31 / (40 * 2**7), 20 / (31 * 2**7), 0.01 / 20]
    narrow = stats.norm.isf(places) + stats.norm.isf(0.04 / 40) * np.array([1, 1.17, 1.17, 1])
    assert NARROW.needs(26, 0.1, 0.05) == pytest.approx(narrow**2)
    wide = stats.norm.isf([511 / 2**20, 20 / (511 * 2**12)]) + stats.norm.isf(0.04 / 30)
    assert WIDE.needs(32, 0.1, 0.05)[:2] == pytest.approx(wide**2)


def test_a_named_randomizer_has_the_whole_epsilon() -> None:
    levels = HeavyHitters(bits=8, randomizer="wide-hashing")._levels(1.0, 10**6)
    assert {query.randomizer.epsilon for level in levels for query in level} == {1.0}
