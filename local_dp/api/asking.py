"""A run: a protocol, a table or synthetic clients, and the options of the run."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from numbers import Number
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, get_origin, get_type_hints
from unicodedata import normalize

import numpy as np

from local_dp.api.declare import CSV, DATES, option
from local_dp.api.files import labels_file
from local_dp.api.result import Result
from local_dp.api.tables import (
    Dates,
    Table,
    bounds_text,
    ends_of,
    records_of,
    sample_rows,
    settings_text,
    unsaid,
    warn,
)
from local_dp.bounds.means import TARGETS
from local_dp.checks import check_built, convert_fields
from local_dp.errors import InputError, unknown
from local_dp.loss import nano_epsilon
from local_dp.populations.finite import Resampled
from local_dp.protocols.local_protocol import LocalProtocol, find_protocol
from local_dp.protocols.surveys.policies import Launch, is_question
from local_dp.queries.cells import SEPARATOR
from local_dp.queries.grammar import columns_of, parse
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.records import Records
from local_dp.server.progress import Progress
from local_dp.server.quorum import Terms
from local_dp.shuffle.central import Behind
from local_dp.simulation.execute import execute
from local_dp.simulation.faults import EXAMPLE, Faults
from local_dp.simulation.outcome import Outcome, as_data, judged
from local_dp.simulation.settings import EMBEDDED, OnProgress, Randomness, Settings, Tier
from local_dp.text.layout import python_errors

if TYPE_CHECKING:  # a page takes a while to import
    from local_dp.server.watch.events import Scene

Announce: TypeAlias = Callable[[str], object]
Store: TypeAlias = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run: keywords of the functions of `local_dp`, and options of `local-dp run`,
    `server`, `host` and `client`."""

    epsilon: float = option(1.0, "Privacy budget of each client", metavar="E", unit="nats")
    clients: int | None = option(
        None,
        "Number of clients; default: all rows",
        help="Without a table: as many as 95 % success needs",
        metavar="N",
    )
    resample: bool = option(
        False,
        "Draw the clients' rows with replacement",
        help="Any number of clients is then possible",
    )
    tier: Tier | None = option(
        None,
        "How the clients run; default: population",
        help=(
            "processes: one each; hosts: packed in a few; population: simulated; aggregate: only "
            "their sum is drawn. With a broker the default is hosts"
        ),
    )
    hosts: int | None = option(
        None, "Number of host processes; selects tier hosts", usual=Settings.hosts, metavar="H"
    )
    broker: str | None = option(
        None,
        "Address of the MQTT broker; selects tier hosts",
        help=(
            "embedded, or mqtt://[user:password@]host[:port], or mqtts://...[?ca=FILE[&cert=FILE]]"
        ),
        usual=EMBEDDED,
        metavar="URL",
    )
    seed: int | None = option(None, "Seed of the simulation; default: random, printed", metavar="S")
    private: bool = option(False, "Draw noise from the operating system; takes no seed")
    deadline: float | None = option(
        None,
        "Longest duration of a round; default: 30 or more",
        help="More for many members and long round trips",
        metavar="T",
        unit="seconds",
    )
    quorum: float = option(
        0.9, "Share of the clients that must reply before the deadline", metavar="SHARE"
    )
    allow: tuple[str, ...] | None = option(
        None,
        "Randomizer that the clients accept; default: all",
        help="May be repeated",
        metavar="NAME",
    )
    unverified: bool = option(
        False,
        "Use a randomizer that fails its verification",
        help="In memory only; the result says so",
    )
    cluster: str = option(
        "",
        "Dask scheduler that simulates the population tier",
        help="Such as tcp://host:8786",
        metavar="URL",
    )
    shuffle: bool = option(
        False,
        "Put a shuffler between clients and server",
        help="The result shows the epsilon of all reports together",
    )
    crowd: int = option(
        Behind.crowd, "With a shuffler: the fewest clients that it passes on", metavar="C"
    )
    delta: float = option(
        Behind.delta, "With a shuffler: the delta of all reports together", metavar="D"
    )
    fault: str | None = option(
        None, "Faults on purpose; selects tier hosts", help=f"Such as {EXAMPLE}", metavar="FAULTS"
    )
    worst_case: float | None = option(
        None,
        "Show intervals that hold if this share of clients lies",
        help="They also hold for any answers of missing clients",
        metavar="SHARE",
    )
    stores: Path | str | None = option(
        None,
        "Folder of the clients' stores; selects tier hosts",
        help="Stores have answers and spent budget, over several runs",
        metavar="DIR",
    )
    csv: str = option("", **CSV)
    person: str | None = option(
        None,
        "Column that names the person of each row",
        help="Stores keep budgets and answers by person: rows may move and change",
        metavar="COLUMN",
    )
    dates: Dates = option(None, **DATES)
    raw: bool = option(False, "Show the unbiased numbers, also impossible ones")
    progress: OnProgress | None = option(
        None, "Function that is called with the progress of the run", shell=False
    )
    watch: Announce | bool | None = option(
        None, "Show the run on a local page; needs local-dp[watch]"
    )
    notice: Callable[[str], None] | None = option(
        None, "Function that gets a notice of too few clients", shell=False
    )

    def __post_init__(self) -> None:
        convert_fields(self)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "RunOptions":
        """Raises InputError for an unknown option."""
        names = [each.name for each in fields(cls)]
        for name in options:
            if name not in names:
                raise InputError(unknown("no option", name, names))
        return cls(**options)

    def askable(self, table: Records) -> Records:
        """The columns that a protocol may ask about: all but the person's. Raises InputError where
        there is no such column."""
        return table.without(self.person) if self.person else table

    def reads(self, protocol: LocalProtocol[Any]) -> Collection[str] | None:
        """The columns of a table that are read; None: all, as stores belong to whole rows, or to
        people."""
        return None if self.stores or self.person else protocol.reads

    @property
    def copied(self) -> bool:
        """True if a large CSV table may be copied to a temporary folder: no private table, and none
        whose rows the workers of a cluster are sent."""
        return not (self.private or self.cluster)

    @property
    def chosen_tier(self) -> Tier:
        """The tier that is asked for; by default population, or hosts where an option needs real
        clients."""
        over_a_bus = any(
            each is not None for each in (self.broker, self.hosts, self.fault, self.stores)
        )
        return self.tier or ("hosts" if over_a_bus else "population")

    def _check(self) -> None:
        """Raises InputError for an empty option, or one that the tier does not have."""
        for name in ("broker", "fault", "person", "stores"):
            if getattr(self, name) == "":
                raise InputError(f"--{name} is empty; give it a value, or leave it out")
        for name, tiers in (("broker", ("hosts", "processes")), ("hosts", ("hosts",))):
            if getattr(self, name) is not None and self.chosen_tier not in tiers:
                raise InputError(
                    f"tier {self.chosen_tier} has no --{name}; leave it out, or give --tier hosts"
                )

    def settings(self, protocol: LocalProtocol[Any], records: Records | None) -> Settings:
        """The settings of the run. Gives a notice if the clients are too few for the protocol's
        tolerance. Raises InputError."""
        nano_epsilon(self.epsilon)
        self._check()
        faults = Faults.parse(self.fault) if self.fault else None
        randomness = Randomness.choose(self.seed, self.private)
        clients, seed = self.clients, randomness.seed
        # stores belong to their rows in their order
        deal = 0 if self.stores and self.seed is None else seed
        if records is None:
            population = protocol.synthetic(
                protocol.clients(self.epsilon) if clients is None else clients, deal
            )
        else:
            clients = len(records) if clients is None else clients
            population = (
                Resampled(records, clients, deal)
                if self.resample
                else sample_rows(records, clients, deal)
            )
        few = protocol.notice(self.epsilon, population.size)
        if few is not None:
            check_built(protocol.algorithm(self.epsilon, population.size))  # or it is refused
            (self.notice or warn)(few)
        return Settings(
            protocol=protocol,
            population=population,
            epsilon=self.epsilon,
            randomness=randomness,
            tier=self.chosen_tier,
            hosts=(1 if self.person else Settings.hosts) if self.hosts is None else self.hosts,
            broker=EMBEDDED if self.broker is None else self.broker,
            terms=Terms(self.deadline, self.quorum),
            allowed=None if self.allow is None else tuple(map(RANDOMIZERS.name_of, self.allow)),
            unverified=self.unverified,
            cluster=self.cluster,
            behind=Behind(self.crowd, self.delta) if self.shuffle else None,
            faults=faults,
            worst_case=self.worst_case,
            stores=str(Path(self.stores).absolute()) if self.stores else "",
            person=self.person or "",
            raw=self.raw,
        )


