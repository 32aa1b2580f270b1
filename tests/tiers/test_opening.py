"""What is rehearsed before the first fork is what the run asks first; no record is told for it, and no client's account is another's."""

from itertools import count
from typing import Any

import numpy as np
import pytest

from local_dp.clients import rehearsal, verification_budget
from local_dp.clients.prefork import Opening
from local_dp.clients.rehearsal import Rehearsal
from local_dp.experiments.tiers.settings import Randomness, Settings
from local_dp.interaction import Game
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.populations.table import Rows
from local_dp.protocols.registry import PROTOCOLS
from local_dp.queries.registry import QUERIES
from local_dp.queries.tables import Category, Question
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.randomizers.with_coin import WithCoin
from local_dp.records import Records
from local_dp.registry import Registry
from local_dp.wire import Reply
from tests.support.inputs.builders import SEED, request, role, small, survey_query, yes_records


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the queries and randomizers that are built from now on, in a process that keeps none yet."""
    names, build = list[str](), Registry.build
    for kept in ("_FITTING", "_VERIFIED"):
        monkeypatch.setattr(verification_budget, kept, verification_budget._Kept())

    def noted(registry: Registry[Any], name: str, params: Any) -> Any:
        names.append(name)
        return build(registry, name, params)

    monkeypatch.setattr(Registry, "build", noted)
    return names


@pytest.mark.parametrize("name", PROTOCOLS)
def test_what_a_run_asks_first_is_made_before(made: list[str], name: str) -> None:
    """After the rehearsal of a run's opening a member answers its first ask, and builds neither the query nor the randomizer."""
    protocol = small(name)
    population = protocol.synthetic(20, SEED)
    (first, *_) = queries = Game(Settings(protocol, population, 1.0, Randomness(SEED, False)).algorithm()).queries or ()
    made.clear()
    opening = Opening.of(dict(population.batch(0, 1).types), queries)
    Rehearsal(Opening.from_bytes(opening.to_bytes())).answer()
    assert made[:2] == [first.query.name, first.randomizer.name]
    made.clear()
    (reply,) = role(population.batch(0, 1), budget=24.0).handle(request(first.restricted(0, 1)))
    assert isinstance(reply, Reply)
    assert made == ([WithCoin.name] if isinstance(first.randomizer, WithCoin) else []), "whoever draws a coin for another's randomizer is made by each"


def test_an_opening_of_another_question_spares_nothing(made: list[str]) -> None:
    """The wrong twin: where something else was rehearsed, both are built."""
    Rehearsal(Opening()).answer()
    made.clear()
    asked = LocalQuery(Question("yes == 0"), BinaryRR(0.5), Cohort(0, 1))
    assert isinstance(role(yes_records(1)).handle(request(asked))[0], Reply)
    assert made == [Question.name, BinaryRR.name]


def test_an_opening_holds_no_record() -> None:
    """It is the same for any two tables of one shape: names and types, and the public question."""
    told = set()
    for seed in (1, 2):
        drawn = np.random.default_rng(seed)
        rows = Rows(Records({"age": drawn.random(9), "town": drawn.choice(["Aar", "Ulm"], 9), "yes": drawn.integers(0, 2, 9, dtype=np.uint8)}))
        told.add(Opening.of(dict(rows.batch(0, 1).types), [survey_query(9)]).to_bytes())
    assert len(told) == 1
    assert Opening.from_bytes(told.pop()).types == {"age": "<f8", "town": "<U3", "yes": "|u1"}


def test_what_cannot_be_told_on_a_command_line_is_not() -> None:
    """A question of 40,000 characters, and one with parameters that are no data: the opening is a survey's, and each client judges what it is asked."""
    long = Category("town", tuple(f"{place:0>400}" for place in range(100)))
    asked = LocalQuery(long, GRR(1.0, k=100), Cohort(0, 9))
    assert Opening.of({"town": "<U3"}, [asked]) == Opening()
    object.__setattr__(long, "spare", (object(),))
    object.__setattr__(long, "labels", ("a",) * 99)
    assert Opening.of({"town": "<U3"}, [asked]) == Opening()
    assert Opening.of({"town": "<U3"}, []) == Opening()


def test_clients_of_a_process_share_what_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Built-in randomizers and queries are one object for all who are asked the same; those of a package are each client's own. What each counts is alike."""
    for kept in ("_FITTING", "_VERIFIED"):
        monkeypatch.setattr(verification_budget, kept, verification_budget._Kept())

    class Own(BinaryRR):
        name = "own"

    class Asked(Question):
        name = "asked-of-a-package"

    for registry, kind in ((RANDOMIZERS, Own), (QUERIES, Asked)):
        monkeypatch.setitem(registry._loaded, kind.name, kind)
    for query, randomizer, shared in ((Question, BinaryRR, True), (Asked, Own, False)):
        asked = LocalQuery(query("yes == 1"), randomizer(1.0), Cohort(0, 1))
        members = [role(yes_records(1)) for _ in range(3)]
        for member in members:
            assert isinstance(member.handle(request(asked))[0], Reply)
        (made,) = zip(*(list(member.work._built._made.values()) for member in members), strict=True)
        fitting = [member.work.query(query.name, asked.query.params(), member.schema) for member in members]
        assert (len(set(map(id, made))) == 1, len(set(map(id, fitting))) == 1) == (shared, shared)
        assert len({member.work.done for member in members}) == 1
        assert members[0].work.done > 0


def test_a_query_fits_the_columns_it_was_tried_on(made: list[str]) -> None:
    """What fits one table is tried again on another, and refused where it does not fit."""
    asked = request(LocalQuery(Question("town == 'Ulm'"), BinaryRR(1.0), Cohort(0, 1)))
    codes = [role(Records({name: np.array([value])})).handle(asked)[0] for name, value in (("town", "Ulm"), ("town", 3.0), ("age", 3.0), ("town", "Aar"))]
    assert [getattr(each, "code", "") for each in codes] == ["", "bad-query", "bad-query", ""]
    assert made == [Question.name, BinaryRR.name, Question.name, Question.name]


def test_what_is_asked_again_is_kept(made: list[str]) -> None:
    """Two questions take turns, one always the same and one always another: the first is built once in forty rounds, and the others once each."""
    member = role(yes_records(1), budget=24.0)
    for number in range(40):
        text = f"yes == {number // 2 + 1}" if number % 2 else "yes == 1"
        asked = LocalQuery(Question(text), BinaryRR(0.5), Cohort(0, 1))
        assert isinstance(member.handle(request(asked, number=number + 1))[0], Reply)
    assert made.count(Question.name) == 20
    assert made.count(BinaryRR.name) == 1


def test_what_takes_long_is_not_rehearsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question of a package that takes longer than an answer may is left to the round: each child would ask it twice."""
    monkeypatch.setattr(rehearsal, "_SHORT", 5.0)
    opening = Opening.of({"yes": "|u1"}, [survey_query(9, randomizer=BinaryRR(0.5))])
    assert Rehearsal.of(opening).opening == opening
    times = count(0.0, 6.0)
    monkeypatch.setattr("local_dp.clients.rehearsal.time.perf_counter", lambda: next(times))
    assert Rehearsal.of(opening).opening == Opening()
