"""`local-dp plan`, `compare`, `sweep` and `mix`: the cost of local privacy, by closed form, by
measurement, and behind a shuffler."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from local_dp.api.costs import mix
from local_dp.api.declare import CLUSTER, Drawn, argument, option
from local_dp.api.plan import ANY, plan
from local_dp.cli.fields import Plotted, Reading, json_option, show
from local_dp.cli.run.run import Kind, ProtocolCommand, Texts
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.protocols.search.heavy_hitters import HeavyHitters
from local_dp.protocols.surveys.frequency import OfShares
from local_dp.shuffle.central import Behind
from local_dp.text.screen import SCREEN

if TYPE_CHECKING:  # what measures takes a while to import
    from local_dp.api.sweep import Sweep


@dataclass(frozen=True, kw_only=True)
class Plan(ProtocolCommand):
    """Computes the number of clients for an accuracy, or the accuracy of a number of clients.

    For every applicable randomizer, the trusted curator and no privacy, by closed form: no client
    is asked, nothing is simulated. The accuracy bounds the largest error of all estimates with
    probability 95 %.
    """

    example = "survey --epsilon 1 --accuracy 0.02"
    epsilon: float = option(1.0, "Privacy budget of each client", metavar="E", unit="nats")
    accuracy: float | None = option(
        None,
        "Largest error to allow",
        help="Default, without --clients: the protocol's tolerance",
        metavar="A",
    )
    clients: int | None = option(None, "Number of clients, to compute their accuracy", metavar="N")
    population: Literal["any", "made-up"] = option(
        ANY,
        "The worst case, or the population without a table",
        help="any: the worst case over all populations",
    )
    shuffle: bool = option(
        False,
        "Plan a run behind a shuffler too",
        help="Epsilon is then that of all reports together",
    )
    delta: float = option(
        Behind.delta, "With a shuffler: the delta of all reports together", metavar="D"
    )
    as_json: bool = json_option("the plan")

    def __call__(self, kind: Kind, parameters: Texts) -> None:
        protocol, records = self.prepared(kind, parameters)
        SCREEN.working("computing the errors of every randomizer")
        of = self.population if records is None else records
        show(
            plan(
                protocol,
                epsilon=self.epsilon,
                accuracy=self.accuracy,
                clients=self.clients,
                of=of,
                shuffle=self.shuffle,
                delta=self.delta,
            ),
            self.as_json,
        )


@dataclass(frozen=True, kw_only=True)
class Measuring(Drawn):
    """The options of a command that measures errors into a table and a figure."""

    out: Path
    cluster: str = option("", CLUSTER, metavar="URL")
    workers: int | None = option(
        None, "Processes that measure; default: one for each core", metavar="N"
    )
    as_json: bool = json_option("the table")

    def measure(self, sweep: "Sweep") -> None:
        from local_dp.api.sweep import swept

        formats = ("png", "svg") if self.figure_format is None else (self.figure_format,)

        def progress(point: str, done: int, total: int) -> None:
            SCREEN.working(f"{done} of {total} points measured, at last {point}", done / total)

        SCREEN.working("measuring")
        with SCREEN.resumable():
            result = swept(
                sweep,
                self.out,
                progress,
                cluster=self.cluster,
                workers=self.workers,
                drawing=self.drawing,
                formats=formats,
            )
        show(result, self.as_json)
        if not self.as_json:
            SCREEN.tell(f"\ntable: {self.out}\nfigure: {self.out.with_suffix(f'.{formats[0]}')}")


@dataclass(frozen=True, kw_only=True)
class Compare(ProtocolCommand, Measuring):
    """Measures randomizers side by side, over epsilons and numbers of clients: a table and a
    figure.

    The measurement is a bound on the largest error in 95 % of the runs. Runs are drawn in the
    aggregate tier, or every client is simulated in the population tier. Ctrl-C stops; the same
    command continues.
    """

    example = "frequency --epsilon 1 --clients 1000 --clients 10000"
    epsilon: tuple[float, ...] = option(
        (0.5, 1.0, 2.0), "An epsilon; may be repeated", metavar="E", unit="nats"
    )
    clients: tuple[int, ...] = option(
        (1000, 10_000, 100_000), "A number of clients; may be repeated", metavar="N"
    )
    only: tuple[str, ...] = option(
        (), "A randomizer; may be repeated; default: all that apply", metavar="NAME"
    )
    runs: int = option(1000, "Number of runs of each", metavar="R")
    tier: Literal["aggregate", "population"] = option(
        "aggregate", "Tallies drawn from their law, or every client simulated"
    )
    seed: int = option(1, "The same seed gives the same table", metavar="S")
    out: Path = option(
        Path("comparison.csv"),
        "File of the table: .parquet, .csv or .json",
        help="The figure is beside it. A stopped run continues",
        metavar="FILE",
    )

    @classmethod
    def takes(cls, kind: Kind) -> bool:
        return kind.aim is not LocalProtocol.aim or issubclass(kind, HeavyHitters)

    def __call__(self, kind: Kind, parameters: Texts) -> None:
        from local_dp.api.sweep import Grid, comparison

        protocol, records = self.prepared(kind, parameters)
        grid = Grid(
            epsilon=self.epsilon,
            clients=self.clients,
            only=self.only,
            runs=self.runs,
            tier=self.tier,
            seed=(self.seed,),
        )
        self.measure(comparison(protocol, grid, records))


@dataclass(frozen=True, kw_only=True)
class Sweeping(Reading, Measuring):
    """Measures protocols over a grid of epsilons, numbers of clients, parameters and seeds: a table
    and a figure.

    The grid is a file of TOML. Its keys are those of `compare`: epsilon, clients, seed, only, runs
    and tier. A table for each protocol has its parameters. Each value may be a list. Ctrl-C stops;
    the same command continues.
    """

    grid: Path = argument("The grid; docs/guide.md has an example", metavar="GRID")
    records: Path | None = option(
        None,
        "CSV, TSV, Excel or Parquet file, or a folder",
        help="Clients resemble its rows",
        metavar="FILE",
    )
    out: Path = option(
        Path("sweep.parquet"),
        "File of the table: .parquet, .csv or .json",
        help="The figure is beside it. A stopped sweep continues",
        metavar="FILE",
    )

    def __call__(self) -> None:
        from local_dp.api.sweep import read_grid

        table = None if self.records is None else self.read(self.records)
        self.measure(read_grid(self.grid, table))


@dataclass(frozen=True, kw_only=True)
class Mix(ProtocolCommand, Plotted):
    """Simulates shares of symbols behind a shuffler, by several messages a client: its symbol among
    blanket messages.

    Epsilon holds for all messages together at delta, exactly, for any data; the shuffler itself
    sees all messages.
    """

    example = "frequency --k 16 --clients 10000 --epsilon 1 --seed 1"
    epsilon: float = option(1.0, "Epsilon of all messages together", metavar="E", unit="nats")
    delta: float = option(1e-6, "Probability of a larger loss", metavar="D")
    clients: int | None = option(
        None, "Number of clients; default: all rows, or 10,000", metavar="N"
    )
    seed: int | None = option(None, "Seed of the simulation; default: random, printed", metavar="S")
    as_json: bool = json_option("the result")

    @classmethod
    def takes(cls, kind: Kind) -> bool:
        return issubclass(kind, OfShares)

    def __call__(self, kind: Kind, parameters: Texts) -> None:
        protocol, records = self.prepared(kind, parameters)
        self.check_files(kind.name, kind.figureless)
        SCREEN.working("mixing messages")
        mixed = mix(
            protocol,
            records,
            epsilon=self.epsilon,
            delta=self.delta,
            clients=self.clients,
            seed=self.seed,
        )
        show(mixed, self.as_json)
        self.write_files(mixed)
