"""Labels and texts are compared in work that no value changes, with the results of comparing them
as texts."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from local_dp.queries.labels import Listed, apart, as_label, lowered, signs_of
from local_dp.queries.strings import CUT, _texts
from local_dp.queries.tables import Category
from local_dp.records import Records, absent

ANY = st.text(st.sampled_from("ab1é€😀\x00 \ud800\udfffz"), max_size=9)
LABELS = st.lists(ANY, min_size=2, max_size=8, unique=True)
# numpy's texts never end in it
LISTS = st.lists(ANY.map(lambda text: text.rstrip("\x00")), min_size=2, max_size=8, unique=True)
NUMBERS = [
    0.0,
    -0.0,
    5e-324,
    1e-300,
    0.1,
    0.5,
    1,
    3,
    -3,
    255,
    256,
    2**53,
    2**53 + 1,
    2**63 - 1,
    -(2**63),
    2**64 - 1,
    1e300,
    1.7976931348623157e308,
]
SPECIAL = [np.inf, -np.inf, np.nan]
SPELLED = (
    "True",
    "False",
    "nan",
    "inf",
    "1_0",
    "+1",
    " 1",
    "1.0",
    "1e300",
    "0.10000000149011612",
    "0.0999755859375",
    "١",
)


@pytest.mark.parametrize(
    ("numbers", "texts"),
    [
        ([20200100.0, 20200101.0, 20200102.0], ["20200100", "20200101", "20200102"]),
        ([0, 1 / 3, 2 / 3, 1], ["0", "0.3333333", "0.6666667", "1"]),
        ([-0.1, 0.1 - 0.1 - 1e-17, 0.1, 0.1 + 0.2], ["-0.1", "0", "0.1", "0.3"]),
        ([1e6, 1.0000001e6], ["1000000", "1000000.1"]),
        ([1e-300, 2e-300, 1e300], ["1e-300", "2e-300", "1e+300"]),
        ([0.1], ["0.1"]),
    ],
)
def test_neighbouring_ends_have_short_texts_of_their_own(
    numbers: list[float], texts: list[str]
) -> None:
    assert apart(numbers) == texts


@settings(max_examples=150, derandomize=True, database=None)
@given(LISTS, LABELS, st.integers(9, 30))
@example(["a", ""], ["a", "a\x00", "\x00"], 9)
def test_texts_compare_as_numpy_compares_them(
    entries: list[str], labels: list[str], wide: int
) -> None:
    texts = np.array(entries, dtype=f"U{wide}")
    places = [labels.index(text) if text in labels else -1 for text in entries]
    assert Category("x", tuple(labels)).places(Records({"x": texts})).tolist() == places
    assert absent(texts).tolist() == [not text for text in entries]
    for other in (labels[0], texts[::-1].copy()):
        assert np.array_equal(signs_of(texts, other), (texts > other).astype(int) - (texts < other))


def test_letters_below_530_are_lowered() -> None:
    assert lowered(np.array(["AŽԮ\u0530İẞ"])).item() == "ažԯ\u0530İẞ"


def _cut(text: str, size: int) -> bytes:
    """Whole characters, and the byte 255 where the text is too long."""
    octets = text.encode("utf-8", "replace")
    if len(octets) <= size:
        return octets.ljust(size, b"\x00")
    first = octets[:size]
    end = next(place for place in range(size - 1, -1, -1) if first[place] >> 6 != 2)
    return (first[:end] + bytes([CUT])).ljust(size, b"\x00")


@settings(max_examples=150, derandomize=True, database=None)
@given(LISTS, st.integers(1, 12))
def test_a_text_becomes_its_first_bytes(entries: list[str], size: int) -> None:
    rows = _texts(np.array(entries, dtype="U9"), size)
    assert [row.tobytes() for row in rows] == [_cut(text, size) for text in entries]


@pytest.mark.parametrize("kind", ["f8", "f4", "f2", "i8", "i4", "i1", "u8", "u4", "u1", "?"])
def test_a_number_has_the_label_that_it_prints_as(kind: str) -> None:
    """All digits of a whole number, the fewest of the type or of a double, or 17; True and False
    among fractions. Of several labels the first counts; a label that is spelled otherwise is
    nobody's.
    """
    if kind[0] == "f":
        with np.errstate(all="ignore"):
            column = np.array([*NUMBERS, *SPECIAL]).astype(kind)
        forms = [_forms(value + 0) for value in column]
    else:
        low, high = (0, 1) if kind == "?" else (np.iinfo(kind).min, np.iinfo(kind).max)
        whole = [int(each) for each in NUMBERS if each == int(each)]
        column = np.array([each for each in whole if low <= each <= high], dtype=kind)
        forms = [{str(value)} for value in column]
    labels = tuple(dict.fromkeys((*SPELLED, *map(str, NUMBERS), *sorted(set().union(*forms)))))
    for order in (labels, labels[::-1]):
        expected = [
            next(place for place, label in enumerate(order) if label in own) for own in forms
        ]
        assert Category("x", order).places(Records({"x": column})).tolist() == expected


def _forms(value: np.floating) -> set[str]:
    """The labels of a fraction."""
    double = float(value)
    truths = {1.0: {"True"}, 0.0: {"False"}}
    return {as_label(value), str(value), str(double), f"{double:.17g}", *truths.get(double, ())}


def test_labels_of_one_hash_get_another_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the first hashes are bad, no two labels meet, and a text that meets a label is
    compared in full."""
    labels, calls = ("a", "b", "c"), list[int]()

    def bad(words: np.ndarray, salt: int) -> np.ndarray:
        calls.append(salt)
        return words[:, 0] >> np.uint64(63 if len(set(calls)) < 3 else 42)

    monkeypatch.setattr("local_dp.queries.labels._hashed", bad)
    texts = np.array(["a", "b", "c", "d", "ab"])
    assert Listed(labels, texts.dtype).places(texts).tolist() == [0, 1, 2, -1, -1]
    assert len(set(calls)) >= 3
