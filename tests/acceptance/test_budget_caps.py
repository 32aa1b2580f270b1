"""Acceptance tests 6 to 9, and the growth of a store: what a client is asked cannot make it spend,
or keep, more than it says."""

import random
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from local_dp.clients.journal import MemoryStore, SqliteStore
from local_dp.clients.role import ClientRole, Policy
from local_dp.errors import WireError
from local_dp.loss import NANO, split_epsilon
from local_dp.noise import StoreNoise, SystemNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.tables import Category
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.unary import OUE
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.wire import Ask, Request, decode
from tests.support.inputs.builders import request, survey_query, yes_records
from tests.support.runs.stores import CLIENTS, asked, code, member

ASKED = asked(1, 0.5)


def _changed(generator: random.Random) -> Request:
    """The request with something in it changed: a name, a parameter, the clients, the coins, a
    label, or an ask more."""
    ask = ASKED.asks[0]
    others: list[dict[str, Any]] = [
        {"randomizer": generator.choice(["grr", "oue", "telepathy", "binary-r"])},
        {"randomizer_params": {**ask.randomizer_params, "epsilon": generator.uniform(1e-6, 1.0)}},
        {"randomizer_params": {"epsilon": 0.5, "word_bits": generator.choice([8, 16, 64, 7])}},
        {"query": generator.choice(["category", "telepathy"])},
        {"query_params": {"text": f"yes == {generator.randrange(2, 1000)}", "spare": ()}},
        {"coins": generator.randbytes(16)},
        {"once": f"label-{generator.randrange(1000)}"},
        {"stop": generator.randrange(1, CLIENTS)},
        {"start": generator.randrange(1, CLIENTS)},
    ]
    changed = Ask.model_validate(ask.model_dump() | generator.choice(others))
    asks = (changed,) if generator.random() < 0.8 else (ask, changed)
    return ASKED.model_copy(update={"asks": asks})


def test_a_round_is_asked_in_one_way_alone(tmp_path: Path) -> None:
    """Test 6: 200 variants of a request that was answered, the client started again after half:
    each refused as equivocation, nothing charged."""
    generator, role, refused = random.Random(6), member(tmp_path / "a.store", 24.0), 0
    assert code(role.handle(ASKED)) == "reply"
    for turn in range(200):
        if turn == 100:
            role.store.close()  # type: ignore[attr-defined]
            role = member(tmp_path / "a.store", 24.0)
        assert code(role.handle(_changed(generator))) == "equivocation"
        refused += 1
    assert role.store.ledger.max_spent == 0.5
    print(f"test 6: {refused} variants refused as equivocation, 0 charged")


HOSTILE: list[Any] = [
    *(
        0,
        -5,
        True,
        False,
        2**63,
        2**64,
        2**62,
        -(2**63),
        10**30,
        0.0,
        -0.0,
        -1.0,
        5e-324,
        1e-300,
        1e-17,
        1e-12,
        1e-10,
        9.9e-10,
    ),
    *(
        float("nan"),
        float("inf"),
        float("-inf"),
        24.000000001,
        25.0,
        1e9,
        1e18,
        1.7e308,
        "1",
        "",
        "nan",
        "1e-9",
        "one",
        b"1",
        None,
    ),
    *((), (1,), (1.0, 1.0), ("1",), [1], {"epsilon": 1.0}, [[1]]),
]


def test_hostile_numbers_leave_the_ledger_as_it_is(tmp_path: Path) -> None:
    """Test 7: 40 values for an epsilon, on the wire and past it: an error of the wire or a refusal,
    and the ledger and the file are what they were."""
    path = tmp_path / "a.store"
    role = member(path, 24.0)
    plain, before, stopped = ASKED.model_dump(), path.read_bytes(), 0
    for value in HOSTILE:
        hostile = {**plain, "asks": [{**plain["asks"][0], "randomizer_params": {"epsilon": value}}]}
        try:
            arrived = decode(msgpack.packb(hostile))
        except (WireError, OverflowError):
            stopped += 1
            continue
        assert isinstance(arrived, Request)
        assert code(role.handle(arrived)) != "reply", value
    assert (len(HOSTILE), role.store.ledger.max_spent, role.store.rounds, path.read_bytes()) == (
        40,
        0.0,
        0,
        before,
    )
    print(
        f"test 7: {len(HOSTILE)} hostile values, {stopped} stopped on the wire, the others "
        "refused; ledger and file unchanged"
    )


