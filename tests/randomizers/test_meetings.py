"""How rows of a code meet: pair by pair, by kinds and by matrices it is the same."""

import numpy as np
import pytest

from local_dp.arrays import Ints
from local_dp.errors import RefusedError
from local_dp.randomizers import evidence as met
from local_dp.randomizers.evidence import meetings
from local_dp.randomizers.frequencies.unary import OUE

PAIRS = ((0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1))


def by_hand(code: Ints) -> set[tuple[int, ...]]:
    """Every way in which two different rows meet, counted place by place."""
    rows = code.tolist()
    ways = [(one, other) for place, one in enumerate(rows) for second, other in enumerate(rows) if place != second]
    return {tuple(sum(pair == each for each in zip(one, other, strict=True)) for pair in PAIRS) for one, other in ways}


@pytest.mark.parametrize("share", [0.02, 0.1, 0.4])
@pytest.mark.parametrize("seed", range(8))
def test_rows_meet_as_counted_by_hand(share: float, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On random codes of three symbols the ways are those that are counted by hand, with rows that meet so; and matrices find the same."""
    code = np.random.default_rng(seed).choice(3, (23, 17), p=(1 - 2 * share, share, share))
    found = {meeting.counts: meeting.rows for meeting in meetings(code, PAIRS)}
    assert set(found) == by_hand(code)
    for counts, (one, other) in found.items():
        assert counts == tuple(int(((code[one] == a) & (code[other] == b)).sum()) for a, b in PAIRS)
    monkeypatch.setattr(met, "MAX_KINDS", 0)
    assert set(found) - {(0,) * 6} == {meeting.counts for meeting in meetings(code, PAIRS)} - {(0,) * 6}  # which counts a row with itself too


def test_unary_encoding_is_enumerated_without_a_product_of_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 4,096 bits no two rows share a place, so nothing is counted pair by pair; with matrices it would be refused here."""
    monkeypatch.setattr(met, "_of_all", None)
    randomizer = OUE(1.0, k=4096)
    (meeting,) = meetings(randomizer.code, ((0, 1), (1, 0)))
    assert meeting.counts == (1, 1)
    assert met.exact_epsilon(randomizer) == pytest.approx(1.0, abs=1e-6)


def test_a_code_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """More symbols, pairs of rows or pairs of symbols than can be counted are refused."""
    with pytest.raises(RefusedError, match="too many to enumerate"):
        list(meetings(np.random.default_rng(1).integers(0, 8, (70, 4000)), [(a, b) for a in range(8) for b in range(8) if a != b]))
    monkeypatch.setattr(met, "MAX_ENTRIES", 10)
    with pytest.raises(RefusedError, match="too large"):
        meetings(np.eye(4, dtype=np.int64), ((0, 1), (1, 0)))
