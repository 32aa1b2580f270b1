"""`local-dp poll`: people answer on their own phones."""

import asyncio
import io
import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from local_dp.checks import check_whole
from local_dp.errors import InputError, reading
from local_dp.experiments.api.declare import argument, option
from local_dp.experiments.cli.fields import json_option
from local_dp.experiments.poll.questions import read
from local_dp.experiments.poll.results import data_of, text_of, write
from local_dp.experiments.poll.run import LOOPBACK, PROTOCOL, Plan, Poll, listening
from local_dp.experiments.poll.web import Site
from local_dp.experiments.text.screen import SCREEN
from local_dp.experiments.tiers.installation import runs_folder
from local_dp.experiments.tiers.settings import EMBEDDED
from local_dp.loss import nano_epsilon
from local_dp.server.remote import SUFFIX, Journal

MOST_PEOPLE = 5000


@dataclass(frozen=True)
class Ask:
    """Asks people on their own phones: each phone flips its answer at random before it sends it.

    QUESTION is a yes/no question, or a TOML file of several. The command prints the address of the page to answer on and that of the presenter. The poll goes
    on until the presenter closes it.
    """

    example: ClassVar[str] = "local-dp poll 'Did you ever cheat in an exam?' --epsilon 1"
    question: str = argument("A yes/no question, or a file of questions that ends in .toml", metavar="QUESTION", default="")
    epsilon: float = option(1.0, "Privacy loss of an answer, where the file gives none", metavar="E", unit="nats")
    people: int = option(1000, "The most people that may join", metavar="N")
    port: int = option(0, "Port of the pages; default: a free one", metavar="P")
    broker: str = option(EMBEDDED, "A broker of your own, in place of the embedded one", metavar="URL")
    out: Path | None = option(None, "Folder for the result: JSON, CSV and a page", metavar="DIR")
    journal: Path | None = option(None, "Folder that stores the poll; default: a folder of the user's", metavar="DIR")
    resume: str = option("", "Continue this poll, which was interrupted", metavar="NAME")
    as_json: bool = json_option("the result")

    def __call__(self) -> int:
        with closing(self._journal()) as journal:
            with reading(f"{journal.run}{SUFFIX}", "begin another poll"):
                plan = Plan.from_dict(journal.began)
            listener = listening(plan.host, plan.port)
            site = Site((plan.host, "localhost"), plan.port, plan.token, plan.host_token)
            SCREEN.working("people are answering")
            data = data_of(asyncio.run(Poll(plan, journal, site, listener).play(lambda: _announce(plan, site))))
            journal.end(data)
        if self.out is not None:
            write(data, self.out)
        SCREEN.tell(json.dumps(data) if self.as_json else text_of(data))
        return 0

    def _journal(self) -> Journal:
        """That of a new poll, or of the one to resume. Raises InputError."""
        folder = self.journal or runs_folder()
        if self.resume:
            journal = Journal.open(folder, self.resume)
            if journal.began.get("protocol") != PROTOCOL or journal.result is not None:
                journal.close()
                raise InputError(f"{self.resume!r} is no poll that was interrupted; `local-dp runs` lists all runs")
            return journal
        if not self.question:
            raise InputError(f"a poll has a question: {self.example}")
        nano_epsilon(self.epsilon)
        check_whole("people", self.people, 1, MOST_PEOPLE)
        check_whole("the port", self.port, 0, 65535)
        with listening(LOOPBACK, self.port) as probe:
            port = probe.getsockname()[1]
        plan = Plan.new(read(self.question, self.epsilon), people=self.people, host=LOOPBACK, port=port, broker=self.broker)
        return Journal.begin(folder, plan.run, plan.to_dict())


def _announce(plan: Plan, site: Site) -> None:
    import segno

    SCREEN.note(f"poll {plan.run}")
    SCREEN.note(f"people answer at   {site.link}")
    SCREEN.note(f"the presenter has  {site.presenter}")
    SCREEN.note(f"after a crash      local-dp poll --resume {plan.run}")
    drawn = io.StringIO()
    segno.make(site.link, error="l", micro=False).terminal(drawn, compact=True)
    SCREEN.note(drawn.getvalue())
