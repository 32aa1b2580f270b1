"""Shares of more than 4,096 labels: estimates, numbers of clients, files of labels, refusals."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import local_dp as ldp
from local_dp.bounds.frequencies import frequency_clients, parities_variance
from local_dp.bounds.tails import normal_tail
from local_dp.cube import parity
from local_dp.domains import MAX_SYMBOLS
from local_dp.protocols.surveys.frequency import Frequency
from local_dp.randomizers.evidence import entries, exact_ratio
from local_dp.randomizers.frequencies.wide_hashing import WideHashing, best_parities
from local_dp.server.round import Round
from local_dp.wire import MAX_BYTES, Gone
from tests.support.inputs.refusals import refuse
from tests.support.wrong import wrong

K, N = 5000, 20_000
FAILURE = 1e-7
WORDS = [f"http://x.org/{place};a" for place in range(K)]


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 6.0])
def test_a_million_labels_are_cheap_to_verify(epsilon: float) -> None:
    """Of 2^20 labels the channel of the codes alone is enumerated, and its ratio is at most
    e^epsilon. The variance for a rare label is at most 8 % above 4 E / (E - 1)^2."""
    oracle, growth = WideHashing(epsilon, length=20), np.exp(epsilon)
    assert entries(oracle) <= 2**20
    assert float(exact_ratio(oracle)) <= growth
    variance = parities_variance(epsilon, oracle.parities, 0.0)
    assert variance <= 1.08 * 4 * growth / (growth - 1) ** 2


@wrong(
    "local_dp.randomizers.frequencies.wide_hashing:WideHashing._rows",
    "self._taps",
    "np.uint64(1)",
    "the later rows are rotations, which fix some labels",
    at="9",
)
@pytest.mark.parametrize("length", [9, 20])
def test_labels_share_a_code_under_one_coin_in_2_to_the_b(length: int) -> None:
    """Codes are linear in the coin and in the label. No nonzero sum of bits of a difference's code
    vanishes at all 64 unit coins, so codes of two labels are equal with probability 2^-b,
    exactly."""
    oracle, labels = WideHashing(6.0, length=length), np.linspace(1, (1 << length) - 1, 511)
    units = np.uint64(1) << np.arange(64, dtype=np.uint64)
    codes = oracle.encode(labels.astype(np.int64)[:, None], units).astype(np.uint16)
    for choice in range(1, 1 << oracle.parities):
        assert parity(codes & np.uint16(choice)).any(axis=1).all()


@wrong(
    "local_dp.randomizers.places:WholeCoin.draw_tally",
    "values[places]",
    "values[places // 2]",
    "half of the clients answer for others",
    at="aggregate",
)
@pytest.mark.parametrize("tier", ["population", "aggregate"])
def test_estimates_of_many_labels(tier: str) -> None:
    """Every share is within Bernstein's bound for a mean of reports between two ends, all with
    failure probability 1e-7."""
    result = ldp.run("frequency", k=K, clients=N, epsilon=2, seed=3, tier=tier, raw=True)
    data = result.data["result"]
    away = np.abs(np.subtract(data["estimate"], data["truth"]))
    oracle, rate = WideHashing(2.0, length=(K - 1).bit_length()), np.log(2 * K / FAILURE)
    ends = oracle.estimate(oracle.draw_tally({0: 1}, np.random.default_rng(0))).ends
    assert ends is not None
    reach = np.sqrt(2 * rate) * np.array(data["standard_error"])
    assert len(away) == K
    assert (away < reach + (ends[1] - ends[0]) * rate / (3 * N)).all()


@wrong(
    "local_dp.bounds.frequencies:frequency_clients",
    "4 * count",
    "4",
    "as if there were one label",
)
def test_the_clients_suffice_for_all_labels() -> None:
    """At the default number of clients the error of some label exceeds the tolerance with
    probability 5 % at most, under laws that are uniform on some labels: a sum of normal tails."""
    n, b = frequency_clients(1.0, K, 0.05, 0.05), best_parities(1.0, 13)
    for frequent in (1, 2, 8, 64, 100, K):
        tails = [
            count * 2 * normal_tail(0.05 * (n / parities_variance(1.0, b, share)) ** 0.5)
            for count, share in ((frequent, 1 / frequent), (K - frequent, 0.0))
        ]
        assert sum(tails) <= 0.05
    assert 1 <= n / frequency_clients(1.0, MAX_SYMBOLS, 0.05, 0.05) < 1.7


def test_labels_from_a_file(tmp_path: Path) -> None:
    """A text column of 5,000 labels, read from a file or from the table: all are in the data, the
    largest on the screen, first; values that the file lacks are of the label (other)."""
    table = {"word": WORDS + WORDS[4000:4001] * K}
    file = tmp_path / "labels.txt"
    file.write_text("\n".join([*WORDS, ""]), "utf-8")
    count = partial(ldp.run, "frequency", table, column="word", epsilon=8, seed=1)
    whole = count(labels=file)
    assert whole.data["result"]["labels"] == WORDS
    assert f"{K - 40} more" in str(whole)
    assert str(whole).split("─\n")[1].startswith(WORDS[4000])
    assert sorted(count(labels_from_data=True).data["result"]["labels"]) == sorted(WORDS)
    assert not set(WORDS) & (Frequency(column="word", labels=tuple(WORDS)).reads or set())
    file.write_text("\n".join(WORDS[3990:4010]), "utf-8")
    some = count(labels=file, other="category").data["result"]
    assert some["labels"] == [*WORDS[3990:4010], "(other)"]
    assert abs(some["estimate"][-1] - 0.498) < 0.1


@pytest.mark.filterwarnings("ignore:Pydantic serializer")  # a list stands for a text
def test_refusals(tmp_path: Path) -> None:
    """One line each, with what to do."""
    count = partial(ldp.run, "frequency", {"word": WORDS}, column="word", epsilon=1)
    long, many = (
        cast(Any, SimpleNamespace(number=1, request=partial(Gone.model_construct, run=run)))
        for run in ("r" * MAX_BYTES, ("r",) * ((1 << 16) + 1))
    )
    refuse(
        ("heavy-hitters", count),
        ("one label on each line", lambda: count(labels=tmp_path / "none")),
        ("wide-hashing", lambda: count(labels=WORDS, randomizer="oue")),
        ('missing="category"', lambda: count(labels=WORDS, missing="exclude")),
        ("4194304", lambda: Frequency(k=(1 << 22) + 1)),
        ("1048576 is the most.*fewer labels", lambda: Round.check_size(long)),
        ("65536.*fewer labels", lambda: Round.check_size(many)),
        ("more than 1024 shares", lambda: ldp.compare("frequency", k=10**6)),
    )
