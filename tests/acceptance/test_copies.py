"""P1, copies of a store: by exact enumeration, what all copies answer loses at most what they
charge, and equal copies answer alike.

A scenario is a store that answers some rounds, is copied, and whose copies go on apart. Each
derived word is one of a few, and each row of a table is a person in one choice of all words. So one
pass gives the law of all reports.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, product
from typing import ClassVar

import numpy as np
import pytest

from local_dp.arrays import Counts, Ints, Words
from local_dp.clients import role as client_role
from local_dp.clients.journal import Commit, MemoryStore
from local_dp.clients.role import ClientRole, Policy
from local_dp.domains import Domain
from local_dp.loss import NANO, exp_epsilon
from local_dp.noise import BoundNoise, Draw, StoreNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.memory import FRESH, Memoised, repeat_of
from local_dp.queries.query import Query
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.repeated.memoised import MemoisedGRR, OneOfRounds
from local_dp.records import Records
from local_dp.wire import Ask, Reply, Span
from tests.support.inputs.builders import request, survey_query
from tests.support.long import short
from tests.support.runs.stores import LABEL
from tests.support.wrong import wrong

CODE, RECORDS, PEOPLE, REQUEST, HISTORIES = range(5)  # the inputs of the derivation


@dataclass(frozen=True)
class Step:
    """A round that a copy answers: a question, by a version of the randomizer, about the first or
    the second record that a person has."""

    round: int
    version: int = 1
    record: int = 0
    question: int = 0


@dataclass(frozen=True)
class Scenario:
    """The rounds before a store is copied, and those of each copy."""

    kind: str
    before: tuple[Step, ...]
    copies: tuple[tuple[Step, ...], ...]


Table = tuple[
    tuple[int, int], ...
    # the record of each person in one world: the first round in which they have something to say,
    # and the value
]
Life = tuple[Table, Table]  # the records, before and after they change


@dataclass(frozen=True)
class Told(Query):
    """The value of a person in this round, another one for another question; silence in the rounds
    before the person's own."""

    name: ClassVar[str] = "told"
    values_of: Domain
    round: int
    question: int

    @property
    def domain(self) -> Domain:
        return self.values_of

    def __call__(self, records: Records) -> Ints:
        values = records["value"] * (1 + self.question) % 3
        return np.where(records["round"] <= self.round, values, values.dtype.type(2))


class OtherGRR(GRR):
    """Another version: the same channel, from the same words in another order."""

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return super().respond(values, words.dtype.type(self.total - 1) - words, cells)


KINDS: dict[str, tuple[Randomizer, Randomizer]] = {
    "plain": (GRR(0.7, k=3, word_bits=2), OtherGRR(0.7, k=3, word_bits=2)),
    "label": (GRR(0.7, k=3, word_bits=2), OtherGRR(0.7, k=3, word_bits=2)),
    "two steps": (MemoisedGRR(1.2, k=2, word_bits=4),) * 2,
    "session": (OneOfRounds(1.2, word_bits=2),) * 2,
}
_TELLERS, _SPEAKERS = [(0, 0), (0, 1), (0, 2)], [(1, 0), (1, 1), (2, 1), (3, 0)]
_PEOPLE = {"plain": _TELLERS, "label": _TELLERS, "two steps": _TELLERS[:2], "session": _SPEAKERS}


def lives_of(kind: str) -> list[Life]:
    """Of one person, whose record changes. That it changes is no secret: copies that answer one
    request alike show that it does not."""
    return [((one,), (other,)) for one, other in product(_PEOPLE[kind], repeat=2) if one != other]


@dataclass
class Enumerated(StoreNoise):
    """Gives each derivation words of its own: a person's row has one choice of all of them.
    `people` live in each choice."""

    bits: int
    people: int = 1

    def __post_init__(self) -> None:
        super().__init__(bytes(32))
        self.streams: dict[tuple[bytes, int, int], int] = {}

    def bound(self, *inputs: bytes) -> "Chosen":
        return Chosen(super().bound(*inputs).secret, self)


@dataclass(frozen=True)
class Chosen(BoundNoise):
    noise: Enumerated

    def words(self, which: Draw, start: int, stop: int, bits: int) -> Words:
        noise = self.noise
        stream = noise.streams.setdefault((self.secret, which.round, which.ask), len(noise.streams))
        world, person = np.divmod(np.arange(start, stop), noise.people)
        word = world >> noise.bits * (stream * noise.people + person) & (1 << noise.bits) - 1
        return np.asarray(word.astype(np.uint64) << np.uint64(bits - noise.bits)).astype(
            f"<u{bits // 8}"
        )


