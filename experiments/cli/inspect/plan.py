"""`local-dp plan` and `local-dp compare`: whether local privacy is affordable, by closed form and by measurement."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from local_dp.experiments.api.plan import ANY, Wish, made, shown
from local_dp.experiments.api.tables import read_records
from local_dp.experiments.cli.fields import option
from local_dp.experiments.cli.run.options import check_asked, settings_of
from local_dp.experiments.cli.run.protocols import RoleOfProtocols
from local_dp.experiments.text.layout import screen_width
from local_dp.experiments.text.screen import SCREEN
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.protocols.surveys.policies import Launch
from local_dp.records import Records


@dataclass(frozen=True, kw_only=True)
class Planning:
    """Says how many clients an accuracy takes, or how accurate so many clients are.

    For every applicable randomizer, the trusted curator and no privacy. By closed form: nobody is asked, nothing is simulated. The accuracy is what the
    largest error of all that is estimated stays within with probability 95 %.
    """

    example: ClassVar[str] = "survey --epsilon 1 --accuracy 0.02"
    epsilon: float = option(1.0, "Every client's privacy budget", metavar="E", unit="nats")
    accuracy: float | None = option(None, "The error to stay within; without it and --clients, the protocol's tolerance", metavar="A")
    clients: int | None = option(None, "How many clients there are: says how accurate they are", metavar="N")
    population: Literal["any", "made-up"] = option(ANY, "Any population (the least favourable law), or the one that a run without a table makes up")
    records: Path | None = option(None, "A CSV or Parquet table: plans for people like its rows", metavar="FILE")
    shuffle: float | None = option(
        None, "Also behind a shuffler: epsilon is then what all reports lose together, beside this delta, such as 1e-6", metavar="DELTA"
    )
    settings: tuple[str, ...] = option((), "A parameter of the protocol; may be repeated", name="--set", metavar="KEY=VALUE")
    as_json: bool = option(False, "Print the plan as JSON, alone on standard output", name="--json")

    def __call__(self, kind: type[LocalProtocol[Any]], given: Mapping[str, str]) -> None:
        values = settings_of(self.settings, given)
        protocol, records = read_task(kind, values, self.records)
        SCREEN.working("computing the errors of every randomizer")
        wish = Wish(
            epsilon=self.epsilon, accuracy=self.accuracy, clients=self.clients, of=self.population if records is None else records, shuffle=self.shuffle
        )
        data = made(protocol, wish).to_dict()
        SCREEN.tell(json.dumps(data) if self.as_json else shown(data, screen_width()))


@dataclass(frozen=True, kw_only=True)
class Comparing:
    """Measures randomizers beside one another, over epsilons and numbers of clients: a table and a figure.

    What is measured is what the largest error stays within in 95 % of the runs. Runs are drawn in the aggregate tier, or every client is simulated in the
    population tier. Ctrl-C stops; the same command goes on.
    """

    example: ClassVar[str] = "frequency --epsilon 1 --clients 1000 --clients 10000"
    epsilon: tuple[float, ...] = option((0.5, 1.0, 2.0), "May be repeated", metavar="E", unit="nats")
    clients: tuple[int, ...] = option((1000, 10_000, 100_000), "May be repeated", metavar="N")
    only: tuple[str, ...] = option((), "A randomizer, may be repeated; without it, all that apply", metavar="NAME")
    runs: int = option(1000, "How often each is run", metavar="R")
    tier: Literal["aggregate", "population"] = option("aggregate", "Tallies drawn from their law, or every client simulated")
    records: Path | None = option(None, "A CSV or Parquet table: clients are drawn from its rows; without it, they are made up", metavar="FILE")
    settings: tuple[str, ...] = option((), "A parameter of the protocol; may be repeated", name="--set", metavar="KEY=VALUE")
    seed: int = option(1, "The same seed gives the same table", metavar="S")
    out: Path = option(Path("comparison"), "The folder for table and figure; a stopped run goes on from what it holds", metavar="FOLDER")
    as_json: bool = option(False, "Print the table as JSON, alone on standard output", name="--json")

    def __call__(self, kind: type[LocalProtocol[Any]], given: Mapping[str, str]) -> None:
        from local_dp.experiments.api.compare import Comparison, Grid, describe

        values = settings_of(self.settings, given)
        protocol, records = read_task(kind, values, self.records)
        grid = Grid(epsilons=self.epsilon, clients=self.clients, randomizers=self.only, runs=self.runs, tier=self.tier, seed=self.seed)

        def progress(what: str, done: int, total: int) -> None:
            SCREEN.working(f"{done} of {total} points measured; {what}")

        try:
            data = Comparison(protocol, grid, records).run(self.out, progress)
        except KeyboardInterrupt:
            SCREEN.note("stopped; what was measured is kept, and the same command goes on from it")
            raise
        SCREEN.tell(json.dumps(data) if self.as_json else f"{describe(data, screen_width())}\n\nfigure: {self.out / 'comparison.png'}")


def read_task(kind: type[LocalProtocol[Any]], values: Mapping[str, str], path: Path | None) -> tuple[LocalProtocol[Any], Records | None]:
    """The protocol with its parameters, and the table that it is to know, if there is one. Raises InputError."""
    built = kind.from_settings(values)
    if path is None:
        return built, None
    records = read_records(path)
    check_asked(kind, values, records)
    return built.for_table(Launch(records, private=False)), records


COMPARE = RoleOfProtocols("compare", Comparing)
PLAN = RoleOfProtocols("plan", Planning)
