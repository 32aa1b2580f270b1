"""P7: a result whose reports were lost by choice is marked as degraded, and no honest run is, by
more than the stated chance."""

import asyncio
import json
import random
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from scipy.stats import binom

from local_dp.api.result import Result, pictured
from local_dp.bounds.attacks import Influence, influence_of
from local_dp.bus.interface import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.cli.fields import show
from local_dp.cli.main import DEGRADED
from local_dp.cli.run.join import Show
from local_dp.clients.member import filters, serve
from local_dp.clients.role import ClientRole
from local_dp.errors import QuorumError
from local_dp.interaction import Nonadaptive
from local_dp.populations.finite import Rows
from local_dp.protocols.surveys.survey import Survey
from local_dp.server.coordinator import Coordinator
from local_dp.server.losses import ALPHA, LEAVES, LOSS, TESTS, Unanswered, losses_of
from local_dp.server.members import filters as server_filters
from local_dp.server.quorum import Terms
from local_dp.server.remote import Journal, RemoteOracle
from local_dp.server.watch.events import Scene
from local_dp.simulation.outcome import IMPOSSIBLE, Outcome, as_data, judged
from local_dp.simulation.over_bus import outcome_of
from local_dp.simulation.settings import Randomness, Settings
from local_dp.tallies import Tally
from local_dp.wire import Account, Gone, Reply, Request, decode, encode, topic
from tests.support.inputs.builders import RUN, SEED, role, yes_records
from tests.support.long import short
from tests.support.runs.virtual_time import beside, run_virtually
from tests.support.wrong import wrong

PEOPLE, GROUP = 60, 20
SCHEMA = json.loads(files("local_dp.simulation").joinpath("outcome.schema.json").read_text())
SURVEY = Survey(question="yes == 1")


@dataclass
class Play:
    """A survey of `people`, half of whom say yes, asked `rounds` times over a bus in memory; the
    last round is the result.

    `drops` are the messages that the bus loses, `late` those that it holds until the round is
    over. With a `folder` the server dies after its first round.
    """

    drops: Callable[[Delivery], bool] = lambda delivery: False
    late: Callable[[Delivery], bool] = lambda delivery: False
    rounds: int = 1
    people: int = PEOPLE
    deadline: float = 20.0
    seed: int = SEED
    folder: Path | None = None
    broker: MemoryBroker = field(default_factory=MemoryBroker)

    @property
    def settings(self) -> Settings:
        return Settings(
            SURVEY, Rows(yes_records(self.people, 0.5)), 1.0, Randomness(self.seed, False)
        )

    def data(self) -> dict[str, Any]:
        return as_data(self.settings, run_virtually(self.run()), truth_known=True)

    async def run(self) -> Outcome:
        algorithm, members, loop = (
            self.settings.algorithm,
            self._members(),
            asyncio.get_running_loop(),
        )
        assert isinstance(algorithm, Nonadaptive)

        def fate(delivery: Delivery) -> int:
            if self.late(delivery):
                loop.call_later(self.deadline + 1.0, lambda: server.queue.put_nowait(delivery))
                return 0
            return 0 if self.drops(delivery) else 1

        living = [
            serve(
                member,
                self.broker.join(filters(RUN, _group(member.start))),
                RUN,
                _group(member.start),
            )
            for member in members
        ]
        self.broker.fate = fate
        server = self.broker.join(server_filters(RUN))
        async with beside(*living):
            # with a folder, the server dies after its first round
            for last in (False, True) if self.folder else (True,):
                outcome = await self._serve(server, algorithm, 1 if not last else self.rounds)
        return outcome

    async def _serve(
        self, server: Any, algorithm: Nonadaptive[Any, Tally, Any], rounds: int
    ) -> Outcome:
        coordinator = Coordinator(
            RUN, self.people, SEED, float(self.rounds), Terms(self.deadline, 0.2)
        )
        journal = None
        if self.folder is not None:
            journal = (
                Journal.open(self.folder, RUN)
                if (self.folder / f"{RUN}.run").exists()
                else Journal.begin(self.folder, RUN, {})
            )
        oracle = RemoteOracle(server, coordinator, journal=journal)
        async with beside(oracle.serve(1.0)):
            await oracle.ready(5.0)
            for _ in range(rounds):
                tallies = await oracle.answer(algorithm.queries)
                await asyncio.sleep(2.0)  # in which late reports come
            if journal is None or rounds == self.rounds:
                await oracle.end(2.0)
        if journal is not None:
            journal.close()
        return outcome_of(algorithm.decode(tallies), oracle)

    def _members(self) -> list[ClientRole]:
        records = yes_records(self.people, 0.5).take(
            np.random.default_rng(self.seed).permutation(self.people)
        )
        return [
            role(records.take(slice(at, at + 1)), at, float(self.rounds), f"client-{at}")
            for at in range(self.people)
        ]


