"""P5, P7: a round ends in time, and what was accepted is what was charged."""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import xor
from typing import Any

import pytest

from local_dp.api.show import summary
from local_dp.bus.interface import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.clients.member import HOSTS, filters, serve
from local_dp.clients.role import ClientRole
from local_dp.errors import LocalDPError
from local_dp.protocols.surveys.survey import Survey
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.server.coordinator import Coordinator
from local_dp.server.members import filters as server_filters
from local_dp.server.quorum import Terms
from local_dp.server.remote import RemoteOracle
from local_dp.server.round import Reconciliation
from local_dp.simulation.execute import execute
from local_dp.simulation.outcome import BusRecord, as_data
from local_dp.simulation.settings import Randomness, Settings
from local_dp.wire import Reply, checksum, decode, encode
from tests.support.inputs.builders import RUN, SEED, role, survey_query, yes_records
from tests.support.runs.virtual_time import beside, run_virtually
from tests.support.wrong import wrong

MEMBERS, EACH, ROUNDS = 6, 5, 4
CLIENTS = MEMBERS * EACH


@dataclass
class Play:
    """A run of some rounds with hosts in memory: what became of it, the hosts, and how long the end
    took."""

    fate: Any = None
    mute: frozenset[int] = frozenset()  # hosts that are gone without a word before the end
    members: list[ClientRole] = field(default_factory=list)
    parting_time: float = 0.0
    broker: MemoryBroker = field(default_factory=MemoryBroker)

    async def run(self) -> Coordinator:
        if self.fate is not None:
            self.broker.fate = self.fate
        coordinator = Coordinator(RUN, CLIENTS, SEED, 1.0, Terms(3.0, 0.1))
        oracle = RemoteOracle(self.broker.join(server_filters(RUN)), coordinator)
        self.members += [
            role(yes_records(EACH), index * EACH, member=f"host-{index}")
            for index in range(MEMBERS)
        ]
        living = (
            serve(member, self.broker.join(filters(RUN, HOSTS)), RUN, HOSTS)
            for member in self.members
        )
        async with beside(oracle.serve(1.0), *living) as (_, *tasks):
            await oracle.ready(5.0)
            for _ in range(ROUNDS):
                await oracle.answer((survey_query(CLIENTS, randomizer=BinaryRR(0.1)),))
            for index in self.mute:
                tasks[index].cancel()
            began = asyncio.get_running_loop().time()
            await oracle.end(1.0)
            self.parting_time = asyncio.get_running_loop().time() - began
            return coordinator


def _check(seed: int) -> tuple[int, int]:
    """One run whose network loses and repeats: how many reports were charged and not accepted, and
    how many members were silent."""
    generator = random.Random(seed)
    loss, twice = generator.uniform(0, 0.5), generator.uniform(0, 0.3)
    play = Play(
        lambda delivery: 0 if generator.random() < loss else 1 + (generator.random() < twice)
    )
    coordinator = run_virtually(play.run())
    accounts = coordinator.reconciliation()
    assert accounts.accepted_not_charged == 0
    assert play.parting_time <= 1.0 + 1e-6
    for balance in accounts.rounds if (accounts.members, accounts.silent) == (MEMBERS, 0) else ():
        (part,) = coordinator._history[balance.round].parts
        commits = [
            commit
            for member in play.members
            if (commit := member.store.get(RUN, balance.round)) is not None
        ]
        replies = [reply for commit in commits for reply in commit.replies]
        own = [reply for reply in replies if part.answered[reply.start]]
        assert balance.accepted == EACH * len(own) == int(part.answered.sum())
        assert balance.charged == EACH * len(replies) == EACH * len(commits)
        assert balance.checksum == reduce(xor, map(checksum, own), 0)
    return accounts.charged_not_accepted, accounts.silent


def test_accounts_agree_with_what_was_accepted() -> None:
    """By search over networks: the balance is that of the members' stores and of the round's own
    flags, computed another way."""
    losses = silent = 0
    for seed in range(12):
        with suppress(LocalDPError):  # a round without its quorum
            few, quiet = _check(seed)
            losses, silent = losses + few, silent + quiet
    assert min(losses, silent) > 0


@wrong(
    "local_dp.server.round:_balance",
    "took.reports == charge and took.checksum != checksum",
    "False",
    "a forged report that took the place of a client's own is not seen",
)
def test_a_forged_report_is_told_aloud() -> None:
    """A stranger's report that came before the client's own is accepted: the account says that its
    member never sent it, and the result says so loudly."""
    play, forgeries = Play(), set[bytes]()

    def rewriting(delivery: Delivery) -> int:
        message = decode(delivery.payload)
        if (
            not isinstance(message, Reply)
            or message.round != 2
            or message.member != "host-3"
            or delivery.payload in forgeries
        ):
            return 1
        other = encode(
            message.model_copy(update={"reports": bytes(1 - bit for bit in message.reports)})
        )
        forgeries.add(other)
        play.broker.route(Delivery(delivery.topic, other))
        return 0

    play.fate = rewriting
    coordinator = run_virtually(play.run())
    accounts = coordinator.reconciliation()
    assert (
        accounts.accepted_not_charged,
        [each.round for each in accounts.rounds if not each.agree],
    ) == (EACH, [2])
    data = _data(accounts)
    assert "5 accepted reports were not charged" in data["degraded"][0]
    assert (
        "NOT RECONCILED: 5 reports were accepted that their members did not charge or send, in "
        "round 2"
    ) in summary(data, 200)


def _data(accounts: Reconciliation) -> dict[str, Any]:
    settings = Settings(
        Survey(), Survey().synthetic(10, SEED), 1.0, Randomness(SEED, False), tier="population"
    )
    outcome = execute(settings, lambda progress: None)
    return as_data(settings, replace(outcome, bus=BusRecord(reconciliation=accounts)))


def test_who_is_silent_is_counted_and_waited_for_a_second() -> None:
    """With all there the end takes no time; two members that are gone without a word are waited for
    one second, and not reconciled."""
    whole, partial = Play(), Play(mute=frozenset({1, 4}))
    assert [
        run_virtually(whole.run()).reconciliation().silent,
        whole.parting_time,
    ] == pytest.approx([0, 0.0])
    accounts = run_virtually(partial.run()).reconciliation()
    assert (accounts.members, accounts.silent, accounts.accepted_not_charged) == (MEMBERS, 2, 0)
    assert {(each.accepted, each.charged) for each in accounts.rounds} == {
        (CLIENTS - 2 * EACH,) * 2
    }
    assert partial.parting_time == pytest.approx(1.0)
