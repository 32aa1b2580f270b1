"""A command is its function: as JSON it prints the same data."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import local_dp as ldp
from tests.support.long import short
from tests.support.runs.command import local_dp
from tests.support.runs.people import written

OLD = "job == 'baker'"
CASES: dict[str, Callable[[str], Any]] = {
    "price 'approximate 0.1 1e-4 x 10' --delta 9.999e-4": lambda path: ldp.price(
        "approximate 0.1 1e-4 x 10", delta=9.999e-4
    ),
    "price 'pure 0.1 x 100' --epsilon 3": lambda path: ldp.price("pure 0.1 x 100", epsilon=3),
    "shuffle grr --set k=3 --clients 1000": lambda path: ldp.shuffled("grr", k=3, clients=1000),
    "shuffle binary-rr --clients 1000 --shuffled 0.2": lambda path: ldp.shuffled(
        "binary-rr", clients=1000, together=0.2
    ),
    "mix frequency --k 4 --clients 500 --epsilon 2 --seed 3": lambda path: ldp.mix(
        "frequency", k=4, clients=500, epsilon=2.0, seed=3
    ),
    "plan survey --epsilon 2 --accuracy 0.04": lambda path: ldp.plan(
        "survey", epsilon=2, accuracy=0.04
    ),
    "plan mean --epsilon 4 --p 0.1 --population made-up": lambda path: ldp.plan(
        "mean", epsilon=4, of="made-up", p=0.1
    ),
    "plan survey --records TABLE --question OLD": lambda path: ldp.plan(
        "survey", of=path, question=OLD
    ),
    "attack reconstruct --records TABLE --question OLD --noise 4 --seed 3": lambda path: (
        ldp.attack.reconstruct(path, OLD, noise=4.0, seed=3)
    ),
    "attack trace --records TABLE --question OLD --members 5 --noise 0 --seed 1": lambda path: (
        ldp.attack.trace(path, OLD, members=5, noise=0.0, seed=1)
    ),
}


@pytest.mark.parametrize(
    "texts", short(CASES, lambda texts: texts.startswith(("plan survey --epsilon", "price 'pure")))
)
def test_a_command_is_its_function(texts: str, tmp_path: Path) -> None:
    path = str(written(tmp_path))
    words = [{"TABLE": path, "OLD": OLD}.get(word, word) for word in shlex.split(texts)]
    done = local_dp(*words, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(json.dumps(CASES[texts](path).to_dict()))
