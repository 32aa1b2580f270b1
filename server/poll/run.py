"""A poll from its start to its result: one process with the web server, the coordinator, the
journal and, unless another is named, the broker."""

import asyncio
import io
import socket
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_dp.arrays import Counts
from local_dp.bus.address import Address
from local_dp.bus.broker import EmbeddedBroker
from local_dp.bus.children import Folder, allow_open_files
from local_dp.bus.mqtt import MqttBus
from local_dp.sealing import Party, public
from local_dp.server.members import filters
from local_dp.server.poll.again import Again, Median
from local_dp.server.poll.crowd import Crowd
from local_dp.server.poll.demo import Demo, hosts
from local_dp.server.poll.game import Game
from local_dp.server.poll.gate import Gate
from local_dp.server.poll.open_round import AnyTurnout, OpenCoordinator
from local_dp.server.poll.places import Places
from local_dp.server.poll.plan import Plan
from local_dp.server.poll.scene import Standing, State, reports_of
from local_dp.server.poll.web import Refused, Site, Web
from local_dp.server.remote import Journal, RemoteOracle
from local_dp.server.round import Reconciliation, Round
from local_dp.simulation.over_bus import end
from local_dp.simulation.settings import EMBEDDED

PARTING = 2.0  # seconds to wait for the accounts of those who are present at the end
PATIENCE = 10.0  # seconds to reach the broker at first
LIMIT = 20.0  # seconds for each round of the second question, or of a game
AGAIN, GO_ON = (
    "again",
    "go on",
    # notes of the journal: the second question was asked for, or the game began; its second round
    # was
)
WORDS = {
    "open": "The poll is open.",
    "again": "The second question is being answered.",
    "playing": "The game is on. Nobody joins any more.",
    "closed": "The poll is closed.",
    "failed": "The poll was interrupted.",
}
OF_GAME = {"open": "Phones can join the game.", "closed": "The game is over."}


@dataclass(frozen=True)
class Result:
    """A poll that is over: its first round, what depended on it, the number of places taken, and
    the accounts of those who were present."""

    plan: Plan
    round: Round
    again: Again[Any] | None
    places: int
    accounts: Reconciliation
    end: float