def protocol_of(
    name: str | type[LocalProtocol[Any]] | LocalProtocol[Any],
    settings: Mapping[str, Any],
    options: Iterable[str] = (),
) -> LocalProtocol[Any]:
    """The protocol of this name or class, with its parameters as Python writes them; or the object,
    which takes none.

    Raises InputError; for an unknown parameter it names the nearest one, also of the `options`
    beside them.
    """
    if isinstance(name, LocalProtocol):
        if settings:
            raise InputError(
                f"{', '.join(settings)}: parameters for a protocol that is an object already; "
                "give them to it"
            )
        return name
    if not isinstance(name, str | type):
        raise InputError(
            f"a protocol is a name, such as 'survey', and not {type(name).__name__}; give the "
            "table after it"
        )
    kind = find_protocol(name)
    parameters = [each.name for each in fields(kind)]
    with python_errors():
        if "bounds" in settings and "bounds" not in parameters and "low" in parameters:
            low, high = ends_of(settings["bounds"])
            settings = {**settings, "low": low, "high": high}
            del settings["bounds"]
        for each in settings:
            if each not in parameters:
                raise InputError(
                    f"{unknown(f'{kind.name} has no parameter', each, [*parameters, *options])}; "
                    f"`local-dp describe {kind.name}` describes them"
                )
        settings = {each: _as_text(value) for each, value in settings.items()}
        hints = get_type_hints(kind)
        lists = {
            each: _list_of(each, value, settings)
            for each, value in settings.items()
            if get_origin(hints[each]) is tuple
        }
        return kind(**{**settings, **lists})