class Copy(ClientRole):
    """A member whose randomizer need not travel. A wrong twin leaves out an input."""

    kind: str = "plain"
    version: int = 1
    left_out: int | None = None
    round_and_question: tuple[int, int] = (0, 0)

    def _local_query(self, ask: Ask, span: Span) -> LocalQuery:
        randomizer = KINDS[self.kind][self.version - 1]
        repeat = repeat_of(ask.once, randomizer)
        return LocalQuery(
            Told(randomizer.domain, *self.round_and_question), randomizer, Cohort(*span), repeat
        )

    def _inputs(self, request: bytes, asks: list[LocalQuery]) -> tuple[bytes, ...]:
        inputs = list(super()._inputs(request, asks))
        if self.left_out is not None:
            inputs[self.left_out] = b""
        return tuple(inputs)


class People(MemoryStore):
    """A store whose people have these places."""

    def __init__(self, places: Counts, commits: Sequence[Commit] = ()) -> None:
        super().__init__(24.0)
        self.own = places
        for commit in commits:
            self.commit(commit)

    def places(self, records: Records, person: str = "", moves: bool = True) -> Counts:
        return self.own


def answered(copy: Copy, step: Step, table: Table) -> Words:
    """The reports of a round, a row of bytes for each world."""
    rows = np.tile(np.array(table), (len(copy.records) // len(table), 1))
    copy.records, copy.version = Records({"round": rows[:, 0], "value": rows[:, 1]}), step.version
    # a label stands for one question
    copy.round_and_question = (
        step.round if copy.kind == "session" else 0,
        step.question,
    )
    repeat = FRESH if copy.kind == "plain" else Memoised(LABEL)
    query = replace(survey_query(len(rows)), repeat=repeat)
    replies = copy.handle(request(query, number=step.round, run=f"run-{step.question}"))
    assert all(isinstance(reply, Reply) for reply in replies), replies
    data = b"".join(reply.reports for reply in replies if isinstance(reply, Reply))
    return np.frombuffer(data, np.uint8).reshape(-1, len(table))


@dataclass
class World:
    """A scenario under a wrong twin, or none; `people` are the places of each copy's people among
    those of a world, and `all_people` how many there are."""

    scenario: Scenario
    left_out: int | None = None
    people: tuple[tuple[int, ...], ...] = ((0,), (0,))
    all_people: int = 1

    def opened(self, store: MemoryStore, rows: int, noise: StoreNoise) -> Copy:
        empty = np.zeros(rows, int)
        copy = Copy(
            "host", 0, Records({"round": empty, "value": empty}), noise, store, Policy(kept=1 << 30)
        )
        copy.kind, copy.left_out = self.scenario.kind, self.left_out
        # words of a few bits are not verified
        copy.work.verify = lambda randomizers: None  # type: ignore[method-assign]
        return copy

    def store(self, people: tuple[int, ...], worlds: int, commits: Sequence[Commit] = ()) -> People:
        places = self.all_people * np.arange(worlds)[:, None] + np.array(people)
        return People(places.reshape(-1), commits)

    def played(self, life: Life, worlds: int, noise: Enumerated) -> tuple[list[Words], int]:
        """The reports of the store before it is copied, and of each copy, a row for each world; and
        the nano-nats charged."""
        first = self.store(self.people[0], worlds)
        own = worlds * len(self.people[0])
        before = [
            answered(self.opened(first, own, noise), step, life[step.record])
            for step in self.scenario.before
        ]
        before_copies, charges, reports = (
            round(first.ledger.max_spent * NANO),
            [],
            [_side_by_side(before, worlds)],
        )
        for people, steps in zip(self.people, self.scenario.copies, strict=True):
            store = self.store(people, worlds, first.commits)
            copy = self.opened(store, own, noise)
            tables = [tuple(life[step.record][person] for person in people) for step in steps]
            reports.append(
                _side_by_side(
                    [
                        answered(copy, step, table)
                        for step, table in zip(steps, tables, strict=True)
                    ],
                    worlds,
                )
            )
            charges += [round(store.ledger.max_spent * NANO)] if steps else []
        # each copy speaks once, at the charge of its whole session
        if self.scenario.kind == "session":
            return reports, sum(charges)
        return reports, before_copies + sum(charge - before_copies for charge in charges)

    def law(self, life: Life) -> tuple[Counter[bytes], int, int]:
        """How many choices of words give each transcript, of how many, and the nano-nats charged.
        Copies that live alike must answer alike."""
        randomizer = KINDS[self.scenario.kind][0]
        noise = Enumerated(randomizer.word_bits, len(self.people[0]))
        self.played(life, 1, noise)
        worlds = 1 << randomizer.word_bits * len(noise.streams) * noise.people
        noise.streams.clear()
        reports, charge = self.played(life, worlds, noise)
        if self.scenario.copies[0] == self.scenario.copies[1] and self.people[0] == self.people[1]:
            assert np.array_equal(reports[1], reports[2])
        return Counter(map(bytes, np.concatenate(reports, axis=1))), worlds, charge

    def exceeds(self, lives: Sequence[Life]) -> bool:
        """Whether some transcript is more than e^charged times as likely in one life as in
        another."""
        laws = [self.law(life) for life in lives]
        for (one, worlds, charge), (other, others, _) in product(laws, laws):
            most = exp_epsilon(charge)
            if any(
                weight * others > most * other[transcript] * worlds
                for transcript, weight in one.items()
            ):
                return True
        return False


def _side_by_side(reports: list[Words], worlds: int) -> Words:
    return np.concatenate([np.zeros((worlds, 0), np.uint8), *reports], axis=1)


@dataclass(frozen=True)
class Space:
    """Which rounds a copy may live through."""

    versions: tuple[int, ...] = (1, 2)
    records: tuple[int, ...] = (0, 1)
    questions: tuple[int, ...] = (0,)
    most: int = 3  # rounds in all

    def lives(self, first: int) -> list[tuple[Step, ...]]:
        """No round, one of two that follow each other, or both."""
        kinds = list(product(self.versions, self.records, self.questions))
        steps = [[Step(number, *kind) for kind in kinds] for number in (first, first + 1)]
        return [(), *((step,) for step in steps[0] + steps[1]), *product(*steps)]

    def scenarios(self, kind: str) -> Iterator[Scenario]:
        """Every pair of copies, after no round or one."""
        for before in [(), *((Step(1, version),) for version in self.versions)]:
            for copies in combinations_with_replacement(self.lives(1 + len(before)), 2):
                if 0 < sum(map(len, copies)) <= self.most - len(before):
                    yield Scenario(kind, before, copies)


@pytest.fixture(autouse=True)
def _versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each class of a randomizer is a version of its package: its name is the digest of its
    code."""
    monkeypatch.setattr(
        client_role,
        "code_digest",
        lambda kinds: " ".join(sorted(kind.__name__ for kind in kinds)).encode(),
    )
    monkeypatch.setattr(client_role, "is_built_in", lambda randomizer: True)


VERSIONS, RECORD, ROUNDS = (
    Space(records=(0,), most=2),
    Space(versions=(1,), most=2),
    Space(versions=(1,), records=(0,)),
)


BOTH = VERSIONS, RECORD


@wrong(
    "local_dp.clients.role:ClientRole._inputs",
    "self._rows()",
    "b''",
    "copies of a store whose records differ answer by the same words, and the difference is told",
    at="plain-spaces0",
)
@pytest.mark.parametrize(
    ("kind", "spaces"),
    short(
        [("plain", BOTH), ("label", BOTH), ("two steps", (RECORD,)), ("session", (RECORD, ROUNDS))],
        lambda each: each[0] in ("plain", "two steps"),
        several=True,
    ),
)
def test_copies_lose_what_they_charge(kind: str, spaces: Sequence[Space]) -> None:
    """Every pair of copies of a store, with versions of a randomizer and records that change: no
    transcript is more than e^charged times as likely, and copies that live alike answer alike."""
    scenarios = [scenario for space in spaces for scenario in space.scenarios(kind)]
    assert len(scenarios) > 10
    assert not [scenario for scenario in scenarios if World(scenario).exceeds(lives_of(kind))]


TWINS: dict[str, tuple[int, str, Space]] = {
    "code": (CODE, "plain", VERSIONS),
    "records": (RECORDS, "plain", RECORD),
    "request": (REQUEST, "plain", Space((1,), (0,), (0, 1), 2)),
    "histories": (HISTORIES, "session", ROUNDS),
}


@pytest.mark.parametrize("twin", TWINS)
def test_each_input_of_the_derivation_is_needed(twin: str) -> None:
    """Wrong twins that leave out one input of the derivation each: some pair of copies loses more
    than it charges."""
    left_out, kind, space = TWINS[twin]
    scenarios = list(space.scenarios(kind))
    assert any(World(scenario, left_out).exceeds(lives_of(kind)) for scenario in scenarios)


def test_people_are_an_input() -> None:
    """A table in which A and B become B and C: each has words of their own. A wrong twin without
    people shows that B and C are as A and B."""
    scenario = Scenario("plain", (), ((Step(1),), (Step(1),)))
    lives: list[Life] = [(people, people) for people in product(_TELLERS[:2], repeat=3)]
    world = World(scenario, people=((0, 1), (1, 2)), all_people=3)
    apart = [life for life in lives if life[0][:2] == (_TELLERS[0], _TELLERS[0])]
    assert not world.exceeds(apart)
    assert replace(world, left_out=PEOPLE).exceeds(apart)
