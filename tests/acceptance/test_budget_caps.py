"""P1 to P3: what a client is asked cannot make it spend, or keep, more than it says."""

from pathlib import Path
from typing import Any

import msgpack
import numpy as np

from local_dp.clients.role import ClientRole, Policy
from local_dp.errors import WireError
from local_dp.noise import StoreNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.tables import Category
from local_dp.randomizers.frequencies.unary import OUE
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.wire import Ask, Request, decode
from tests.support.inputs.builders import request, survey_query, yes_records
from tests.support.runs.stores import asked, close, code, member, open_store
from tests.support.wrong import wrong

ASKED = asked(1, 0.5)


CHANGES: list[dict[str, Any]] = [
    {"randomizer": "grr"}, {"randomizer": "telepathy"}, {"randomizer_params": {"epsilon": 0.4}},
    {"randomizer_params": {"epsilon": 0.5, "word_bits": 16}},
    {"query": "category"}, {"query_params": {"text": "yes == 2", "spare": ()}},
    {"coins": b"x" * 16}, {"once": "label"}, {"stop": 7}, {"start": 7},
]  # fmt: skip


@wrong(
    "local_dp.clients.role:ClientRole.handle",
    "commit.request != digest",
    "False",
    "a second, different request of a round is answered from the store",
)
def test_a_round_is_asked_in_one_way_alone(tmp_path: Path) -> None:
    """Variants of a request that was answered, before and after a restart of the client: each is
    refused as equivocation, and nothing is charged."""
    asks = [(Ask.model_validate(ASKED.asks[0].model_dump() | change),) for change in CHANGES]
    for turn in range(2):
        role = member(tmp_path / "a.store", 24.0)
        assert code(role.handle(ASKED)) == "reply"
        assert {
            code(role.handle(ASKED.model_copy(update={"asks": each})))
            for each in (*asks, ASKED.asks * 2)
        } == {"equivocation"}, turn
        close(role)
    assert role.store.ledger.max_spent == 0.5


HOSTILE: list[Any] = [
    *(
        0,
        -5,
        True,
        2**63,
        10**30,
        0.0,
        -1.0,
        5e-324,
        9.9e-10,
        float("nan"),
        float("inf"),
        24.000000001,
        1e18,
    ),
    *("1", "", "nan", b"1", None, (), (1.0,), {"epsilon": 1.0}),
]


def test_hostile_numbers_leave_the_ledger_as_it_is(tmp_path: Path) -> None:
    """Values for an epsilon, on the wire and past it: an error of the wire or a refusal, and the
    ledger and the file are what they were."""
    path = tmp_path / "a.store"
    role = member(path, 24.0)
    plain, before = ASKED.model_dump(), path.read_bytes()
    for value in HOSTILE:
        hostile = {**plain, "asks": [{**plain["asks"][0], "randomizer_params": {"epsilon": value}}]}
        try:
            numbers = decode(msgpack.packb(hostile))
        except (WireError, OverflowError):
            continue
        assert isinstance(numbers, Request)
        assert code(role.handle(numbers)) != "reply", value
    assert (role.store.ledger.max_spent, role.store.rounds, path.read_bytes()) == (0.0, 0, before)


@wrong(
    "local_dp.ledger:Ledger.check",
    "(('run', self.limit, spending), ('lifetime', self.lifetime, self._life))",
    "(('run', self.limit, spending),)",
    "a new run's name refills the budget",
)
def test_the_lifetime_cap_holds_over_new_runs(tmp_path: Path) -> None:
    """Forty names of runs, and a client that is started four times: a lifetime of 5 nats pays for
    ten answers of 0.5."""
    path, replies = tmp_path / "a.store", 0
    close(member(path, 1.0, 5.0))
    for turn in range(4):
        role = member(path, 1.0)
        replies += sum(
            code(role.handle(asked(1, 0.5, f"run-{turn}-{number}"))) == "reply"
            for number in range(10)
        )
        assert role.store.ledger.max_spent == min(5.0, 5.0 * (turn + 1))
        close(role)
    assert replies == 10


def test_a_store_does_not_grow_for_nothing(tmp_path: Path) -> None:
    """The attack: 1,000 rounds at 1e-9 nats grew a journal by 197 MB. What costs next to nothing is
    refused, and so is what outgrows the store, for life."""
    path = tmp_path / "a.store"
    store = open_store(path)
    role = ClientRole("m", 0, Records({"x": np.array(["7"])}), StoreNoise(store.secret), store)
    category = Category("x", tuple(map(str, range(1024))))
    before, query = path.stat().st_size, LocalQuery(category, OUE(1e-9, k=1024), Cohort(0, 1))
    assert (code(role.handle(request(*[query] * 20))), path.stat().st_size) == ("ceiling", before)
    few = Policy(rounds=3, kept=5000)
    role = ClientRole("m", 0, yes_records(1), StoreNoise(store.secret), store, few)
    codes = [
        code(role.handle(request(survey_query(1, randomizer=BinaryRR(0.01)), number=number)))
        for number in range(1, 6)
    ]
    assert codes == ["reply"] * 3 + ["ceiling"] * 2
