"""Messy data under a named policy, and the identity test: no bias, levels and powers as promised,
refusals that name the choices."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from local_dp.arrays import Floats
from local_dp.errors import InputError
from local_dp.populations.finite import Finite, Resampled, Rows
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.protocols.surveys.compare import Compare
from local_dp.protocols.surveys.frequency import Crosstab, CrossTable, Frequency, Histogram
from local_dp.protocols.surveys.identity import Identity, row_statistic
from local_dp.protocols.surveys.policies import Launch, labels_in
from local_dp.protocols.surveys.survey import StatisticalQueries, Survey
from local_dp.protocols.vectors.mean_vector import Mean
from local_dp.protocols.vectors.workload import Answers, PrefixSums, Workload
from local_dp.records import Records
from tests.support.inputs.refusals import refuse
from tests.support.long import short
from tests.support.runs.protocols import by_client, by_law
from tests.support.wrong import wrong

N, MANY = 3000, 10**12
_GENERATOR = np.random.default_rng(8)
_AGE = _GENERATOR.gamma(9.0, 4.0, N).round(1)  # some beyond 60
# the old are missing more often: the midpoint would be badly wrong
_AGE[_GENERATOR.random(N) < 0.2 + 0.3 * (_AGE > 40)] = np.nan
_CITY = np.where(
    _AGE > 35, "Oslo", _GENERATOR.choice(["Rome", "Bonn", "Lima", ""], N, p=[0.5, 0.2, 0.1, 0.2])
)
TABLE = Records({"age": _AGE, "city": _CITY, "n": np.arange(N) % 7})
PRESENT = ~np.isnan(_AGE)
NAMED = _CITY != ""


def _share(condition: np.ndarray, among: np.ndarray | None = None) -> float:
    return float(condition.mean() if among is None else condition[among].mean())


def _group_mean(city: str) -> float:
    return float(_AGE[PRESENT & (city == _CITY)].mean())


BETWEEN = (_AGE >= 20) & (_AGE < 40)
CASES: dict[str, tuple[LocalProtocol[Any], list[float]]] = {
    "mean of those present": (Mean(column="age", low=0, high=150, missing="exclude"),
    [float(_AGE[PRESENT].mean())]),
    "mean, clipped": (Mean(column="age", low=10, high=40, missing="exclude", outside="clip"),
    [float(np.clip(_AGE[PRESENT], 10, 40).mean())]),
    "mean by group": (
        Mean(column="age", low=0, high=150, missing="exclude", by="city",
        labels=("Oslo", "Rome", "Bonn"), other="exclude"),
        [_group_mean(city) for city in ("Oslo", "Rome", "Bonn")],
    ),
    "survey of those present": (Survey(question="age > 30", missing="exclude"),
    [_share(_AGE > 30, PRESENT)]),
    "survey, open is no": (Survey(question="not age > 30", missing="no"), [_share(_AGE <= 30)]),
    "survey by group": (
        Survey(question="age > 30", missing="exclude", by="city", labels=("Rome", "Bonn"),
        other="exclude"),
        [_share(_AGE > 30, PRESENT & (city == _CITY)) for city in ("Rome", "Bonn")],
    ),
    "sq, open is no": (StatisticalQueries(queries=("age > 30", "n == 3"), missing="no"),
    [2 * _share(_AGE > 30) - 1, 2 * _share(TABLE["n"] == 3) - 1]),
    "labels and a label of their own": (
        Frequency(column="city", labels=("Oslo", "Rome"), other="category", missing="category"),
        [_share(_CITY == "Oslo"), _share(_CITY == "Rome"),
        _share((_CITY == "Bonn") | (_CITY == "Lima")), _share(_CITY == "")],
    ),
    "labels of those present": (
        Frequency(column="city", labels=("Oslo", "Rome"), other="category", missing="exclude"),
        [_share(_CITY == "Oslo", NAMED), _share(_CITY == "Rome", NAMED),
        _share((_CITY == "Bonn") | (_CITY == "Lima"), NAMED)],
    ),
    "histogram with a share of the missing": (
        Histogram(column="age", low=20, high=60, bins=2, missing="category"),
        [_share(_AGE < 20), _share(BETWEEN), _share((_AGE >= 40) & (_AGE <= 60)), _share(_AGE > 60),
        _share(~PRESENT)],
    ),
    "crosstab of complete records": (
        Crosstab(columns=("city", "age > 30"), labels=("Oslo|Rome",), other="category",
        missing="exclude"),
        [
            _share(inside & (old if yes else ~old), PRESENT & NAMED)
            for inside in (_CITY == "Oslo", _CITY == "Rome", (_CITY == "Bonn") | (_CITY == "Lima"))
            for old in (_AGE > 30,)
            for yes in (False, True)
        ],
    ),
    "crosstab with labels of their own": (
        Crosstab(columns=("city", "age > 30"), labels=("Oslo|Rome|Bonn|Lima",), missing="category"),
        [
            _share((city == _CITY) & answer)
            for city in ("Oslo", "Rome", "Bonn", "Lima", "")
            for answer in (_AGE <= 30, _AGE > 30, ~PRESENT)
        ],
    ),
    "a workload with labels of their own": (
        Workload(columns=("city",), labels=("Oslo|Rome",),
        queries=("1 1 0 0", "0 0 1 0", "0 0 0 1"), other="category", missing="category"),
        [_share((_CITY == "Oslo") | (_CITY == "Rome")),
        _share((_CITY == "Bonn") | (_CITY == "Lima")), _share(_CITY == "")],
    ),
    "two groups of those with an answer": (
        Compare(question="age > 30", by="city", labels=("Rome", "Bonn"), missing="exclude",
        other="exclude"),
        [
            _share(_AGE > 30, PRESENT & (_CITY == "Rome")),
            _share(_AGE > 30, PRESENT & (_CITY == "Bonn")),
            _share(_AGE > 30, PRESENT & (_CITY == "Bonn")) - _share(_AGE > 30,
            PRESENT & (_CITY == "Rome")),
        ],
    ),
}  # fmt: skip


def _values_of(protocol: LocalProtocol[Any]) -> tuple[Floats, Floats]:
    """The values of a run of 10^12 clients like the rows, and 4.5 standard errors of each."""
    result = by_law(protocol, Resampled(TABLE, MANY, 1), 2.0, 1)
    inside = result.estimate if isinstance(result, CrossTable | Answers) else result
    estimates = inside if isinstance(inside, tuple) else (inside,)
    values = [np.atleast_1d(each.value) for each in estimates]
    errors = [np.atleast_1d(each.standard_error) for each in estimates]
    return np.concatenate(values), 4.5 * np.concatenate(errors)


@wrong(
    "local_dp.queries.cells:Grouped.__call__",
    "nowhere = (group < 0) | absent(records[self.column])",
    "nowhere = group < 0",
    "a missing number counts as the midpoint",
    at="mean of those present",
)
@pytest.mark.parametrize("case", CASES)
def test_every_policy_answers_the_question_without_bias(case: str) -> None:
    """Within 4.5 standard errors (7e-6 a value) and the lattice of plain numpy's truth, which is
    also the truth that is shown."""
    protocol, truth = CASES[case]
    ready = protocol.for_table(Launch(TABLE, False))
    values, limit = _values_of(ready)
    lattice = 2.0**-15 * 150 if isinstance(ready, Mean) else 0.0
    assert np.all(np.abs(values - truth) <= limit + lattice)
    assert np.allclose(np.asarray(ready.truth(Rows(TABLE))), truth, atol=2e-3), (
        "the truth that is shown is not the one a person means"
    )


REFUSED: dict[str, tuple[LocalProtocol[Any], str]] = {
    "a missing number in a mean": (Mean(column="age", low=0, high=150), "missing=exclude"),
    "a number beyond the bounds": (
        Mean(column="age", low=10, high=40, missing="exclude"),
        "outside=clip",
    ),
    "a missing number in a question": (
        Survey(question="age > 30"),
        "missing=exclude .* missing=no",
    ),
    "a missing number in a statistical query": (
        StatisticalQueries(queries=("age > 30",)),
        "missing=no",
    ),
    "an unlisted label": (
        Frequency(column="city", labels=("Oslo", "Rome"), missing="exclude"),
        "other=category",
    ),
    "a missing label": (
        Frequency(column="city", labels=("Oslo", "Rome", "Bonn", "Lima")),
        "missing=category .* missing=exclude",
    ),
    "a missing number in a histogram": (
        Histogram(column="age", low=0, high=100),
        "missing=category",
    ),
    "a missing part of a crosstab": (
        Crosstab(columns=("city", "age > 30"), labels=("Oslo|Rome",), other="category"),
        "missing=category",
    ),
    "an unlisted group": (
        Mean(column="n", low=0, high=7, by="city", labels=("Oslo",)),
        "other=exclude",
    ),
    "a missing part of a workload": (
        Workload(columns=("city",), labels=("Oslo|Rome|Bonn|Lima",)),
        "missing=category",
    ),
    "an unlisted part of a workload": (
        Workload(columns=("city",), labels=("Oslo|Rome",), missing="category"),
        "other=category",
    ),
    "a missing label under a named law": (
        Identity(column="city", labels=("Oslo", "Rome", "Bonn", "Lima")),
        "missing=category",
    ),
    "an unlisted label under a named law": (
        Identity(
            column="city", labels=("Oslo", "Rome"), missing="category", shares=(".5", ".3", ".2")
        ),
        "other=category",
    ),
    "an open question in a comparison": (
        Compare(question="age > 30", by="city", labels=("Oslo", "Rome"), other="exclude"),
        "missing=exclude",
    ),
    "somebody in neither group": (
        Compare(question="n > 3", by="city", labels=("Oslo", "Rome")),
        "other=exclude",
    ),
    "a number that is no prefix sum's": (PrefixSums(column="n", k=5), "another k"),
}


@wrong(
    "local_dp.protocols.surveys.policies:Columns.labels_of_table",
    "table.refuse_missing(self.missing, column, missing_choices)",
    "table.refuse_missing('category', column, missing_choices)",
    "a missing value counts as the first label without anybody having said so",
    at="a missing part of a workload",
)
@wrong(
    "local_dp.protocols.surveys.policies:Launch.refuse",
    "if self.private:",
    "if self.private and any((affects(part).any() for part in self.records.parts())):",
    "a private run's refusal depends on what the records hold",
    at="a missing number in a mean",
)
@pytest.mark.parametrize("case", REFUSED)
def test_what_no_policy_decides_about_is_refused_with_the_choices(case: str) -> None:
    """A simulation counts the records concerned and names the choices; a private run names them
    without looking: the same line for every table."""
    protocol, choices = REFUSED[case]
    refuse(
        (rf"in \d+ of {N} records .*{choices}", lambda: protocol.for_table(Launch(TABLE, False)))
    )
    lines = set()
    plain = PRESENT & (_AGE > 20) & (_AGE < 40) & (_CITY == "Oslo") & (TABLE["n"] < 5)
    for table in (TABLE, TABLE.take(slice(0, 1)), TABLE.take(np.flatnonzero(plain))):
        with pytest.raises(InputError, match="a private run does not look") as error:
            protocol.for_table(Launch(table, True))
        lines.add(str(error.value))
    assert len(lines) == 1, lines


FRACTIONS = np.array([0.1, 0.7, 0.7, np.nan])
LABELLED: list[tuple[np.ndarray, tuple[str, ...], list[float]]] = [
    (FRACTIONS, ("0.1", "0.7"), [0.25, 0.5, 0, 0.25]),
    (FRACTIONS.astype(np.float32), ("0.1", "0.7"), [0.25, 0.5, 0, 0.25]),
    (FRACTIONS, ("0.10000000000000001", "2.0"), [0.25, 0, 0.5, 0.25]),
    (np.array([1, 0, 1, np.nan]), ("True", "False"), [0.5, 0.25, 0, 0.25]),
]


@pytest.mark.parametrize(("column", "labels", "shares"), LABELLED)
def test_labels_of_fractions_count_them(
    column: np.ndarray, labels: tuple[str, ...], shares: list[float]
) -> None:
    """In the fewest digits or in 17; truth values of which one is missing are numbers, and keep
    their labels. Labels from the table have the fewest digits."""
    records = Records({"x": column})
    protocol = Frequency(column="x", labels=labels, other="category", missing="category").for_table(
        Launch(records, False)
    )
    assert protocol.truth(Rows(records)) == pytest.approx(shares)
    assert labels_in(Records({"x": FRACTIONS.astype(column.dtype)}), "x") == ("0.1", "0.7")


IDLE: list[tuple[np.ndarray, tuple[str, ...], str]] = [
    (
        np.array([0.5]),
        ("0.5", "abc"),
        "no value of 'x' can equal the label 'abc'; write a number such as 0.5",
    ),
    (
        np.array([1, 2]),
        ("1", "2.0"),
        "no value of 'x' can equal the label '2.0'; write a whole number such as 2",
    ),
    (
        np.array([True]),
        ("True", "yes"),
        "no value of 'x' can equal the label 'yes'; write True or False",
    ),
    (
        np.array(["2020-06-01"], "M8[us]"),
        ("2020-06-01", "1.6.2020"),
        "no value of 'x' can equal the label '1.6.2020'; write a date such as 2020-06-01",
    ),
    (
        np.array([0.5]),
        ("1", "True"),
        "the labels '1' and 'True' of 'x' are one value; give one of them",
    ),
]


@pytest.mark.parametrize(("column", "labels", "message"), IDLE)
def test_a_label_that_counts_nobody_is_refused(
    column: np.ndarray, labels: tuple[str, ...], message: str
) -> None:
    """By the type alone, in a private run too, whatever becomes of other values. One that a wider
    column could hold is no mistake."""
    for policy in ("refuse", "category", "exclude"):
        for private in (False, True):
            launch = Launch(Records({"x": column}), private)
            refuse((message, partial(launch.refuse_other, policy, "x", labels, "")))
    Launch(Records({"x": np.array([1], np.uint8)}), True).refuse_other(
        "category", "x", ("1", "-1", "300", str(2**64 - 1)), ""
    )
    Launch(Records({"x": np.array([True])}), True).refuse_other("category", "x", ("0", "1"), "")


def test_a_private_run_takes_total_policies_and_reads_no_labels() -> None:
    """Under policies that give every value an answer a private run starts; labels are never read
    from its table."""
    for case, (protocol, _) in CASES.items():
        # those refuse what they may not look for
        total = case not in (
            "crosstab with labels of their own",
            "mean of those present",
            "mean by group",
        )
        if total:
            protocol.for_table(Launch(TABLE, True))
        else:
            with pytest.raises(InputError, match="a private run does not look"):
                protocol.for_table(Launch(TABLE, True))
    for reading in (
        Frequency(column="city", labels_from_data=True),
        Mean(column="n", low=0, high=7, outside="clip", by="city", labels_from_data=True),
    ):
        with pytest.raises(InputError, match="a private run takes nothing public from the table"):
            reading.for_table(Launch(TABLE, True))


@pytest.mark.long
def test_independence_is_tested_at_its_level_and_dependence_is_found() -> None:
    """Of independent columns, p < .05 in 5 % of 100 runs (within 4 binomial deviations); of a
    column and itself, p at its least every time."""
    generator, runs, low = np.random.default_rng(3), 100, 0
    protocol = Crosstab(columns=("a", "b"), labels=("0|1|2", "x|y"))
    for seed in range(runs):
        a = generator.choice(3, 4000, p=[0.6, 0.3, 0.1])
        b = generator.choice(["x", "y"], 4000, p=[0.8, 0.2])
        records = Records({"a": a, "b": b})
        result = by_client(protocol, Rows(records), 1.0, seed)
        assert result.test is not None
        low += result.test.p_value < 0.05
    assert abs(low - 0.05 * runs) < 4 * np.sqrt(0.05 * 0.95 * runs), low
    same = Records({"a": np.arange(4000) % 2, "b": np.where(np.arange(4000) % 2, "x", "y")})
    for seed in range(5):
        result = by_client(protocol, Rows(same), 1.0, seed)
        assert result.test is not None
        assert result.test.p_value == 0.001
        assert result.test.chi_square > 3 * result.test.if_independent


# 95 % and 5 % of 200: beyond these with probability 1e-4 each
RUNS = 200
LEAST_FOUND = 176
MOST_REJECTED = 24


def rejections(protocol: Identity, shares: np.ndarray, clients: int) -> int:
    generator, total = np.random.default_rng(7), 0
    for coin in range(RUNS):
        each = Identity(
            coins=protocol.coins,
            coin=coin,
            k=protocol.k,
            alpha=protocol.alpha,
            shares=protocol.shares,
        )
        population = Finite(
            Records({"symbol": np.arange(protocol.k)}), shares.tolist(), clients, coin
        )
        total += by_law(each, population, 1.0, generator).rejected
    return total


@pytest.mark.parametrize("coins", short(["public", "private"], lambda coins: coins == "private"))
def test_both_errors_are_as_promised(coins: str) -> None:
    """With the clients asked for, uniform is rejected in about 5 % of runs and a law alpha away in
    about 95 %; with a sixth of them it is not found."""
    protocol = Identity(coins=coins, k=32, alpha=0.4)
    n = protocol.clients(1.0)
    away = 1 + 0.8 * (1 - 2 * (np.arange(32) % 2))
    assert rejections(protocol, np.ones(32), n) <= MOST_REJECTED
    assert rejections(protocol, away, n) >= LEAST_FOUND
    assert rejections(protocol, away, n // 6) < LEAST_FOUND


def test_missing_and_unlisted_values_have_named_shares() -> None:
    """A law that leaves the shares of labels of their own open is refused."""
    refuse(
        (
            "no share for other and missing: give all 4",
            lambda: Identity(
                column="city", labels=("Oslo", "Rome"), missing="category", other="category"
            ),
        )
    )


def test_the_statistic_counts_degrees() -> None:
    """Under the named law each drawn row counts 1 on average, whatever its mean: exact over all
    counts of a few reports. Rows nobody drew count nothing."""
    gain, size = 2.0, 5
    for mean in (0.0, 0.6, -1.0):
        chance = (1 + mean / gain) / 2
        counts = np.arange(size + 1)
        one = row_statistic(
            np.asarray(2.0 * counts - size, dtype=np.float64)[:, None],
            np.full((size + 1, 1), float(size)),
            np.full((size + 1, 1), mean),
            gain,
        )
        assert stats.binom.pmf(counts, size, chance) @ one == pytest.approx(1)
    assert row_statistic(np.zeros(2), np.zeros(2), np.zeros(2), gain) == 0


def test_a_policy_that_leaves_nobody_is_refused() -> None:
    nobody = Launch(Records({"age": np.full(3, np.nan)}), False)
    protocol = Survey(question="not age > 30 and age > 20", missing="exclude")
    refuse(("so nobody is left to answer", lambda: protocol.for_table(nobody)))
