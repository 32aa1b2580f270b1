"""`local-dp poll`: people answer on their own phones."""

import asyncio
import io
import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from local_dp.api.declare import argument, option
from local_dp.bus.address import Address, without_user
from local_dp.checks import check_whole
from local_dp.cli.fields import json_option
from local_dp.errors import InputError, reading
from local_dp.loss import nano_epsilon
from local_dp.noise import KeyedNoise
from local_dp.server.pages import LOOPBACK, check_installed
from local_dp.server.poll.again import Median
from local_dp.server.poll.game import EPSILON, TITLE, Game, outlook
from local_dp.server.poll.place import (
    context_of,
    fingerprint,
    is_loopback,
    listening,
    moment,
    own_name,
    self_signed,
    site_of,
)
from local_dp.server.poll.plan import PROTOCOL, Plan
from local_dp.server.poll.questions import Questions, read
from local_dp.server.poll.results import check_out, data_of, text_of, write
from local_dp.server.poll.run import Poll
from local_dp.server.poll.web import Site
from local_dp.server.remote import SUFFIX, Journal
from local_dp.simulation.installation import named, runs_folder
from local_dp.simulation.settings import EMBEDDED
from local_dp.text.screen import SCREEN

MOST_PEOPLE = 5000
_PEM_BYTES = 1 << 16
NEEDED = ("poll", "starlette", "uvicorn", "websockets", "segno")  # an extra and its modules


@dataclass(frozen=True)
class Ask:
    """Asks people on their own phones: each phone flips its answer at random before it sends it.

    QUESTION is a yes/no question, or a TOML file of several. The command prints the address of the
    page to answer on and that of the presenter. The poll goes on until the presenter closes it.
    Only this machine reaches it unless --host names another address; then it uses TLS.
    """

    example = "local-dp poll 'Did you ever cheat in an exam?' --epsilon 1"
    question: str = argument(
        "Yes/no question, or a file of questions in .toml", metavar="QUESTION", default=""
    )
    epsilon: float | None = option(
        None,
        f"Privacy loss of an answer; default: 1, or {EPSILON:g} with --game",
        metavar="E",
        unit="nats",
    )
    people: int = option(1000, "The most people that may join", metavar="N")
    until: str = option(
        "", "Close the poll at a time (12:30) or after a span (10m)", metavar="TIME"
    )
    out: Path | None = option(None, "Folder for the result: JSON, CSV and a page", metavar="DIR")
    demo: int = option(0, "Made-up people that join, for a rehearsal", metavar="N")
    seed: int | None = option(None, "Seed of the made-up people", metavar="S")
    slow: bool = option(
        False,
        "Show on the presenter's page how an answer is flipped",
        help="A made-up answer, step by step",
    )
    ask_again: bool = option(
        False,
        "Let the presenter ask a second question",
        help="It depends on the answers: the median of a number",
    )
    game: bool = option(
        False,
        "Play a game in two rounds, in place of a question",
        help="Made-up records; 60 phones find the hidden rule in 9 of 10 games, 20 in 3 of 10",
    )
    host: str = option(
        LOOPBACK, "Address to listen on; 0.0.0.0: all of this machine's", metavar="HOST"
    )
    name: str = option("", "Name or address in the link; default: this machine's", metavar="NAME")
    port: int = option(0, "Port of the pages; default: a free one", metavar="P")
    cert: Path | None = option(
        None,
        "Certificate and key in PEM; needed with --host",
        help="Its fingerprint is printed",
        metavar="FILE",
    )
    broker: str | None = option(
        None, "A broker of your own, in place of the embedded one", usual=EMBEDDED, metavar="URL"
    )
    journal: Path | None = option(
        None, "Folder that stores the poll; default: the user's own", metavar="DIR"
    )
    resume: str = option("", "Continue this poll, which was interrupted", metavar="NAME")
    as_json: bool = json_option("the result")

    def __call__(self) -> int:
        with closing(self._open()) as journal:
            return continued(journal, self.broker, self.out, self.as_json)

    def _open(self) -> Journal:
        """The journal of a new poll, or of the one to resume. Raises InputError."""
        folder, plan = self.journal or runs_folder(), None if self.resume else self._plan()
        if self.out is not None:
            check_out(self.out)
        if plan is None:
            return Journal.open(folder, self.resume)
        return Journal.begin(
            folder, plan.run, {**plan.to_dict(), "broker": without_user(plan.broker)}
        )

    def _plan(self) -> Plan:
        check_installed(*NEEDED)
        if not self.question and not self.game:
            raise InputError(f"a poll has a question: {self.example}")
        if self.game and (self.question or self.ask_again or self.slow):
            raise InputError(
                "--game has no question of a person's own: leave out QUESTION, --ask-again and "
                "--slow"
            )
        epsilon = (EPSILON if self.game else 1.0) if self.epsilon is None else self.epsilon
        nano_epsilon(epsilon)
        check_whole("people", self.people, 1, MOST_PEOPLE)
        check_whole("demo", self.demo, 0, self.people)
        check_whole("the port", self.port, 0, 65535)
        if self.seed is not None:
            KeyedNoise(self.seed)
            if not self.demo:
                raise InputError(
                    "--seed is for a rehearsal, whose answers everybody can compute: add --demo "
                    "200, or leave it out"
                )
        broker = EMBEDDED if self.broker is None else self.broker
        if broker != EMBEDDED and Address.parse(broker).transport == "websockets":
            raise InputError(
                f"the broker is {without_user(broker)!r}, over WebSocket, which only pages need; "
                "give its address with mqtt:// or mqtts://"
            )
        if self.game:
            Game.of(epsilon, 1, 0)
        questions = Questions(TITLE, ()) if self.game else read(self.question, epsilon)
        if self.ask_again:
            questions.check_price(Median.of(questions).epsilon)
        with listening(self.host, self.port) as probe:
            port: int = probe.getsockname()[1]
        name = self.name or own_name(self.host)
        return Plan.new(
            questions,
            people=self.people,
            host=self.host,
            name=name,
            port=port,
            broker=broker,
            seed=self.seed,
            until=moment(self.until, datetime.now()).timestamp() if self.until else None,
            demo=self.demo,
            slow=self.slow,
            ask_again=self.ask_again,
            game=epsilon if self.game else 0.0,
            certificate=self._certificate(name),
        )

    def _certificate(self, name: str) -> str:
        """The certificate and its key; empty on loopback, where none is needed. Raises
        InputError."""
        if self.cert is None:
            if is_loopback(self.host):
                return ""
            raise InputError(
                f"--host {self.host} needs a certificate; type `{self_signed(name)}`, and give "
                "--cert cert.pem"
            )
        with (
            reading(self.cert, "give a PEM file with a certificate and its key"),
            self.cert.open() as file,
        ):
            pem = file.read(_PEM_BYTES)
        context_of(pem)
        return pem