def _as_text(value: Any) -> Any:
    """A randomizer's class or object as its name with parameters; any other value as it is."""
    is_class = isinstance(value, type) and issubclass(value, Randomizer)
    return RANDOMIZERS.text(value) if is_class or isinstance(value, Randomizer) else value


def _list_of(name: str, value: Any, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """A parameter that is a list, in the form of its protocol. Python gives a list, one value, or a
    mapping. Raises InputError."""
    weights = settings.get("weights")
    if isinstance(weights, Mapping) and name in ("labels", "weights"):
        labels = list(settings.get("labels") or weights)
        if set(labels) != set(weights):
            raise InputError(
                f"there are weights of {', '.join(map(str, weights))}, and the groups are "
                f"{', '.join(map(str, labels))}; give the weight of each"
            )
        value = labels if name == "labels" else [weights[label] for label in labels]
    if value is None:
        return ()
    if isinstance(value, Number):
        value = [value]
    if name == "labels" and isinstance(value, PathLike):
        value = labels_file(value)
    if not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0:
        raise InputError(f"{name} is a {type(value).__name__}; give a list")
    if name == "labels" and "columns" in settings:
        return _labels(value, _list_of("columns", settings["columns"], {}))
    if isinstance(value, Mapping):
        return bounds_text(value) if name == "bounds" else settings_text(value)
    if name == "bounds" and not all(isinstance(each, str) for each in value):
        raise InputError(
            f"bounds is {value!r:.80}; give a mapping of each column to its own, such as {{'age': "
            "(15, 45)}"
        )
    if name == "labels" and isinstance(value, str):
        raise InputError(
            f"labels is {value!r}; give a list of labels, or the Path of a file of them"
        )
    return tuple(map(_text, [value] if isinstance(value, str) else value))


def _labels(labels: Any, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The labels of each column that is no question: from a mapping, a list of lists, or a list for
    the only one. Raises InputError."""
    plain = [column for column in columns if not is_question(column)]
    if isinstance(labels, Mapping):
        if set(labels) != set(plain):
            raise InputError(
                f"there are labels of {', '.join(map(str, labels))}, and the columns are "
                f"{', '.join(plain)}; give the labels of each"
            )
        labels = [labels[column] for column in plain]
    elif len(plain) == 1 and not any(map(_is_several, labels)):
        labels = [labels]
    return tuple(
        each if isinstance(each, str) else SEPARATOR.join(_list_of("labels", each, {}))
        for each in labels
    )


def _is_several(label: Any) -> bool:
    """True if it is the labels of a column."""
    if isinstance(label, str):
        return "|" in label or SEPARATOR in label
    return isinstance(label, Sequence)


def _text(value: Any) -> str:
    """A value as the library writes it: whole numbers without a decimal point, and a row of numbers
    with spaces."""
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        return " ".join(map(_text, value))
    is_whole = isinstance(value, float | np.floating) and value.is_integer()
    return str(int(value) if is_whole else value)


def with_target(of: Any, settings: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A table and the settings, where `of` may name the target of an average in its place."""
    is_target = isinstance(of, str) and of in TARGETS
    return (None, {**settings, "of": of}) if is_target else (of, settings)


def with_table(
    protocol: LocalProtocol[Any], table: Table | None, csv: str, dates: Dates
) -> tuple[LocalProtocol[Any], Records | None]:
    """A protocol that knows the columns of its table, and the records; without a table, itself."""
    if table is None:
        return protocol, None
    records = records_of(table, csv=csv, dates=dates, only=protocol.reads)
    return protocol.for_table(Launch(records, private=False)), records


def look_alikes(labels: Iterable[str]) -> int:
    """How many labels differ from others in spaces or the composition of letters alone."""
    distinct = set(SEPARATOR.join(labels).split(SEPARATOR))  # those of several columns are joined
    return len(distinct) - len({" ".join(normalize("NFC", each).split()) for each in distinct})


@python_errors()
def ask(
    protocol: LocalProtocol[Any],
    table: Table | None,
    options: RunOptions,
    store: Store | None = None,
) -> Result:
    """Runs a protocol on a table, or without one on a synthetic population; `store` gets the
    result without its truth. Raises the errors of a run.

    Works where an event loop is running too, as in a notebook.
    """
    if table is None:
        question, made_up = (getattr(each, "question", "") for each in (protocol, type(protocol)))
        is_own = isinstance(made_up, str) and question != made_up
        if is_own and not columns_of(parse(str(question))) <= columns_of(parse(made_up)):
            raise InputError("the question is about the columns of a table: add --records")
        return play(options.settings(protocol, None), options, store=store)
    records = records_of(
        table,
        notice=unsaid if options.private else options.notice,
        csv=options.csv,
        dates=options.dates,
        only=options.reads(protocol),
        copy=options.copied,
    )
    of_table = protocol.for_table(Launch(options.askable(records), options.private))
    if twins := look_alikes(getattr(of_table, "labels", ())):
        (options.notice or warn)(f"labels that look like others: {twins}; join them in the table")
    return play(options.settings(of_table, records), options, store=store)


def play(
    settings: Settings,
    options: RunOptions,
    run: Callable[[Settings, OnProgress], Outcome] = execute,
    truth_known: bool = True,
    store: Store | None = None,
) -> Result:
    """The result of a run, shown on a page while it goes on if `options.watch` is given.

    `truth_known`: whether the clients' records are those of the settings.
    """
    page: AbstractContextManager[Scene | None] = nullcontext()
    if options.watch:
        from local_dp.server.watch.server import watched

        page = watched(settings, print if options.watch is True else options.watch)
    with page as scene:
        listeners = [each for each in (scene and scene.show, options.progress) if each]

        def progress(now: Progress) -> None:
            for listener in listeners:
                listener(now)

        start = time.perf_counter()
        outcome = run(settings, progress)
        data = as_data(settings, replace(outcome, wall=time.perf_counter() - start), truth_known)
        if scene is not None:
            scene.finish(data)
        if store is not None:
            store(as_data(settings, replace(outcome, wall=data["wall_s"]), truth_known=False))
    return Result(data, settings.protocol, judged(settings, outcome).result)
