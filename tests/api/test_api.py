"""The front door: a person's own table in a line of Python, whatever frame it is in, a result that
speaks for itself, and its figure."""

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import local_dp as ldp
from local_dp.api.result import MOST, pictured
from local_dp.api.schemas import read_schema
from local_dp.errors import InputError

pytestmark = pytest.mark.usefixtures("warm")

ROWS = 600
AGES = [float(20 + 7 * row % 40) if row % 11 else None for row in range(ROWS)]
CITIES = ["Oslo" if row % 3 else "Rome" for row in range(ROWS)]
PLAIN: dict[str, Any] = {
    "age": AGES,
    "city": CITIES,
    "smokes": [row % 2 == 0 for row in range(ROWS)],
}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([1, 2, 3], "not list"),
        ("nowhere.csv", "no file"),
        ({}, "0 columns"),
        ({"a": []}, "0 rows"),
        ({"a": "text"}, "one value for each record"),
        ({"a": [1, 2], "b": [1]}, "differ in length"),
        ({1: [1], "1": [2]}, "two columns of the table"),
        (polars.Series("l", [[1]]), "column 'l' has cells of type"),
    ],
)
def test_what_is_no_table_is_refused_in_a_line(table: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        ldp.survey(table, "a > 1")


def _results() -> dict[str, ldp.Result]:
    how: dict[str, Any] = {"epsilon": 2.0, "seed": 5}
    return {
        "survey by": ldp.survey(PLAIN, "smokes == 1", by="city", labels=["Oslo", "Rome"], **how),
        "mean": ldp.mean(PLAIN, "age", bounds=(20, 60), missing="exclude", **how),
        "quantiles": ldp.quantiles(
            PLAIN, "age", bounds=(20, 60), at=(0.25, 0.5), missing="exclude", **how
        ),
        "crosstab": ldp.crosstab(
            PLAIN, ["city", "smokes == 1"], labels={"city": ["Oslo", "Rome"]}, **how
        ),
    }


def test_a_result_says_all_there_is_to_say() -> None:
    """The block names protocol, model, randomizer, estimate, who answered and what was spent; data
    and frame hold the same numbers."""
    for name, result in _results().items():
        block, data = repr(result), result.to_dict()
        words = (
            data["protocol"],
            data["model"],
            data["rounds"][0]["randomizers"][0]["name"],
            "estimate",
            "95 % interval",
            "spent",
        )
        assert all(word in block for word in (*words, "600 asked, 600 answered")), (name, block)
        assert json.loads(json.dumps(data, allow_nan=False)) == json.loads(json.dumps(data)), name
        frame = result.to_polars()
        assert frame.columns == ["label", "estimate", "standard_error", "low", "high", "truth"], (
            name
        )
        assert np.allclose(
            np.atleast_1d(np.array(result.estimate, float)),
            frame["estimate"].to_numpy(),
            equal_nan=True,
        ), name
        ends = np.atleast_2d(np.array(result.interval, float))  # an open end is None
        assert np.allclose(ends, frame.select("low", "high").to_numpy(), equal_nan=True), name
        assert "<pre" in result._repr_html_()
        assert ("chi-square" in block) == (name == "crosstab")


def test_it_works_inside_a_running_loop() -> None:
    async def cell() -> ldp.Result:
        return ldp.survey(PLAIN, "smokes == 1", tier="hosts", seed=9, clients=40)

    assert (
        asyncio.run(cell()).estimate
        == ldp.survey(PLAIN, "smokes == 1", seed=9, clients=40).estimate
    )


def test_rows_are_drawn_with_replacement_when_told_to() -> None:
    with pytest.raises(InputError, match="resample"):
        ldp.survey(PLAIN, "smokes == 1", clients=5000)
    more = ldp.survey(PLAIN, "smokes == 1", clients=5000, resample=True, seed=2).to_dict()
    assert more["clients"]["answered"] == 5000
    assert more["table"]["rows"] == ROWS
    assert round(more["result"]["truth"], 9) == 0.5
    assert more["table"] == ldp.survey(PLAIN, "smokes == 1", seed=2).to_dict()["table"]


def test_labels_read_from_the_table_are_owned_up_to() -> None:
    """Where groups were read from the table, the block says so; where they were listed, it does
    not."""
    read = ldp.survey(PLAIN, "smokes == 1", by="city", labels_from_data=True, seed=1)
    explicit = ldp.survey(PLAIN, "smokes == 1", by="city", labels=["Oslo", "Rome"], seed=1)
    assert "read from the table" in repr(read)
    assert "read from the table" not in repr(explicit)
    assert read.estimate == explicit.estimate


def test_a_server_and_a_run_say_when_the_clients_are_few() -> None:
    """The caller's `notice` gets a line before the run; with enough clients it gets none."""
    notices: list[str] = []
    ldp.survey(PLAIN, "smokes == 1", seed=1, notice=notices.append)
    assert len(notices) == 1
    assert (
        "You have 600 clients; +-0.05 at epsilon 1 needs 1,799. Expect about +-0.087." in notices[0]
    )
    ldp.survey(PLAIN, "smokes == 1", seed=1, clients=1799, resample=True, notice=notices.append)
    assert len(notices) == 1


def test_wrong_words_are_answered_with_the_right_ones() -> None:
    for question, words in (
        (lambda: ldp.survey(PLAIN, "smokes == 1", epsilo=2.0), "did you mean 'epsilon'"),  # type: ignore[call-arg]
        (lambda: ldp.mean(PLAIN, "age", bounds=5), r"give \(low, high\)"),
        (lambda: ldp.frequency(PLAIN, "city", labels="Oslo"), "give a list"),
        (
            lambda: ldp.crosstab(PLAIN, ["city", "smokes"], labels={"city": ["Oslo"], "age": [1]}),
            "the columns are city, smokes",
        ),
        (lambda: ldp.mean(PLAIN, "age", bounds=(0, 100)), 'missing="exclude"'),
        (lambda: ldp.survey(PLAIN, "smokes == 1", private=True, seed=1), "takes no seed"),
    ):
        with pytest.raises(InputError, match=words):
            question()  # type: ignore[no-untyped-call]


def test_the_door_is_whole() -> None:
    for name in ldp.__all__:
        assert name == "__version__" or (getattr(ldp, name).__doc__ or "").strip(), name
    assert set(dir(ldp)) >= set(ldp.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(ldp, "nothing")  # noqa: B009  # the text of an attribute that is not there


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"age": "integer"}', "{"])
def test_a_schema_is_an_object_of_three_words(text: str, tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"schema\.json"):
        read_schema(path)


# few clients suffice here, and the warning is not needed
RUN: dict[str, Any] = {"tier": "aggregate", "seed": 1, "notice": str}
PEOPLE = {"age": [20.0, 30.0, 40.0, 40.0] * 100, "town": ["a", "b", "c", "c"] * 100}


@pytest.mark.parametrize("labels", [MOST, MOST + 1, 100])
def test_other_labels_are_summed(labels: int) -> None:
    """Of more than forty labels the last ones are one row, their sum: nothing is lost, and the
    choice does not look at the estimates."""
    data = ldp.frequency(
        PEOPLE, "town", labels=["a", "b", "c", *map(str, range(labels - 3))], **RUN
    ).data
    figure, estimate = pictured(data), data["result"]["estimate"]
    assert len(figure.labels) == MOST
    assert figure.truth is not None
    assert [sum(figure.values), sum(figure.truth)] == pytest.approx([sum(estimate), 1])
    assert list(figure.values[: MOST - 1]) == estimate[: MOST - 1]
    assert (figure.labels[-1] == f"{labels - MOST + 1} others, summed") == (labels > MOST)
    assert math.isnan(figure.lows[-1]) == (labels > MOST)