def _group(client: int) -> str:
    return f"g{client // GROUP}"


def _reply(delivery: Delivery, bit: int | None = None, number: int | None = None) -> str:
    """The name of the member whose reply this is, if it has this bit and is to this round; else
    nothing."""
    message = decode(delivery.payload)
    fits = (
        isinstance(message, Reply)
        and bit in (None, message.reports[0])
        and number in (None, message.round)
    )
    return message.member if fits and isinstance(message, Reply) else ""


NAMES = {f"client-{client}" for client in range(0, PEOPLE, 2)}
DROPPERS: dict[str, dict[str, Any]] = {  # by what each of them chooses the reports that it loses
    "bit": {"drops": lambda delivery: _reply(delivery, 0)},
    "name": {"drops": lambda delivery: _reply(delivery) in NAMES},
    "group": {"drops": lambda delivery: _reply(delivery) and "/g0/" in delivery.topic},
    "round": {"drops": lambda delivery: _reply(delivery, 0, 2), "rounds": 3},
    "late": {"late": lambda delivery: _reply(delivery, 0), "rounds": 2, "deadline": 6.0},
}


def _and_silent(
    drops: Callable[[Delivery], Any], broker: MemoryBroker
) -> Callable[[Delivery], bool]:
    """The same dropper, which loses the account of each such member as well, and says that the
    member is gone."""
    victims = set[str]()

    def loses(delivery: Delivery) -> bool:
        *_, group, name = delivery.topic.split("/")
        if drops(delivery):
            if name not in victims:
                broker.route(
                    Delivery(topic(RUN, "gone", group, name), encode(Gone(run=RUN, member=name)))
                )
            victims.add(name)
            return True
        return isinstance(decode(delivery.payload), Account) and name in victims

    return loses


@wrong(
    "local_dp.server.losses:losses_of",
    "name not in accounts or name in late",
    "name not in accounts",
    "a bus that holds the reports it dislikes until the round is over is not seen",
    at="late",
)
@wrong(
    "local_dp.server.coordinator:Coordinator.losses",
    "self._history.values()",
    "list(self._history.values())[-1:]",
    "a bus that loses reports of one earlier round is not seen",
    at="round",
)
@wrong(
    "local_dp.server.losses:losses_of",
    "if present:",
    "if len(present) > end.members // 3:",
    "a bus that loses the reports of one group of three is not seen",
    at="group",
)
@wrong(
    "local_dp.server.losses:losses_of",
    "if away:",
    "if False:",
    "a bus that loses the account beside the report is not seen",
    at="bit",
)
@pytest.mark.parametrize("name", short(DROPPERS, lambda name: name in ("late", "group")))
def test_every_selective_dropper_degrades_the_result(name: str) -> None:
    """By report, name, group, round, and late: the result is marked, the interval holds the truth,
    and no share beyond 0 and 1 is shown.

    So are those who lose the accounts of the same members too, and say that these are gone.
    """
    play, silent = Play(**DROPPERS[name]), Play(**DROPPERS[name])
    silent.drops = _and_silent(silent.drops, silent.broker)
    for data in (play.data(), silent.data()):
        assert data["degraded"]
        (low, high), truth = data["result"]["interval"], data["result"]["truth"]
        assert low <= truth <= high
        assert data["result"]["estimate"] is None or 0 <= data["result"]["estimate"] <= 1


