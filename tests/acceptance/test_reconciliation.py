"""Acceptance tests 23 and 28: a round ends in time, and what was accepted is what was charged."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import psutil
import pytest

from local_dp.api.show import summary
from local_dp.bus.interface import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.clients.member import HOSTS, filters, serve
from local_dp.clients.role import ClientRole
from local_dp.errors import LocalDPError
from local_dp.interaction import Nonadaptive
from local_dp.populations.finite import Rows
from local_dp.protocols.surveys.survey import Survey
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.server.coordinator import Coordinator
from local_dp.server.members import filters as server_filters
from local_dp.server.progress import Progress, RoundProgress
from local_dp.server.quorum import Terms
from local_dp.server.remote import RemoteOracle
from local_dp.server.round import Balance, Reconciliation
from local_dp.simulation.execute import execute
from local_dp.simulation.outcome import BusRecord, as_data
from local_dp.simulation.settings import Randomness, Settings, Tier
from local_dp.wire import Account, Reply, checksum, decode, encode, topic
from tests.support.figures import figure
from tests.support.inputs.builders import RUN, SEED, play_in_memory, role, survey_query, yes_records
from tests.support.runs.virtual_time import beside, run_virtually

MEMBERS, EACH, ROUNDS = 6, 5, 4
CLIENTS = MEMBERS * EACH


@dataclass
class Play:
    """A run of some rounds with hosts in memory: what became of it, the hosts, and how long the end
    took."""

    fate: Any = None
    mute: frozenset[int] = frozenset()  # hosts that are gone without a word before the end
    members: list[ClientRole] = field(default_factory=list)
    parted: float = 0.0
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
            self.parted = asyncio.get_running_loop().time() - began
            return coordinator


def _truth(coordinator: Coordinator, members: list[ClientRole]) -> dict[int, tuple[int, int, int]]:
    """Round by round, from the parts of each round and the stores themselves: how many were
    accepted, charged, and both."""
    counts = {}
    for number in range(1, ROUNDS + 1):
        (part,) = coordinator._history[number].parts
        commits = {member.start: member.store.get(RUN, number) for member in members}
        charged = {
            client
            for start, commit in commits.items()
            if commit is not None
            for client in range(start, start + EACH)
        }
        accepted = {client for client in range(CLIENTS) if part.answered[client]}
        counts[number] = len(accepted), len(charged), len(accepted & charged)
    return counts


def _check(seed: int) -> tuple[int, int]:
    """One run whose network loses, repeats and holds back: how many were charged and not accepted,
    and how many members were silent."""
    generator = random.Random(seed)
    loss, twice = generator.uniform(0, 0.5), generator.uniform(0, 0.3)
    play = Play(
        lambda delivery: 0 if generator.random() < loss else 1 + (generator.random() < twice)
    )
    coordinator = run_virtually(play.run())
    balance_sheet, truth = coordinator.reconciliation(), _truth(coordinator, play.members)
    speakers = set(coordinator._accounts)
    assert balance_sheet.accepted_not_charged == 0
    assert (balance_sheet.members, balance_sheet.silent) == (
        coordinator.members.present // EACH,
        coordinator.members.present // EACH - len(speakers),
    )
    assert play.parted <= 1.0 + 1e-6
    if balance_sheet.silent == 0 and coordinator.members.present == CLIENTS:
        for balance in balance_sheet.rounds:
            assert (balance.accepted, balance.charged, balance.accepted) == truth[balance.round]
            joint = 0
            for member in play.members:
                commit = member.store.get(RUN, balance.round)
                took = commit is not None and bool(
                    coordinator._history[balance.round].parts[0].answered[member.start]
                )
                for reply in commit.replies if commit is not None and took else ():
                    joint ^= checksum(reply)
            assert balance.checksum == joint
    return balance_sheet.charged_not_accepted, balance_sheet.silent


@pytest.mark.parametrize("seeds", [12, pytest.param(1000, marks=pytest.mark.slow)])
def test_accounts_agree_with_what_was_accepted(seeds: int) -> None:
    """Test 28, by search over networks: the balance is that of the members' stores and of the
    round's own flags, computed another way."""
    ran, lost, silent = 0, 0, 0
    for seed in range(seeds):
        try:
            few, quiet = _check(seed)
        except LocalDPError:
            continue  # a round without its quorum
        ran, lost, silent = ran + 1, lost + few, silent + quiet
    assert ran > seeds // 2
    assert lost > 0
    assert silent > 0
    print(
        f"test 28: {ran} runs over a network that loses and repeats: 0 accepted and not charged, "
        f"{lost} charged and not accepted, {silent} members silent"
    )


def test_a_forged_report_is_told_aloud() -> None:
    """A stranger's report that came before the client's own is accepted: the account says that its
    member never sent it, and the result says so loudly."""
    play, forged = Play(), set[bytes]()

    def rewriting(delivery: Delivery) -> int:
        message = decode(delivery.payload)
        if (
            not isinstance(message, Reply)
            or message.round != 2
            or message.member != "host-3"
            or delivery.payload in forged
        ):
            return 1
        other = encode(
            message.model_copy(update={"reports": bytes(1 - bit for bit in message.reports)})
        )
        forged.add(other)
        play.broker.route(Delivery(delivery.topic, other))
        return 0

    play.fate = rewriting
    coordinator = run_virtually(play.run())
    accounts = coordinator.reconciliation()
    assert (
        accounts.accepted_not_charged,
        [each.round for each in accounts.rounds if not each.agree],
    ) == (EACH, [2])
    loud = summary(_data(accounts), 200)
    assert (
        "NOT RECONCILED: 5 reports were accepted that their members did not charge or send, in "
        "round 2"
    ) in loud
    print("test 28: a forged reply of 5 reports: 5 accepted and not charged, told aloud")


