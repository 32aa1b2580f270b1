"""`ldp.randomizer`: reports of one's own values, as in a run, and estimates from them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import local_dp as ldp
from local_dp.arrays import Ints, Words
from local_dp.bounds.tails import normal_quantile
from local_dp.domains import Domain
from local_dp.errors import RefusedError
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import (
    CHUNK,
    Cohort,
    LocalQuery,
    chunk_digest,
    round_digest,
)
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.populations.finite import Rows
from local_dp.queries.query import Query
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.records import Records, chunks
from tests.support.wrong import wrong

HERE = "local_dp.api.randomizer:Privatizer"
FAILURE = 1e-6  # of a statistical test of a right program; seeds are fixed


@dataclass(frozen=True)
class Column(Query):
    """The value itself, in the columns c0, c1, ..."""

    name = "column"
    own: Domain

    @property
    def domain(self) -> Domain:
        return self.own

    def __call__(self, records: Records) -> Ints:
        columns = [records.numbers(f"c{place}") for place in range(getattr(self.own, "d", 1))]
        return np.stack(columns, -1).reshape(self.own.shape(len(records))).astype(np.int64)


def _members(randomizer: Randomizer, n: int) -> Ints:
    """Values of the domain at random, a fixed seed."""
    members = randomizer.domain.some(100)
    chosen: Ints = members[np.random.default_rng(3).integers(0, len(members), n)]
    return chosen


def _as_given(randomizer: Randomizer, values: Ints) -> Any:
    """The same values as a person gives them."""
    is_number = randomizer.domain.kind in ("levels", "cube", "ball")
    return values / randomizer.domain.high if is_number else values


RUNS = {
    "grr": (GRR(1.0, k=5), CHUNK + 1000),  # two chunks
    "hadamard": (RANDOMIZERS.build("hadamard", {"epsilon": 1.0, "k": 5}), CHUNK + 1000),
    **{
        name: (RANDOMIZERS[name].example(1.0), 2000)
        for name in ("olh", "oue", "blh", "piecewise", "one-bit-mean", "random-coordinate")
    },
}


@pytest.mark.parametrize("name", RUNS)
@wrong(f"{HERE}._report", "start, values", "start + 1, values", "words of the next", at="grr")
@wrong(f"{HERE}.privatize", "int(seed)", "1 + int(seed)", "other coins", at="hadamard")
def test_a_seed_gives_the_reports_of_a_run(name: str) -> None:
    """Digest and estimate are those of the population tier for clients with the same values."""
    inner, n = RUNS[name]
    values = _members(inner, n)
    table = {f"c{place}": column for place, column in enumerate(values.reshape(n, -1).T)}
    oracle = PopulationOracle(Rows(Records(table)), KeyedNoise(9), 9, 1.0)
    (tally,) = oracle.answer((LocalQuery(Column(inner.domain), inner, Cohort(0, n)),))

    own = ldp.randomizer(inner)
    reports: Any = own.privatize(_as_given(inner, values), seed=9)
    answers = reports["report"] if inner.uses_coins else reports
    parts = [chunk_digest(inner, answers[start:stop]) for start, stop in chunks(0, n, CHUNK)]
    assert round_digest(parts) == oracle.rounds[0].digest
    np.testing.assert_array_equal(own.estimate(reports).value, inner.estimate(tally).value)


@wrong(f"{HERE}.estimate", "coins[start:stop]", "coins[start:stop] + np.uint64(1)", "another coin")
def test_every_randomizer_estimates_its_own_reports() -> None:
    """At 2,000 values, by a seed and by the system's entropy: beyond the threshold with probability
    1e-9 over all, by normal tails."""
    apart: list[float] = []
    for name in RANDOMIZERS.built_in:
        inner = RANDOMIZERS[name].example(1.0)
        values = _members(inner, 2000)
        own, truths = ldp.randomizer(inner, unverified=True), inner.truths(values).mean(axis=0)
        for seed in (1, None):
            estimate = own.estimate(own.privatize(_as_given(inner, values), seed=seed))
            errors = np.broadcast_to(estimate.standard_error, np.shape(estimate.value))
            gap = np.abs(estimate.value - truths).ravel()
            apart += (gap / np.maximum(errors, 1e-3).ravel()).tolist()
    assert max(apart) < normal_quantile(1e-9 / (2 * len(apart)))


@pytest.mark.parametrize(
    ("name", "settings"), [("piecewise", {"steps": 7}), ("sampled-signs", {"d": 2, "steps": 4})]
)
@wrong(
    "local_dp.domains:Domain.discretize",
    "np.floor(places + shift)",
    "np.rint(places)",
    "to the nearest point",
    at="piecewise-settings0",
)
def test_no_bias_on_a_coarse_lattice(name: str, settings: dict[str, Any]) -> None:
    """All clients hold one number between two points of the lattice: the mean of the placed ones is
    it, within the error of a rounding, a coin of n tosses."""
    own, n = ldp.randomizer(name, epsilon=8, **settings), 50_000
    steps, row = own.randomizer.domain.high, own.randomizer.domain.shape(n)
    z = normal_quantile(FAILURE / 8)
    places = own._points_of(np.full(row, 0.31), KeyedNoise(2), 0)
    assert (np.abs(places.mean(axis=0) / steps - 0.31) < z / (2 * steps * n**0.5)).all()


def test_one_value_and_many() -> None:
    """One value gives one report; lists, tuples, arrays and series are many; reports of one value
    each are put together again."""
    own = ldp.randomizer("hadamard", k=4)
    many = [own.privatize(kind([0, 3, 2]), seed=1) for kind in (list, tuple, np.array, pd.Series)]
    assert all((each == many[0]).all() for each in many)
    singles = [own.privatize(3) for _ in range(500)]
    assert np.shape(singles[0]) == ()
    estimate = own.estimate(singles)
    assert abs(estimate.value[3] - 1) < normal_quantile(FAILURE / 2) * estimate.standard_error[3]
    assert len(np.atleast_1d(own.privatize([]))) == 0
    assert ldp.randomizer("random-coordinate", d=3).privatize([0.5, -1, 0]) is not None
    assert own.estimate(singles[0]).n == 1


@wrong(
    f"{HERE}.privatize",
    "SystemNoise() if seed is None else KeyedNoise(seed)",
    "KeyedNoise(seed or 1)",
    "a seed that nobody gave",
)
@wrong(f"{HERE}.privatize", "fresh()[:KEY]", "bytes(KEY)", "the same coins each time")
def test_without_a_seed_nothing_repeats() -> None:
    """Two arrays of 64 reports of equal odds, and two of coins, are equal with probability 2^-64 or
    so."""
    direct, with_coin = (ldp.randomizer(name, k=4, epsilon=0.01) for name in ("grr", "hadamard"))
    assert not np.array_equal(direct.privatize([0] * 64), direct.privatize([0] * 64))
    first, second = (with_coin.privatize([0] * 64) for _ in range(2))
    assert not {coin for coin, _ in first.tolist()} & {coin for coin, _ in second.tolist()}
    assert "NOT private" in repr(direct)


SECRET = 987_654.25


@pytest.mark.parametrize(
    "name", ["grr", "piecewise", "random-coordinate", "privunit", "signed-blocks"]
)
@wrong(f"{HERE}._array_of", "fits = bool(inside.all())", "fits = True", "every number", at="grr")
def test_other_values_are_refused_in_silence(name: str) -> None:
    """One line, without the value."""
    own = ldp.randomizer(RANDOMIZERS[name].example(1.0), unverified=True)
    row = own.randomizer.domain.shape(1)[1:]
    for value in (
        SECRET,
        -SECRET,
        float("nan"),
        str(SECRET),
        [SECRET, [SECRET]],
        None,
        [[[SECRET]]],
    ):
        values: Any = np.full(row, value) if isinstance(value, float) else value
        with pytest.raises(ldp.InputError) as error:
            own.privatize(values)
        assert "987" not in str(error.value)
        assert "\n" not in str(error.value)
        assert error.value.__cause__ is None
    with pytest.raises(ldp.InputError):
        ldp.randomizer("privunit", d=2, unverified=True).privatize([0.8, 0.8])


def test_other_reports_are_refused() -> None:
    direct, with_coin = (ldp.randomizer(name, k=4) for name in ("grr", "hadamard"))
    for own, reports in (
        (direct, [4]),
        (direct, [-1]),
        (direct, [[1]]),
        (direct, [0.5]),
        (with_coin, [1]),
    ):
        with pytest.raises(ldp.InputError, match="no reports of"):
            own.estimate(reports)  # type: ignore[arg-type]


def test_law_loss_and_audit() -> None:
    """The law of each coin has sums 1 and the worst ratio e^loss at most."""
    for name in ("grr", "hadamard"):
        own = ldp.randomizer(name, k=4)
        law = own.law()
        np.testing.assert_allclose(law.sum(axis=-1), 1)
        assert np.log((law.max(axis=0) / law.min(axis=0)).max()) <= own.loss().epsilon + 1e-12
    assert own.audit().holds
    with pytest.raises(ldp.InputError, match="no finite table"):
        ldp.randomizer("oue", k=4).law()
    with pytest.raises(ldp.InputError, match="smaller"):
        ldp.randomizer("hadamard", k=4096).law()


class Open(GRR):
    """Reports the value itself."""

    name = "open"

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return values.astype(np.uint8)


@wrong(f"{HERE}._gate", "not self.unverified", "False", "no gate")
def test_the_gate() -> None:
    """A class that lies is refused before any value is read, and said to be unverified else."""
    with pytest.raises(RefusedError, match="unverified=True uses it all the same"):
        ldp.randomizer(Open, k=4).privatize(99)
    own = ldp.randomizer(Open, k=4, unverified=True)
    assert own.privatize(3) == 3
    assert "UNVERIFIED" in repr(own)
    assert not own.audit().holds


def test_a_class_an_instance_and_a_file(tmp_path: Path) -> None:
    """Each makes the same randomizer; an instance takes no parameters."""
    file = tmp_path / "three_answers.py"
    file.write_text(
        "from local_dp.randomizers.frequencies.grr import GRR\n"
        "class Three(GRR):\n    name = 'three'\n"
    )
    forms: list[Any] = ["grr", GRR, "local_dp.randomizers.frequencies.grr:GRR", f"{file}:Three"]
    reports = [ldp.randomizer(which, k=3).privatize([0, 1, 2] * 9, seed=1) for which in forms]
    reports.append(ldp.randomizer(GRR(1.0, k=3)).privatize([0, 1, 2] * 9, seed=1))
    assert all(np.array_equal(each, reports[0]) for each in reports)
    with pytest.raises(ldp.InputError, match="is made already"):
        ldp.randomizer(GRR(1.0, k=3), k=4)