@wrong(
    "local_dp.server.losses:losses_of",
    "name in accounts and name not in late",
    "name in accounts and accounts[name].rounds and (name not in late)",
    "a bus that keeps the requests from some groups is not seen",
)
def test_requests_that_are_kept_from_some_are_seen_too() -> None:
    """The bus loses no report, but each request to one group: its members were there to the end,
    and uncharged."""

    def drops(delivery: Delivery) -> bool:
        return isinstance(decode(delivery.payload), Request) and "/g1" in delivery.topic

    (sign,) = Play(drops).data()["degraded"]
    assert "20 of 60 members are missing" in sign
    assert "0 of them had charged" in sign


@wrong(
    "local_dp.server.phases:Collecting.due",
    "each.times += 1",
    "pass",
    "a member that was asked twenty times counts as asked once",
)
@wrong(
    "local_dp.server.losses:losses_of",
    (
        "min(1.0, replies * again ** end.asks / len(present), float(mean_tail(charges / "
        "end.members, end.members, each)))"
    ),
    "min(1.0, float(mean_tail(charges / end.members, end.members, each)))",
    "a charged report that never came, after twenty requests, is taken for chance",
)
def test_one_charged_report_that_never_came_is_enough() -> None:
    """Asked twenty times, one member of sixty that charged its report and stayed to the end: no
    honest network explains it."""
    data = Play(lambda delivery: _reply(delivery) == "client-7").data()
    (sign,) = data["degraded"]
    assert "1 of 60 members are missing (client-7)" in sign