def _data(accounts: Reconciliation) -> dict[str, Any]:
    settings = Settings(
        Survey(), Survey().synthetic(10, SEED), 1.0, Randomness(SEED, False), tier="population"
    )
    outcome = execute(settings, lambda progress: None)
    return as_data(settings, replace(outcome, bus=BusRecord(reconciliation=accounts)))


def test_who_is_silent_is_counted_and_waited_for_a_second() -> None:
    """With all there the end takes no time; two members that are gone without a word are waited for
    one second, and not reconciled."""
    whole, halved = Play(), Play(mute=frozenset({1, 4}))
    assert [run_virtually(whole.run()).reconciliation().silent, whole.parted] == pytest.approx(
        [0, 0.0]
    )
    accounts = run_virtually(halved.run()).reconciliation()
    assert (accounts.members, accounts.silent, accounts.accepted_not_charged) == (MEMBERS, 2, 0)
    assert all(
        (each.accepted, each.charged) == (CLIENTS - 2 * EACH, CLIENTS - 2 * EACH)
        for each in accounts.rounds
    )
    assert halved.parted == pytest.approx(1.0)


def test_an_account_counts_once_and_of_members_alone() -> None:
    coordinator = run_virtually(Play().run())
    before = coordinator.reconciliation()
    for name, lines in (("host-0", ()), ("stranger", ((1, 5, 5),))):
        coordinator.receive(
            topic(RUN, "rep", HOSTS, name), Account(run=RUN, member=name, rounds=lines), 0.0
        )
    assert (coordinator.reconciliation(), coordinator.rejected) == (before, 1)


def _over_a_broker(tier: Tier, disturb: Callable[[Progress], None], silent: int) -> None:
    settings = Settings(
        Survey(), Survey().synthetic(12, SEED), 1.0, Randomness(SEED, False), tier=tier, hosts=3
    )
    bus = execute(settings, disturb).bus
    assert bus is not None
    accounts = bus.reconciliation
    assert accounts is not None
    members = 12 if tier == "processes" else 3
    assert (
        accounts.members,
        accounts.silent,
        accounts.accepted_not_charged,
        accounts.charged_not_accepted,
    ) == (members, silent, 0, 0)
    reporting = 12 - 12 // members * silent
    (balance,) = accounts.rounds
    assert balance == Balance(1, reporting, reporting, balance.checksum, True, 0, 0)


@pytest.mark.usefixtures("warm")
def test_a_run_of_processes_is_reconciled() -> None:
    """Real processes on the embedded broker: every member gives its account, and the round
    agrees."""
    _over_a_broker("processes", lambda progress: None, 0)


@pytest.mark.long
def test_a_host_that_is_killed_after_its_answer_is_silent() -> None:
    killed = list[psutil.Process]()

    def kill(progress: Progress) -> None:
        if (
            not killed
            and isinstance(progress, RoundProgress)
            and progress.answered == progress.asked
        ):
            helper = next(
                child
                for child in psutil.Process().children()
                if "local_dp.clients.helper" in child.cmdline()
            )
            killed.extend(helper.children()[:1])
            killed[0].kill()

    _over_a_broker("hosts", kill, 1)


PEOPLE, DEADLINE = 100, 20.0
SILENT, LATE = (
    set(range(0, PEOPLE, 10)) | set(range(1, PEOPLE, 10)) | set(range(2, PEOPLE, 10)),
    {*range(3, PEOPLE, 10), *range(4, PEOPLE, 10)},
)


class _Slow(MemoryBroker):
    """Loses all that silent clients answer, and delays what late ones do until the round is
    over."""

    def route(self, delivery: Delivery) -> None:
        _, _, _, leaf, *others = delivery.topic.split("/")
        client = int(others[-1].removeprefix("member-")) if leaf == "rep" else -1
        if client in LATE:
            asyncio.get_running_loop().call_later(DEADLINE + 3.0, super().route, delivery)
        elif client not in SILENT:
            super().route(delivery)


def test_a_round_ends_without_the_silent_and_the_late() -> None:
    """It closes at its deadline, within a second; counts the late ones and does not use them; and
    its error is that of the reports that it used."""
    shuffled = yes_records(PEOPLE).take(np.random.default_rng(SEED).permutation(PEOPLE))
    algorithm: Nonadaptive[Any, Any, Any] = Nonadaptive(
        (survey_query(PEOPLE),), lambda tallies: tallies[0]
    )
    tally, coordinator = play_in_memory(
        algorithm,
        Rows(shuffled),
        PEOPLE,
        _Slow(),
        Terms(DEADLINE, 0.4),
        as_processes=True,
        after=2 * DEADLINE,
    )
    (took,) = coordinator.seconds
    counts, used = coordinator.counts, PEOPLE - len(SILENT) - len(LATE)
    estimate = survey_query(PEOPLE).randomizer.estimate(tally)
    error, sigma = abs(float(estimate.value) - 0.3), float(estimate.standard_error)
    figure(
        23,
        f"closed after {took:.2f} s of {DEADLINE:.0f}; {counts.answered} of {counts.asked} "
        f"answered, {counts.late} late, {counts.missing} missing; error {error:.3f} = "
        f"{error / sigma:.1f} sigma of {estimate.n} reports",
    )
    assert abs(took - DEADLINE) <= 1.0
    assert (counts.answered, counts.late, counts.missing) == (used, len(LATE), PEOPLE - used)
    assert (estimate.n, tally.n) == (used, used)
    assert error <= 5 * sigma
    assert sigma == pytest.approx((np.e + 1) / (np.e - 1) / used**0.5 / 2, rel=0.2), (
        "that of the reports that were used, at epsilon 1"
    )