def continued(journal: Journal, broker: str | None, out: Path | None, as_json: bool) -> int:
    """Serves the poll of a journal until it is closed, and prints the result. Raises InputError for
    a journal of something else, or of a poll that is over."""
    check_installed(*NEEDED)
    SCREEN.check()
    name = named(journal.run, journal.folder)
    if journal.began.get("protocol") != PROTOCOL:
        raise InputError(f"{journal.run!r} is no poll; `local-dp resume {name}` continues it")
    if journal.result is not None:
        raise InputError(f"poll {journal.run!r} is over; `local-dp show {name}` prints its result")
    with reading(f"{journal.run}{SUFFIX}", "begin another poll"):
        plan = Plan.from_dict(journal.began)
    plan = plan if broker is None else replace(plan, broker=broker)
    site = site_of(plan)
    with listening(plan.host, plan.port) as listener:
        poll = Poll(plan, journal, site, listener)
        SCREEN.working("people are answering")
        try:
            result = asyncio.run(poll.play(lambda: _announce(plan, site, name), _show))
        except KeyboardInterrupt:
            SCREEN.note(f"the poll is interrupted; `local-dp poll --resume {name}` continues it")
            raise
    data = data_of(result)
    journal.end(data)
    try:
        if out is not None:
            write(data, out)
    finally:
        SCREEN.tell(
            json.dumps(data) if as_json else text_of(data), f"`local-dp show {name}` prints it"
        )
    return 0


def _show(state: Mapping[str, Any]) -> None:
    SCREEN.working(
        f"{state['joined']} of at most {state['people']:,} people have joined, {state['here']} "
        "are here"
    )


def _announce(plan: Plan, site: Site, name: str) -> None:
    import segno

    code = io.StringIO()
    segno.make(site.link, error="l", micro=False).terminal(code, compact=True)
    lines = [
        code.getvalue().rstrip("\n"),
        f"poll {plan.run}",
        f"people answer at   {site.link}",
        f"the presenter has  {site.presenter}",
    ]
    if plan.game:
        lines.append(outlook(plan.game))
    if plan.certificate:
        lines.append(f"SHA-256 of the certificate  {fingerprint(plan.certificate)}")
    for line in (*lines, f"after a crash      local-dp poll --resume {name}"):
        SCREEN.note(line)