class Poll:
    """One poll. `play` serves it until it is closed; the presenter's page asks for `state`."""

    def __init__(self, plan: Plan, journal: Journal, site: Site, listener: socket.socket) -> None:
        self.plan, self.journal, self.site = plan, journal, site
        self._listener = listener
        self.places = Places(journal, plan.people, plan.coins, hosts(plan.demo))
        self.envelopes = Party.server(plan.run, plan.key, self.places.roster.speaker)
        self._game = (
            Game.of(plan.game, plan.people, plan.coins, pauses=plan.until is None)
            if plan.game
            else None
        )
        self._again: Again[Any] | None = self._game or (
            Median.of(plan.questions) if plan.ask_again else None
        )
        self.epsilon = plan.questions.epsilon + (self._again.epsilon if self._again else 0.0)
        self.coordinator = OpenCoordinator(
            plan.run, plan.people, plan.coins, self.epsilon, AnyTurnout(), self.places.roster
        )
        self._closed = asyncio.Event()
        if self._again and journal.notes(AGAIN):
            self._again.has_begun = True
            self._closed.set()
        if self._game and journal.notes(GO_ON):
            self._game.go_on.set()
        self._standing = [Standing(question, plan.people) for question in plan.questions.questions]
        self._public = self._describe()
        self._phase = "open"
        self._state: State = {}
        self._look: object = None

    async def play(
        self,
        announce: Callable[[], object] = lambda: None,
        show: Callable[[State], None] = lambda state: None,
    ) -> Result:
        """Serves pages and collects answers until the poll is closed. `announce` is called once it
        can be joined, `show` at each look. Raises BusError."""
        async with AsyncExitStack() as stack:
            address, watches = await self._broker(stack)
            allow_open_files(2 * Crowd(self.plan.people).most)
            bus = MqttBus(address, f"{self.plan.run}-server", filters(self.plan.run))
            oracle = RemoteOracle(
                bus,
                self.coordinator,
                lambda progress: show(self.state()),
                self.journal,
                self.envelopes,
            )
            web = Web(
                self.site,
                self._listener,
                self,
                Gate(self.plan.run, self.envelopes, address),
                Crowd(self.plan.people),
            )
            playing = asyncio.create_task(self._collect(oracle))
            serving = asyncio.create_task(web.serve())
            beside = [oracle.serve(PATIENCE), self._until(), *watches]
            # not when it is resumed: their answers were in memory
            if self.plan.demo and not self.places.taken:
                beside.append(
                    Demo(self.plan, self.epsilon, self._game).come(address, self.places.give)
                )
            tasks = {playing, serving, *map(asyncio.create_task, beside)}
            announce()
            try:
                while not playing.done():
                    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                    tasks -= done
                    for task in done - {playing}:
                        task.result()
                return await playing
            except BaseException:
                self._phase = "failed"
                raise
            finally:
                web.close()
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(serving), PARTING + 2)
                await end({*tasks, serving, playing})

    async def _broker(self, stack: AsyncExitStack) -> tuple[Address, list[Any]]:
        """The broker's address, and what to watch."""
        if self.plan.broker != EMBEDDED:
            return Address.parse(self.plan.broker), []
        folder = stack.enter_context(Folder())
        broker = EmbeddedBroker(Path(folder), fair=True)
        stack.push_async_callback(broker.stop)
        await broker.start()
        return Address.parse(broker.url), [broker.watch()]

    async def _collect(self, oracle: RemoteOracle) -> Result:
        if self._game:
            await self._closed.wait()
        else:
            await oracle.answer(self.plan.questions.asks(self.plan.people))
        self.places.open = False
        if self._again and self._again.has_begun:
            self._phase, self.coordinator.limit = "playing" if self._game else "again", LIMIT
            await self._again.play(self._takers, self.plan.people, oracle)
        self._phase = "closed"
        await oracle.end(PARTING)
        # none of a game that nobody joined
        first = self.coordinator.round(1) or Round(self.plan.run, 1, (), self.plan.coins)
        return Result(
            self.plan,
            first,
            self._later,
            self.places.taken,
            self.coordinator.reconciliation(),
            time.time(),
        )

    @property
    def _later(self) -> Again[Any] | None:
        """The game; or a second question, once it has begun."""
        return self._again if self._game or (self._again and self._again.has_begun) else None

    @property
    def _takers(self) -> Counts:
        """The places that a second question, or the game, is about."""
        assert self._again is not None
        return self._again.places(self.coordinator.round(1), self.places.roster)

    @property
    def _offer(self) -> tuple[str, str]:
        """The presenter's next button, and what it would show."""
        if self._again is None or self._phase in ("closed", "failed"):
            return "", ""
        return self._again.offer(len(self._takers))

    async def _until(self) -> None:
        """Closes the poll at its time."""
        if self.plan.until is not None:
            while (left := self.plan.until - time.time()) > 0:
                await asyncio.sleep(min(left, 1.0))
            self.close()

    def public(self) -> dict[str, Any]:
        return {**self._public, "open": self._phase == "open"}

    def _describe(self) -> dict[str, Any]:
        """The words and numbers that a respondent's page shows, apart from whether the poll is
        open. The page builds each ask from them."""
        plan = self.plan
        questions = [
            {**question.to_dict(), "randomizer": question.ask(plan.people).randomizer.name}
            for question in plan.questions.questions
        ]
        return {
            "version": 2,
            "run": plan.run,
            "server": public(plan.key).hex(),
            "title": plan.questions.title,
            "questions": questions,
            "epsilon": self.epsilon,
            "again": self._again and {**self._again.public(), "epsilon": self._again.epsilon},
            "people": plan.people,
            "private": plan.seed is None,
            "demo": plan.demo,
        }

    def join(self, key: bytes, fresh: Callable[[], bool]) -> dict[str, Any]:
        place = self.places.join(key, fresh)
        return {**place, "record": self._game.record(place["start"])} if self._game else place

    def state(self) -> State:
        """How the poll stands. The server looks at each stand, so that a page that is opened late
        has the history."""
        round = self.coordinator.round(1)
        here = sum(member.gone_since is None for member in self.coordinator.members)
        look = (
            self._phase,
            self.places.taken,
            here,
            self.coordinator.counts.answered,
            self._offer,
            self._again and len(self._again.steps),
        )
        if look != self._look:
            self._look, self._state = look, self._view(round, here)
        return self._state

    def _view(self, round: Round | None, here: int) -> State:
        plan = self.plan
        return {
            "title": plan.questions.title,
            "phase": self._phase,
            "status": (WORDS | OF_GAME if self._game else WORDS)[self._phase],
            "link": self.site.link,
            "joined": self.places.taken,
            "here": here,
            "people": plan.people,
            "epsilon": self.epsilon,
            "until": plan.until,
            "private": plan.seed is None,
            "demo": plan.demo,
            "slow": plan.slow,
            "game": self._game is not None,
            "offer": self._offer,
            "questions": [
                standing.look(part)
                for standing, part in zip(
                    self._standing, round.parts if round else (), strict=False
                )
            ],
            "again": self._later and self._later.state(),
        }

    def reports(self, question: int) -> dict[str, Any]:
        round = self.coordinator.round(1)
        if round is None or not 0 <= question < len(round.parts):
            raise Refused(404, "there is no such question")
        return reports_of(round.parts[question])

    def close(self) -> None:
        """Nobody joins any more. A game begins."""
        self.places.open = False
        if self._game and not self._game.has_begun:
            self._begin(self._game)
        self._closed.set()
        self.coordinator.shut_open()

    def again(self) -> None:
        """What the presenter's second button is for."""
        if self._again is None or not self._offer[0]:
            raise Refused(409, "this poll has no second round, or too few answers for it")
        if self._game:
            self.journal.note(GO_ON, b"")
            self._game.go_on.set()
        else:
            self._begin(self._again)
            self.close()

    def _begin(self, again: Again[Any]) -> None:
        self.journal.note(AGAIN, b"")
        again.has_begun = True

    def picture(self) -> bytes:
        import segno

        image = io.BytesIO()
        segno.make(self.site.link, error="m", micro=False).save(
            image, kind="svg", scale=8, border=4, dark="#000", light="#fff", xmldecl=False
        )
        return image.getvalue()
