"""The functions for a table, as types: a script of a user is checked by mypy, not run.

Each `type: ignore` marks a call that must NOT type-check.
"""

from typing import assert_type

import local_dp as ldp


def asked(table: dict[str, list[float]]) -> tuple[ldp.Result, ...]:
    """Parameters and options of a run, by name; lists, mappings and pairs where they are meant."""
    assert_type(ldp.survey(table, "age > 30", missing="exclude", seed=1), ldp.Result)
    ldp.survey(table, "age > 30", by="city", weights={"Rome": 3.0, "Oslo": 1})
    ldp.frequency(table, column="city", labels=["Oslo", "Rome"], epsilon=2, stores="folder")
    ldp.mean(table, ["age", "size"], bounds={"age": (0, 9), "size": (1, 2)}, missing="middle")
    ldp.quantiles(table, "age", bounds=(0, 99), at=0.5, rounds="one")
    ldp.learn(table, "ill", bounds={"age": (0, 99)}, parameters={"depth": 4})
    ldp.curate.median(table, "age", missing="exclude", epsilon=1.0)
    return ldp.masked_parity(6, tier="aggregate"), ldp.run("survey", table, question="age > 30")


def refused(table: dict[str, list[float]]) -> None:
    """A wrong word, a wrong name, a missing question and a missing range."""
    ldp.survey(table, "age > 30", missing="drop")  # type: ignore[arg-type]
    ldp.survey(table, "age > 30", epsilo=1)  # type: ignore[call-arg]
    ldp.survey(table)  # type: ignore[call-arg]
    ldp.histogram(table, "age")  # type: ignore[call-arg]
