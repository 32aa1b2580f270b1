"""P1: charges, kept answers and sessions of a store belong to people, wherever their rows are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from local_dp.api.asking import RunOptions
from local_dp.arrays import Ints
from local_dp.clients.journal import SqliteStore
from local_dp.clients.role import ClientRole
from local_dp.errors import InputError
from local_dp.loss import NANO
from local_dp.noise import StoreNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.memory import Session, repeat_of
from local_dp.protocols.local_protocol import find_protocol
from local_dp.queries.examples import PathStep
from local_dp.queries.tables import Category
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.repeated.memoised import OneOfRounds
from local_dp.records import Records
from local_dp.wire import Reply
from tests.support.inputs.builders import request
from tests.support.runs.stores import (
    AGES,
    FIRST,
    LABEL,
    LATER,
    Doomed,
    close,
    code,
    device,
    forked,
    open_store,
)
from tests.support.wrong import wrong

PEOPLE = 40


def table(people: Ints, ages: Ints | None = None) -> Records:
    """Rows of these people, with ages of their own or these."""
    return Records({"id": people, "age": ((people * 7 % 64) if ages is None else ages).astype(str)})


def host(path: Path, records: Records, person: str = "id", budget: float = 8.0) -> ClientRole:
    store = open_store(path, budget)
    try:
        return ClientRole("host-0", 0, records, StoreNoise(store.secret), store, person=person)
    except InputError:
        store.close()
        raise


def answers(role: ClientRole, number: int, label: str = LABEL, epsilon: float = 0.5) -> bytes:
    """The reports of all its clients, in their order, which is that of their places."""
    (reply,) = role.handle(
        request(
            LocalQuery(
                Category("age", AGES),
                GRR(epsilon, k=64),
                Cohort(0, role.stop),
                repeat_of(label, GRR(epsilon, k=64)),
            ),
            number=number,
        )
    )
    assert isinstance(reply, Reply), reply
    return reply.reports


@wrong(
    "local_dp.clients.places:Owners._bind",
    "self._rows != msgpack.packb(self._mac(b'rows', records.digest()))",
    "False",
    "a table whose rows moved gives each person the answers and the budget of another",
)
def test_a_table_whose_rows_moved_is_refused(tmp_path: Path) -> None:
    """The attack: of a host whose table lost its first row, 500 of 500 differences between people
    were told. Such tables are refused in one line, which names the remedy and no value; a table's
    own rows are not."""
    people, path = np.arange(PEOPLE) + 7_000_000, tmp_path / "a.store"
    role = host(path, table(people), person="")
    reports = answers(role, 1)
    close(role)
    # columns have no order
    role = host(path, Records(dict(reversed(table(people).columns.items()))), person="")
    assert answers(role, 2) == reports
    close(role)
    ages = people * 7 % 64
    others = [table(each) for each in (people[1:], people[::-1], np.append(people, 8_000_000))]
    others.append(table(people, np.where(people == people[3], 1 + ages, ages)))
    for other in (*others, table(people).without("id")):
        with pytest.raises(InputError, match=r"belongs to other rows.*person=COLUMN") as error:
            host(path, other, person="")
        assert "\n" not in str(error.value)
        assert "70000" not in str(error.value)
    assert host(path, table(people), person="").store.ledger.max_spent == 0.5


@wrong(
    "local_dp.clients.places:Owners.places",
    "if entries:\n        self._log.append(entries)",
    "pass",
    "people who joined get other places after a restart",
)
@wrong(
    "local_dp.clients.places:Owners.places",
    "np.array([self._places[digest] for digest in digests])",
    "np.arange(len(digests))",
    "charges and answers go by the row, whoever stands in it",
)
def test_entries_belong_to_people(tmp_path: Path) -> None:
    """Rows move, values change, people join and leave: each person's reports under a label are its
    first one, and each pays for what it was asked."""
    generator, people, path = (
        np.random.default_rng(13),
        np.arange(PEOPLE) + 500,
        tmp_path / "a.store",
    )
    first: dict[int, int] = {}
    spending: dict[int, float] = {}
    for turn in range(12):
        everybody = np.append(people, np.arange(600, 600 + turn))
        present = generator.permutation(everybody)[: PEOPLE - turn] if turn else people
        role = host(path, table(present, generator.integers(0, 64, len(present))))
        # places are in the order of joining
        people_so_far = list(first) + [int(each) for each in present if int(each) not in first]
        order = sorted(map(int, present), key=people_so_far.index)
        for who, answer in zip(order, answers(role, 2 * turn + 1), strict=True):
            spending[who] = spending.get(who, 0.0) + 0.5 * (who not in first)
            assert first.setdefault(who, answer) == answer, "another outcome under the label"
        answers(role, 2 * turn + 2, "", 0.25)
        spending |= {who: spending[who] + 0.25 for who in order}
        life = role.store.ledger._life
        for place, who in enumerate(first):
            assert life.most(place, place + 1) == round(spending[who] * NANO)
        close(role)
    assert len(first) > PEOPLE + 5


def test_a_session_belongs_to_people(tmp_path: Path) -> None:
    """Who has spoken in a session is silent in it under any row: after the rows were turned round,
    those alone speak who joined."""
    path, people = tmp_path / "a.store", np.arange(PEOPLE)

    def asked_in(role: ClientRole, number: int) -> None:
        query = LocalQuery(
            PathStep("01", 1), OneOfRounds(1.0), Cohort(0, role.stop), Session("path")
        )
        assert code(role.handle(request(query, number=number))) == "reply"

    records = Records(
        {
            "id": people,
            "level": np.ones(PEOPLE, dtype=np.uint8),
            "table0": np.full(PEOPLE, 3, dtype=np.uint64),
        }
    )
    role = host(path, records.take(slice(0, 30)))
    asked_in(role, 1)
    close(role)
    role = host(path, records.take(np.arange(PEOPLE)[::-1][:-5]))  # 5 have left, 10 have joined
    asked_in(role, 2)
    assert (
        np.unpackbits(
            np.frombuffer(role.store.memory.speakers.bits("path"), np.uint8), bitorder="little"
        ).sum()
        == PEOPLE
    )
    assert role.store.ledger.max_spent == 1.0


def test_a_person_column_that_names_nobody_is_refused(tmp_path: Path) -> None:
    """A person in two rows, by two writings too, a row without a person, another column: one line,
    which names no person."""
    people, path, ages = (
        np.array([1234567, 2345678, 3456789]),
        tmp_path / "a.store",
        np.array(["1", "2", "3"]),
    )
    names = np.array(["Ann", "Bob", "Eve"])
    close(host(path, Records({"id": people, "age": ages, "name": names})))
    wrong: list[tuple[Records, str, str]] = [
        (
            Records({"id": np.array(["1234567", "2345678", "01234567"]), "age": ages}),
            "id",
            "a person in several rows",
        ),
        (
            Records({"id": np.array(["1234567", " ", "3456789"]), "age": ages}),
            "id",
            "lacks a value in 1 rows",
        ),
        (Records({"id": people, "age": ages, "name": names}), "name", "person=.id."),
        (Records({"id": people, "age": ages}), "", "person=.id."),
        (Records({"age": ages}), "id", "no column"),
    ]
    for records, person, why in wrong:
        with pytest.raises(InputError, match=why) as error:
            host(path, records, person)
        assert not any(
            word in str(error.value) for word in ("1234567", "3456789", "Ann", "Eve", "\n")
        )


def test_a_number_is_one_person_in_every_writing(tmp_path: Path) -> None:
    """Types are read from the values where none are declared: one row more may make texts or
    fractions of a column of whole numbers."""
    writings: list[list[Any]] = [
        [7, 8, 9],
        [7.0, 8.0, 9.0],
        ["007", "8.", "+9"],
        ["7", "8", "9", "B12"],
    ]
    for writing in writings:
        ages = np.full(len(writing), "7")
        role = host(tmp_path / "a.store", Records({"id": np.array(writing), "age": ages}))
        assert role.places.of(0, len(writing)).tolist() == list(range(len(writing)))
        close(role)


def test_a_store_of_one_client_stays_one(tmp_path: Path) -> None:
    """A device's record may change; a table of several rows is another member's."""
    close(device(tmp_path / "a.store", FIRST))
    close(device(tmp_path / "a.store", LATER))
    with pytest.raises(InputError, match="of a single client"):
        host(tmp_path / "a.store", table(np.arange(2)), person="")


def test_people_are_on_the_disk_before_they_answer(tmp_path: Path) -> None:
    """Killed at each step of a join: whoever has answered has a place that stays, and nobody gets
    the place of another."""
    people, newcomers, sent_once = np.arange(8), np.arange(4, 12), 0

    def live(path: Path, point: int) -> Callable[[Callable[[bytes], None]], None]:
        def lives(send: Callable[[bytes], None]) -> None:
            store = SqliteStore(path, 8.0)
            store._log._database = Doomed(store._log._database, point)  # type: ignore[assignment]
            role = ClientRole(
                "host-0", 0, table(newcomers), StoreNoise(store.secret), store, person="id"
            )
            send(answers(role, 2))

        return lives

    for point in range(2 * 6 + 2 * 6):
        path = tmp_path / f"{point}.store"
        role = host(path, table(people))
        first = answers(role, 1)
        close(role)
        messages, _ = forked(live(path, point))
        role = host(path, table(newcomers[::-1]))
        again = answers(role, 3)
        assert again[:4] == first[4:]
        assert all(reports == again for reports in messages)
        sent_once += bool(messages)
        close(role)
    assert sent_once < 24


def test_people_of_a_launcher_have_one_store(tmp_path: Path) -> None:
    """A person who moves from one host's store to another's would have a second budget: one host,
    or a refusal. The person's column is no protocol's."""
    survey = find_protocol("survey").from_settings({"question": "age == '7'"})
    how: dict[str, Any] = {"stores": tmp_path, "person": "id", "notice": print}
    settings = RunOptions(**how).settings(survey, table(np.arange(30)))
    assert (settings.tier, settings.hosts, settings.person) == ("hosts", 1, "id")
    assert "id" not in RunOptions(**how).askable(table(np.arange(3))).columns
    for more in ({"hosts": 3}, {"tier": "processes"}, {"stores": None}):
        with pytest.raises(InputError, match="hosts=1"):
            RunOptions(**{**how, **more}).settings(survey, table(np.arange(30)))