@wrong(
    "local_dp.cli.fields:show",
    "DEGRADED if 'degraded' in data else 0",
    "0",
    "a program that reads the exit code takes a degraded result for a plain one",
)
@wrong(
    "local_dp.simulation.outcome:judged",
    "replace(outcome, result=estimate, signs=tuple(signs))",
    "replace(outcome, signs=tuple(signs))",
    "a degraded result shows a share of 1.58, with its plain interval",
)
def test_every_form_of_the_result_is_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The attack of the audit: all "0" replies are lost, so all others say yes, a share of 1.58. It
    is shown nowhere, and the exit code is 6."""
    play = Play(**DROPPERS["bit"])
    outcome = run_virtually(play.run())
    raw = float(outcome.result.value)
    data = as_data(play.settings, outcome)
    assert raw > 1.5
    assert data["result"]["true_error"] is None
    jsonschema.validate(json.loads(json.dumps(data)), SCHEMA)
    result, scene = (
        Result(data, SURVEY, judged(play.settings, outcome).result),
        Scene(play.settings),
    )
    scene.finish(data)
    with closing(Journal.begin(tmp_path, RUN, {"protocol": "survey", "at": ""})) as journal:
        journal.end(data)
    python = (
        f"DEGRADED {result.degraded} {result.estimate} {result.interval} {result.value.value} "
        f"{result.value.interval()}"
    )
    for form in (
        result.text(400),
        json.dumps(result.to_dict()),
        python,
        json.dumps(scene.state),
        repr(pictured(data)),
    ):
        assert "degraded" in form.lower()
        assert f"{raw:.2f}"[:4] not in form
    assert show(Result(data, SURVEY, None), as_json=True) == DEGRADED == 6
    assert Show(RUN, tmp_path, as_json=False)() == DEGRADED
    assert "worst-case interval" in capsys.readouterr().out


@wrong(
    "local_dp.server.remote:Journal.closed",
    "vars(closing.shortfall)",
    "{}",
    "the mark is lost where a server is killed and goes on",
)
def test_a_resumed_run_is_marked(tmp_path: Path) -> None:
    """The server dies after the round that was tampered with; the one that goes on asks nobody
    again, and marks the result."""
    play = Play(lambda delivery: bool(_reply(delivery, 0, 1)), rounds=2, folder=tmp_path)
    assert "round 1" in play.data()["degraded"][0]


@wrong(
    "local_dp.api.show:_accounts",
    "silent == members",
    "silent > members",
    "without any account the result says that budgets match",
    at="0-Budgets were not checked: none of the 60 members gave an account",
)
@pytest.mark.parametrize(
    ("accounts", "sentence"),
    [
        (0, "Budgets were not checked: none of the 60 members gave an account"),
        (50, "10 of 60 members gave no account"),
    ],
)
def test_what_was_not_checked_is_said(accounts: int, sentence: str) -> None:
    """Accounts that do not arrive: the result says how many reports were not checked, and never
    that all of them were charged."""
    missing = {f"client-{client}" for client in range(accounts, PEOPLE)}
    play = Play(
        lambda delivery: (
            isinstance(message := decode(delivery.payload), Account) and message.member in missing
        )
    )
    text = Result(play.data(), SURVEY, None).text(400)
    assert sentence in text
    assert f"{PEOPLE - accounts} of 60 accepted reports were not checked" in text
    assert "all 60" not in text


def test_an_honest_network_marks_no_result() -> None:
    """A run without losses, and runs that lose each message with probability LOSS, and end early.
    By chance one of a million is marked."""
    data = Play().data()
    assert "degraded" not in data
    assert show(Result(data, SURVEY, None), as_json=True) == 0
    assert "Budgets match: all 60 reports are accounted for." in Result(data, SURVEY, None).text(
        200
    )
    lossy = 0
    for seed in range(25):
        chance = random.Random(seed)
        play = Play(
            lambda delivery, chance=chance: chance.random() < LOSS,  # type: ignore[misc]
            people=12,
            deadline=chance.uniform(1, 2),
            seed=seed,
        )
        with suppress(QuorumError):
            outcome = run_virtually(play.run())
            lossy += outcome.counts.missing > 0
            assert "degraded" not in as_data(play.settings, outcome)
    assert lossy > 1


@wrong(
    "local_dp.server.losses:losses_of",
    "LEAVES",
    "LEAVES / 2",
    "members that leave on their own mark results more often than is stated",
    at="2",
)
@pytest.mark.parametrize("members", [1, 2, 10, 60, 200, 1000])
def test_members_that_leave_are_explained_by_chance(members: int) -> None:
    """Exactly, by the binomial law: where each member leaves with probability LEAVES, a mark at any
    level comes with that probability at most."""
    law = binom(members, LEAVES)
    names = tuple(f"client-{at}" for at in range(members))
    chances = [
        losses_of(1, Unanswered(members, 20, names[:few]), frozenset(), {}, members)[0].chance
        for few in range(1, members + 1)
    ]
    for level in (ALPHA / TESTS, 1e-3, 0.05):
        least = next((few for few, chance in enumerate(chances, 1) if chance <= level), members + 1)
        assert law.sf(least - 1) <= level
    assert members < 10 or chances[-1] <= ALPHA / TESTS, (
        "where all of many are missing, there is a mark"
    )


def _influence(epsilon: float) -> tuple[Any, Influence]:
    algorithm = SURVEY.algorithm(epsilon, 100)
    assert isinstance(algorithm, Nonadaptive)
    influence = influence_of(algorithm)
    assert influence is not None
    return algorithm.queries[0].randomizer, influence


@wrong(
    "local_dp.bounds.attacks:Influence.chance",
    "n = estimate.n",
    "n = 2 * estimate.n",
    "honest estimates are called impossible more often than is stated",
    at="0.1",
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_an_impossible_estimate_is_as_rare_as_is_said(epsilon: float) -> None:
    """Exactly, by the binomial law of the reports, for everybody yes and nobody yes: a sign at any
    level comes with that probability at most, and it comes."""
    randomizer, influence = _influence(epsilon)
    assert (float(influence.least), float(influence.most)) == pytest.approx((0.0, 1.0), abs=1e-12)
    truth, worst = 1 - randomizer.flip / randomizer.total, 0.0
    for n in (5, 60, 1000):
        ones = np.arange(n + 1)
        estimates = [
            randomizer.estimate(Tally(np.array([[n - one, one]]))) for one in ones.tolist()
        ]
        chances = np.array([influence.chance(estimate)[1] for estimate in estimates])
        away = n * (1 - truth) / binom(n, truth).std()  # of all ones, from everybody yes
        assert influence.chance(estimates[-1])[0] == pytest.approx(away)
        for level in (IMPOSSIBLE, 1e-3, 0.05):
            for share in (truth, 1 - truth):
                chance = float(binom(n, share).pmf(ones)[chances <= level].sum())
                assert chance <= level
                worst = max(worst, chance / level)
        assert n < 1000 or chances[-1] <= IMPOSSIBLE or epsilon > 1, (
            "a share far beyond 1 is a sign"
        )