def test_the_lifetime_cap_holds_over_new_runs(tmp_path: Path) -> None:
    """Test 8: 1,000 names of runs."""
    path, replies = tmp_path / "a.store", 0
    role = member(path, 1.0, 5.0)
    for number in range(1000):
        if number % 250 == 0:
            role.store.close()  # type: ignore[attr-defined]
            role = member(path, 1.0)
        replies += code(role.handle(asked(1, 0.5, f"run-{number}"))) == "reply"
    assert (replies, role.store.ledger.max_spent) == (10, 5.0)
    print(
        f"test 8: 1000 new run names at epsilon 0.5, lifetime 5, started four times: {replies} "
        f"answered, {role.store.ledger.max_spent:g} spent"
    )


BUDGETS = (0.1, 0.5, 1.0, 2.0, 2.718281828, 8.0)


@pytest.mark.parametrize(
    ("parts", "durable"),
    [(range(2, 60, 9), False), pytest.param(range(2, 60), True, marks=pytest.mark.slow)],
)
def test_an_equal_split_is_accepted_to_the_last_round(
    parts: range, durable: bool, tmp_path: Path
) -> None:
    """Test 9, six budgets: exactly k rounds are answered, and the next is refused, with a store in
    a file as well."""
    for budget, k in product(BUDGETS, parts):
        store, each = MemoryStore(budget), split_epsilon(budget, k)
        role = (
            ClientRole("m", 0, yes_records(1), SystemNoise(), store)
            if not durable
            else member(tmp_path / f"{budget}-{k}.store", budget, clients=1)
        )
        codes = [code(role.handle(asked(number, each, clients=1))) for number in range(1, k + 2)]
        assert codes == ["reply"] * k + ["budget"], (budget, k)
        assert round(role.store.ledger.max_spent * NANO) == k * round(each * NANO)
    print(f"test 9: {len(BUDGETS) * len(parts)} equal splits: k answered, k + 1 refused")


def _wide(number: int, epsilon: float, asks: int) -> Request:
    """One client asked many things of a kilobyte each."""
    query = LocalQuery(
        Category("x", tuple(map(str, range(1024)))), OUE(epsilon, k=1024), Cohort(0, 1)
    )
    return request(*[query] * asks, number=number)


def test_a_store_does_not_grow_for_nothing(tmp_path: Path) -> None:
    """The attack: 1,000 rounds at 1e-9 nats grew a journal by 197 MB. What costs next to nothing is
    refused, and so is what outgrows the store, for life."""
    path = tmp_path / "a.store"
    store = SqliteStore(path, 1.0)
    role = ClientRole("m", 0, Records({"x": np.array(["7"])}), StoreNoise(store.secret), store)
    before = path.stat().st_size
    assert {code(role.handle(_wide(number, 1e-9, 20))) for number in range(1, 4)} == {"ceiling"}
    assert path.stat().st_size == before
    few = Policy(rounds=3, kept=5000)
    role = ClientRole("m", 0, yes_records(1), StoreNoise(store.secret), store, few)
    codes = [
        code(role.handle(request(survey_query(1, randomizer=BinaryRR(0.01)), number=number)))
        for number in range(1, 6)
    ]
    assert codes == ["reply"] * 3 + ["ceiling"] * 2
    print(f"class 4: rounds at 1e-9 nats refused, the store stays at {path.stat().st_size} bytes")


def test_no_sequence_of_requests_outgrows_the_ceilings() -> None:
    """The generalisation, by search: random sequences of asks, wide and narrow, cheap and dear.
    Bytes and rounds kept stay within the policy."""
    generator, longest = random.Random(197), 0
    policy = Policy(kept=500, rounds=30)
    for _ in range(6):
        store = MemoryStore(24.0)
        role = ClientRole("m", 0, yes_records(2), SystemNoise(), store, policy)
        for number in range(1, 45):
            epsilon = 10 ** generator.uniform(-9, 0)
            randomizer = generator.choice([BinaryRR(epsilon), GRR(epsilon, k=2)])
            query = survey_query(2, randomizer=randomizer)
            queries = [
                replace(query, memo=f"{number}" if generator.random() < 0.3 else "")
                for _ in range(generator.randrange(1, 40))
            ]
            answered = code(role.handle(request(*queries, number=number))) == "reply"
            assert not answered or randomizer.nano >= policy.least
            assert store.size <= policy.kept * 2
            assert store.size == sum(
                len(reply.reports) for commit in store.commits for reply in commit.replies
            ) + sum(len(outcomes.data) for commit in store.commits for outcomes in commit.kept)
            assert store.rounds <= policy.rounds
        longest = max(longest, store.size)
    assert longest > policy.kept
    print(
        f"class 4: 6 random lives of 44 rounds, at most {longest} of {2 * policy.kept} bytes kept"
    )
