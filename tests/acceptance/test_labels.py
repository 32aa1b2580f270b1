"""Old words never meet new data: under a label reports of any records lose what was charged, and a store's entries belong to people."""

import shutil
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from local_dp.arrays import Ints, Words
from local_dp.clients.journal import MemoryStore, SqliteStore
from local_dp.clients.process import MemberConfig, RunConfig, pack_columns
from local_dp.clients.role import ClientRole, Policy
from local_dp.domains import Vectors
from local_dp.errors import InputError, RefusedError
from local_dp.experiments.api.asking import RunOptions
from local_dp.loss import NANO, Pure, exp_epsilon
from local_dp.noise import Draw, Noise, StoreNoise, SystemNoise
from local_dp.oracles.local import asked
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.protocols.local_protocol import find_protocol
from local_dp.queries.examples import PathStep
from local_dp.queries.tables import Category
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.repeated.memoised import OneOfRounds
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.storage.log import Entry
from local_dp.wire import Ask, Refusal, Reply, Request, Span
from tests.support.figures import figure
from tests.support.golden import Held
from tests.support.inputs.builders import request, survey_query
from tests.support.inputs.randomizers import of_size
from tests.support.long import short
from tests.support.runs.command import local_dp
from tests.support.runs.stores import Doomed, code, forked

LABEL = "weekly"
MOST = 1 << 16  # clients, one for each choice of words
NAMES = [name for name in RANDOMIZERS.built_in if RANDOMIZERS[name].silence is None]


@dataclass
class Enumerated:
    """Gives each client its own choice of words: in every round the same ones, but of two steps the second half, which is of the round."""

    randomizer: Randomizer
    rounds: int

    @property
    def halves(self) -> tuple[int, int]:
        """The bits of a word that are the same in every round, and those that are not."""
        bits = self.randomizer.word_bits
        return (bits // 2, bits // 2) if self.randomizer.has_second_step else (bits, 0)

    @property
    def clients(self) -> int:
        lasting, fresh = self.halves
        return 1 << self.randomizer.words * (lasting + self.rounds * fresh)

    def words(self, which: Draw, start: int, stop: int, bits: int) -> Words:
        each, (lasting, fresh) = self.randomizer.words, self.halves
        client, place = np.divmod(np.arange(start, stop), each)
        word = client >> place * lasting & (1 << lasting) - 1
        if fresh:
            above = each * (lasting + max(0, which.round - 1) * fresh)
            word = word << fresh | client >> above + place * fresh & (1 << fresh) - 1
        return np.asarray(word.astype(np.uint64) << np.uint64(bits - lasting - fresh)).astype(f"<u{bits // 8}")


class Holder(ClientRole):
    """Clients who are asked for the value that they hold, by a randomizer that need not travel."""

    randomizer: Randomizer

    def _local_query(self, ask: Ask, span: Span) -> LocalQuery:
        return LocalQuery(Held(self.randomizer.domain), self.randomizer, Cohort(*span), ask.once)


def holder(randomizer: Randomizer, clients: int, noise: Noise) -> Holder:
    role = Holder("host", 0, Records({"value": np.zeros(clients, dtype=np.int64)}), noise, MemoryStore(24.0), Policy(kept=1 << 30))
    role.randomizer = randomizer
    return role


def told(role: ClientRole, value: int, number: int, clients: int) -> Words:
    """The reports of a round under the label, a row of bytes each, of clients who all hold this value now."""
    role.records = Records({"value": np.full(clients, value)})
    replies = role.handle(request(replace(survey_query(clients), memo=LABEL), number=number))
    assert all(isinstance(reply, Reply) for reply in replies), replies
    return np.concatenate([np.frombuffer(reply.reports, np.uint8).reshape(-1, reply.width) for reply in replies if isinstance(reply, Reply)])


def held(randomizer: Randomizer, many: int) -> list[int]:
    """Some values, as records hold them, the first and the last of the domain among them."""
    domain = randomizer.domain
    if isinstance(domain, Vectors):
        return list(range(min(many, domain.size)))
    return sorted({int(value) for value in domain.some(min(many, domain.size))})


def law(randomizer: Randomizer, history: tuple[int, ...]) -> tuple[Counter[bytes], int]:
    """How many choices of words give each transcript of a client whose record becomes these values, and the nano-nats charged."""
    noise = Enumerated(randomizer, len(history))
    role = holder(randomizer, noise.clients, noise)
    rounds = [told(role, value, number, noise.clients) for number, value in enumerate(history, 1)]
    return Counter(map(bytes, np.concatenate(rounds, axis=1))), round(role.store.ledger.max_spent * NANO)


def sized(name: str, epsilon: float, k: int) -> Randomizer:
    """The built-in randomizer for k values, or by its defaults where it takes no k values."""
    try:
        return of_size(name, epsilon, k)
    except RefusedError:
        return RANDOMIZERS.build(name, {"epsilon": epsilon})


def narrow(name: str, k: int, rounds: int) -> Randomizer | None:
    """The randomizer with the widest words of which all choices can be enumerated, if it can be built with any."""
    found = None
    for epsilon, bits in product((1.0, 4.0), range(1, 17)):
        try:
            made = replace(sized(name, epsilon, k), word_bits=bits)
        except (InputError, RefusedError, ArithmeticError, ValueError):
            continue
        if (
            made.word_bits == bits
            and isinstance(made.loss, Pure)
            and Enumerated(made, rounds).clients <= MOST
            and (found is None or made.epsilon == found.epsilon)
        ):
            found = made
    return found


@pytest.fixture
def one_coin(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Gives all clients this public coin: a law is of one coin."""
    return lambda coin: monkeypatch.setattr(asked, "public_coins", lambda key, start, stop: np.full(stop - start, coin, dtype=np.uint64))


WIDE = ("discrete-gaussian", "privunit", "projunit", "with-coin")  # of which no choice of all words can be enumerated, or which lose a delta
CASES = [(name, k, rounds) for name in NAMES if name not in WIDE for k in (2, 3) for rounds in (2, 3) if (name, k) != ("memoised-rappor", 3)]


@pytest.mark.parametrize(("name", "k", "rounds"), short(CASES, lambda case: case[1:] == (2, 2) or (case[0] == "memoised-grr" and case[1] == 2), several=True))
def test_no_change_of_records_tells_more_than_was_charged(name: str, k: int, rounds: int, one_coin: Callable[[int], None]) -> None:
    """Class 13, every randomizer: over all words, the transcript of two or three reports under a label is at most e^charged times as likely under one history
    of records as under another, whenever records change."""
    randomizer = narrow(name, k, rounds)
    assert randomizer is not None, "a new randomizer that cannot be enumerated is one of WIDE"
    worst = 1.0
    for number, coin in enumerate((0, 0x9E3779B97F4A7C15, 1, 2, 3, 5) if randomizer.uses_coins else (0,)):
        if number > 1 and worst > 1:
            break  # some coins show nothing of these values
        one_coin(coin)
        laws = [law(randomizer, history) for history in product(held(randomizer, 2), repeat=rounds)]
        charged = exp_epsilon(laws[0][1])
        assert {nano for _, nano in laws} == {randomizer.nano}
        for (one, _), (other, _) in product(laws, laws):
            for transcript, weight in one.items():
                assert weight <= charged * other[transcript], f"{name}: {transcript.hex()} tells more than was charged"
                worst = max(worst, weight / other[transcript])
    assert worst > 1
    figure(
        "class 13", f"{len({case[0] for case in CASES})} randomizers, two and three reports of changing records: no transcript is likelier than e^charged times"
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_report_without_a_second_step_is_repeated(name: str) -> None:
    """The rest of class 13: at its own width every randomizer of one step repeats the first report to the bit, and of two steps reports of the kept outcome."""
    randomizer = sized(name, 1.0, 8)
    role, clients, values = holder(randomizer, 64, SystemNoise()), 64, held(randomizer, 2)
    if not isinstance(randomizer.loss, Pure) or randomizer.evidence == "density":
        assert isinstance(role.handle(request(replace(survey_query(clients), memo=LABEL)))[0], Refusal)
        return
    reports = [told(role, value, number, clients) for number, value in enumerate((values[0], values[-1], values[0]), 1)]
    assert role.store.ledger.max_spent == pytest.approx(randomizer.nano / NANO)
    if not randomizer.has_second_step:
        assert (reports[0] == reports[1]).all()
        assert (reports[0] == reports[2]).all()


@pytest.mark.parametrize("name", [name for name in NAMES if RANDOMIZERS[name].again is not Randomizer.again])
def test_two_steps_are_their_composition(name: str) -> None:
    """A report is a report of the kept outcome by the same word, and the outcome is of the leading half of it alone."""
    randomizer, n = of_size(name, 1.0, 8), 2000
    values, cells = np.arange(n) % 8, randomizer.cells_of(np.arange(n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    words = randomizer.draw(SystemNoise(), Draw(1), 0, n)
    kept = randomizer.lasting(values, words, cells)
    assert kept.dtype == randomizer.report_dtype.base
    assert np.array_equal(randomizer.again(kept, words, cells), randomizer.respond(values, words, cells))
    leading = words >> words.dtype.type(32) << words.dtype.type(32)
    assert np.array_equal(randomizer.lasting(values, leading, cells), kept)
    assert np.array_equal(randomizer.again(kept, words & words.dtype.type(2**32 - 1), cells), randomizer.again(kept, words, cells))


# A person's own device, whose record changes; copies of its store; kills.

AGES = tuple(map(str, range(64)))
FIRST, LATER = 23, 52


def device(path: Path, age: int) -> ClientRole:
    store = SqliteStore(path, 1.0)
    return ClientRole("client-0", 0, Records({"age": np.array([str(age)])}), StoreNoise(store.secret), store)


def age_asked(number: int, label: str = LABEL, epsilon: float = 0.001) -> Request:
    return request(LocalQuery(Category("age", AGES), GRR(epsilon, k=64), Cohort(0, 1), label), number=number)


def report(role: ClientRole, asked: Request) -> int:
    (reply,) = role.handle(asked)
    assert isinstance(reply, Reply), reply
    return reply.reports[0]


def close(role: ClientRole) -> None:
    assert isinstance(role.store, SqliteStore)
    role.store.close()


@pytest.mark.parametrize("times", [20, pytest.param(200, marks=pytest.mark.long)])
def test_a_birthday_is_not_told(times: int, tmp_path: Path) -> None:
    """The attack: plain GRR, k = 64, epsilon .001, age 23 then 52 told the change exactly, uncharged. Now the first report is repeated, and charged once."""
    for turn in range(times):
        path, reports = tmp_path / f"{turn}.store", []
        for number, age in enumerate((FIRST, LATER), 1):
            role = device(path, age)
            reports.append(report(role, age_asked(number)))
            assert role.store.ledger.max_spent == 0.001
            close(role)
        assert reports[0] == reports[1]
    figure("class 13", f"age 23 then 52, GRR of 64 ages at epsilon .001: the first report again in {times} of {times}, charged once")


def test_copies_of_a_store_agree_and_share_no_words_for_other_records(tmp_path: Path) -> None:
    """Two copies answer one request about one record by the same bytes, whether labelled or not; about another record by words that have nothing in common."""
    close(device(tmp_path / "a.store", FIRST))
    for name in ("b", "c"):
        shutil.copy(tmp_path / "a.store", tmp_path / f"{name}.store")
    first, copy, changed = (device(tmp_path / f"{name}.store", age) for name, age in (("a", FIRST), ("b", FIRST), ("c", LATER)))
    shifts = set()
    for number in range(1, 41):
        ask = age_asked(number, "" if number % 2 else f"label-{number}")
        own = report(first, ask)
        assert report(copy, ask) == own
        shifts.add((report(changed, ask) - own) % 64)
    assert len(shifts) > 15, "by the same words every report would be shifted by the change: 29"


STEPS = 2 * 6 + 2 * 4  # of two commits, before and after each of their steps


def _lives(path: Path, point: int) -> Callable[[Callable[[bytes], None]], None]:
    def live(send: Callable[[bytes], None]) -> None:
        role = device(path, FIRST)
        store = role.store
        assert isinstance(store, SqliteStore)
        store._log._held = Doomed(store._log._held, point)  # type: ignore[assignment]
        for number in range(1, 4):
            send(bytes([report(role, age_asked(number))]))

    return live


def test_no_kill_frees_a_label(tmp_path: Path) -> None:
    """Killed before and after each step of its commits, and back with another record: what was sent under the label is sent again, and paid once."""
    kept = 0
    for point in range(STEPS):
        path = tmp_path / f"{point}.store"
        close(device(path, FIRST))
        sent, ended = forked(_lives(path, point))
        assert ended == signal.SIGKILL
        role = device(path, LATER)
        kept += role.store.rounds > 0
        reports = {message[0] for message in sent} | {report(role, age_asked(number)) for number in range(10, 14)}
        assert len(reports) == 1 or not sent, "two outcomes under a label"
        assert role.store.ledger.max_spent == 0.001
        close(role)
    assert 0 < kept < STEPS
    figure("class 13", f"{STEPS} kills under a label: no second outcome, one charge")


# Tables of many people.

PEOPLE = 40


def table(people: Ints, ages: Ints | None = None) -> Records:
    """Rows of these people, with ages of their own or these."""
    return Records({"id": people, "age": ((people * 7 % 64) if ages is None else ages).astype(str)})


def host(path: Path, records: Records, person: str = "id", budget: float = 8.0) -> ClientRole:
    store = SqliteStore(path, budget)
    try:
        return ClientRole("host-0", 0, records, StoreNoise(store.secret), store, person=person)
    except InputError:
        store.close()
        raise


def answers(role: ClientRole, number: int, label: str = LABEL, epsilon: float = 0.5) -> bytes:
    """The reports of all its clients, in their order, which is that of their places."""
    (reply,) = role.handle(request(LocalQuery(Category("age", AGES), GRR(epsilon, k=64), Cohort(0, role.stop), label), number=number))
    assert isinstance(reply, Reply), reply
    return reply.reports


def test_a_table_whose_rows_moved_is_refused(tmp_path: Path) -> None:
    """The attack: of a host whose table lost its first row, 500 of 500 differences between people were told. Such tables are refused in one line, which names
    the remedy and no value; a table's own rows are not."""
    people, path = np.arange(PEOPLE) + 7_000_000, tmp_path / "a.store"
    role = host(path, table(people), person="")
    reports = answers(role, 1)
    close(role)
    role = host(path, Records(dict(reversed(table(people).columns.items()))), person="")  # columns have no order
    assert answers(role, 2) == reports
    close(role)
    ages = people * 7 % 64
    others = [people[1:], people[:-1], np.roll(people, 1), people[::-1], np.append(people, 8_000_000), people[:1]]
    for changed in (*map(table, others), table(people, np.where(people == people[3], 1 + ages, ages)), table(people).without("id")):
        with pytest.raises(InputError, match=r"belongs to other rows.*person=COLUMN") as error:
            host(path, changed, person="")
        assert "\n" not in str(error.value)
        assert "70000" not in str(error.value)
    assert host(path, table(people), person="").store.ledger.max_spent == 0.5


def test_entries_belong_to_people(tmp_path: Path) -> None:
    """Rows move, values change, people join and leave: each person's reports under a label are its first one, and each pays for what it was asked."""
    generator, people, path = np.random.default_rng(13), np.arange(PEOPLE) + 500, tmp_path / "a.store"
    first: dict[int, int] = {}
    spent: dict[int, float] = {}
    for turn in range(12):
        present = people if turn == 0 else generator.permutation(np.append(people, np.arange(600, 600 + turn)))[: PEOPLE - turn]
        role = host(path, table(present, generator.integers(0, 64, len(present))))
        known = list(first) + [int(each) for each in present if int(each) not in first]  # places are in the order of joining
        order = sorted(map(int, present), key=known.index)
        for who, said in zip(order, answers(role, 2 * turn + 1), strict=True):
            spent[who] = spent.get(who, 0.0) + 0.5 * (who not in first)
            assert first.setdefault(who, said) == said, "another outcome under the label"
        answers(role, 2 * turn + 2, "", 0.25)
        spent |= {who: spent[who] + 0.25 for who in order}
        life = role.store.ledger._life
        assert [life.most(place, place + 1) for place in range(len(first))] == [round(spent[who] * NANO) for who in first]
        close(role)
    assert len(first) > PEOPLE + 5


def test_a_session_belongs_to_people(tmp_path: Path) -> None:
    """Who has spoken in a session is silent in it under any row: after the rows were turned round, those alone speak who joined."""
    path, people = tmp_path / "a.store", np.arange(PEOPLE)

    def asked_in(role: ClientRole, number: int) -> None:
        query = LocalQuery(PathStep("01", 1), OneOfRounds(1.0), Cohort(0, role.stop), "path")
        assert code(role.handle(request(query, number=number))) == "reply"

    records = Records({"id": people, "level": np.ones(PEOPLE, dtype=np.uint8), "table0": np.full(PEOPLE, 3, dtype=np.uint64)})
    role = host(path, records.take(slice(0, 30)))
    asked_in(role, 1)
    close(role)
    role = host(path, records.take(np.arange(PEOPLE)[::-1][:-5]))  # 5 have left, 10 have joined
    asked_in(role, 2)
    assert np.unpackbits(np.frombuffer(role.store.spoken.bits("path"), np.uint8), bitorder="little").sum() == PEOPLE
    assert role.store.ledger.max_spent == 1.0


@pytest.mark.parametrize("kind", [int, float, str])
def test_a_person_column_that_names_nobody_is_refused(kind: type, tmp_path: Path) -> None:
    """A person with two rows, a row without a person, another column: one line, which names no person; the same numbers in another type are the same people."""
    people, path = np.array([1234567, 2345678, 3456789]), tmp_path / "a.store"
    ages = np.array(["1", "2", "3"])
    role = host(path, Records({"id": people.astype(kind), "age": ages, "name": np.array(["Ann", "Bob", "Eve"])}))
    answers(role, 1)
    close(role)
    for other in (int, float, str):
        role = host(path, Records({"id": people[::-1].astype(other), "age": ages}))
        assert role.places.of(0, 3).tolist() == [0, 1, 2]
        assert "id" not in role.records.columns
        assert answers(role, 1 + (int, float, str).index(other) + 1)
        close(role)
    wrong: list[tuple[Records, str, str]] = [
        (Records({"id": np.array(["1234567", "2345678", "1234567"]), "age": ages}), "id", "a person in several rows"),
        (Records({"id": np.array(["1234567", "", "3456789"]), "age": ages}), "id", "lacks a value in 1 rows"),
        (Records({"id": np.array([1234567.0, np.nan, 3456789.0]), "age": ages}), "id", "lacks a value in 1 rows"),
        (Records({"id": people, "age": ages, "name": np.array(["Ann", "Bob", "Eve"])}), "name", "person=.id."),
        (Records({"id": people, "age": ages}), "", "person=.id."),
        (Records({"age": ages}), "id", "no column"),
    ]
    for records, person, why in wrong:
        with pytest.raises(InputError, match=why) as error:
            host(path, records, person)
        assert not any(word in str(error.value) for word in ("1234567", "3456789", "Ann", "Eve", "\n"))


def test_a_table_may_turn_to_people(tmp_path: Path) -> None:
    """The remedy that is named: opened once with its own table and a person column, a store follows its people; with another table it is refused even so."""
    people, path = np.arange(PEOPLE), tmp_path / "a.store"
    role = host(path, table(people), person="")
    reports = answers(role, 1)
    close(role)
    with pytest.raises(InputError, match="belongs to other rows"):
        host(path, table(people[1:]))
    close(host(path, table(people)))
    role = host(path, table(people[:0:-1]))
    assert answers(role, 2) == reports[1:]
    assert role.store.ledger.max_spent == 0.5


def test_a_store_of_one_client_stays_one(tmp_path: Path) -> None:
    """A device's record may change; a table of several rows is another member's. A launcher's rows are bound however few they are."""
    close(device(tmp_path / "a.store", FIRST))
    close(device(tmp_path / "a.store", LATER))
    with pytest.raises(InputError, match="of a single client"):
        host(tmp_path / "a.store", table(np.arange(2)), person="")

    def launched(person: int) -> MemberConfig:
        run = RunConfig(run="r", broker="", budget=1.0)
        return MemberConfig(run=run, member="client-0", group="g0", start=0, columns=pack_columns([table(np.array([person]))]), store=str(tmp_path / "b.store"))

    for _ in range(2):
        close(launched(1).role())
    with pytest.raises(InputError, match="belongs to other rows"):
        launched(2).role()


def test_people_are_on_the_disk_before_they_answer(tmp_path: Path) -> None:
    """Killed at each step of a join: whoever has answered has a place that stays, and nobody gets the place of another."""
    people, joined, sent_once = np.arange(8), np.arange(4, 12), 0

    def live(path: Path, point: int) -> Callable[[Callable[[bytes], None]], None]:
        def lives(send: Callable[[bytes], None]) -> None:
            store = SqliteStore(path, 8.0)
            store._log._held = Doomed(store._log._held, point)  # type: ignore[assignment]
            role = ClientRole("host-0", 0, table(joined), StoreNoise(store.secret), store, person="id")
            send(answers(role, 2))

        return lives

    for point in range(2 * 6 + 2 * 6):
        path = tmp_path / f"{point}.store"
        role = host(path, table(people))
        first = answers(role, 1)
        close(role)
        sent, _ = forked(live(path, point))
        role = host(path, table(joined[::-1]))
        again = answers(role, 3)
        assert again[:4] == first[4:]
        assert all(reports == again for reports in sent)
        sent_once += bool(sent)
        close(role)
    assert sent_once < 24


def test_people_of_a_launcher_have_one_store(tmp_path: Path) -> None:
    """A person who moves from one host's store to another's would have a second budget: one host, or a refusal. The person's column is no protocol's."""
    options = RunOptions(stores=tmp_path, person="id", notice=print)
    survey = find_protocol("survey").from_settings({"question": "age == '7'"})
    settings = options.settings(survey, table(np.arange(30)))
    assert (settings.tier, settings.hosts, settings.person) == ("hosts", 1, "id")
    assert "id" not in options.asked(table(np.arange(3))).columns
    wrong: list[dict[str, Any]] = [{"hosts": 3}, {"tier": "processes"}, {"stores": None}]
    for more in wrong:
        with pytest.raises(InputError, match="hosts=1"):
            RunOptions(**{"stores": tmp_path, "person": "id", "notice": print, **more}).settings(survey, table(np.arange(30)))
    deals = [RunOptions(stores=tmp_path, notice=print).settings(survey, table(np.arange(30))).population.batch(0, 30).digest() for _ in range(2)]
    assert deals[0] == deals[1], "the rows of a launcher's stores are dealt alike in every run"


def test_a_plug_in_has_no_second_step_of_its_own() -> None:
    """A loss that was verified is that of a report; a plug-in's own second step would lose more under a label, and is refused there alone."""

    class Tells(BinaryRR):
        def lasting(self, values: Ints, words: Words, cells: Words) -> Words:
            return values.astype(np.uint8)

        def again(self, kept: Words, words: Words, cells: Words) -> Words:
            return super().respond(kept, words, cells)

    role = ClientRole("c", 0, Records({"yes": np.ones(3, dtype=np.uint8)}), SystemNoise(), MemoryStore(24.0))
    role.work._randomizers.of = lambda key, make: Tells(1.0)  # type: ignore[method-assign]
    role.work.verify = lambda randomizers: None  # type: ignore[method-assign]
    assert code(role.handle(request(survey_query(3), number=1))) == "reply"
    assert code(role.handle(request(replace(survey_query(3), memo=LABEL), number=2))) == "evidence"


def test_a_store_of_an_earlier_version_is_refused(tmp_path: Path) -> None:
    """It does not say whose budgets it holds, nor what its labels kept: a line, and no reply."""
    path = tmp_path / "a.store"
    store = SqliteStore(path, 1.0)
    store._log.append([Entry("run", 1, "", msgpack.packb((b"digest", (), ())))])
    store.close()
    for _ in range(2):
        with pytest.raises(InputError, match="of an earlier version"):
            SqliteStore(path, 1.0)


@pytest.mark.long
@pytest.mark.usefixtures("warm")
def test_the_budgets_of_a_launchers_people_last(tmp_path: Path) -> None:
    """By the command line: a table's second run under new rows finds its people's budgets spent, people who are new have theirs, and without a person column
    the changed table is refused in one line."""
    stores = str(tmp_path / "stores")

    def run(people: Ints, *more: str) -> tuple[int, str]:
        rows = "".join(f"{person},{person % 7 > 2}\n".lower() for person in people.tolist())
        (tmp_path / "table.csv").write_text(f"id,yes\n{rows}")
        options = ("--records", str(tmp_path / "table.csv"), "--stores", stores, "--private", "--question", "yes == 'true'", "--missing", "no", *more)
        done = local_dp("run", "survey", *options, "--schema", str(tmp_path / "schema.json"))
        return done.returncode, done.stdout + done.stderr

    (tmp_path / "schema.json").write_text('{"id": "whole", "yes": "text"}')
    people = np.arange(4_000, 4_060)
    expected = [
        (people, ("--person", "id"), 0, "60 answered"),
        (people[::-1], ("--person", "id"), 4, "budget has left"),
        (people + 100, ("--person", "id"), 0, "60 answered"),
        (people[1:], (), 5, "give --person id"),
        (people, ("--person", "id", "--hosts", "3"), 2, "--hosts 1"),
        (people, ("--person", "yes"), 2, "no column 'yes'"),
    ]
    for rows, options, exit_code, words in expected:
        ended, said = run(rows, *options)
        assert ended == exit_code, said
        assert words in said
        assert not any(str(person) in said for person in people.tolist())
