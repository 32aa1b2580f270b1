"""Single roles, for runs that span machines: `local-dp server`, `host`, `client`, `shuffler`; and
stored runs: `runs`, `show`, `resume`."""

import asyncio
import json
import math
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_type_hints

from local_dp.api.asking import play
from local_dp.api.declare import argument, option
from local_dp.api.show import summary
from local_dp.bus.address import Address, without_user
from local_dp.bus.blocking import BlockingBus, finish
from local_dp.bus.interface import SealedBus
from local_dp.checks import check_whole
from local_dp.cli.fields import json_option, show
from local_dp.cli.main import DEGRADED
from local_dp.cli.operate.keys import member_keys, server_keys
from local_dp.cli.run.run import OF_RUNS, Kind, Role, Texts, run_progress
from local_dp.cli.run.stored import ENDING, stored
from local_dp.clients.journal import MemoryStore, SqliteStore, Store
from local_dp.clients.member import HOSTS, client_group, filters, serve, will
from local_dp.clients.role import ClientRole, Policy
from local_dp.errors import InputError, QuorumError, reading
from local_dp.noise import Noise, StoreNoise
from local_dp.populations.finite import Population, Rows
from local_dp.protocols.local_protocol import PROTOCOLS, LocalProtocol, find_protocol
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.registry import absolute
from local_dp.sealing import UNSIGNED, Party
from local_dp.server.quorum import GRACE
from local_dp.server.remote import SUFFIX, Journal
from local_dp.server.shuffler import ShufflerConfig
from local_dp.shuffle.central import check_crowd
from local_dp.simulation.installation import named, runs_folder, stores_folder
from local_dp.simulation.outcome import STAMP, Outcome
from local_dp.simulation.settings import MOST_CLIENTS, OnProgress, Randomness, Settings
from local_dp.text.layout import number, screen_width
from local_dp.text.screen import SCREEN
from local_dp.text.widgets import table
from local_dp.wire import check_name

KEY_FILE = "Private key file; `local-dp keys create` makes one"
SERVER_KEY = "Public key of the server or shuffler, or its .pub file"
ROSTER = "Members' keys file; `local-dp keys enrol` writes it"
RUN = "Name of the run, the same for server, hosts and clients"
URL = "Address of the MQTT broker"
FORM = "mqtt://[user:password@]host[:port], or mqtts://...[?ca=FILE[&cert=FILE]]"
MEETING = "survey --broker mqtt://localhost --run first"


_ASKING = (
    "epsilon",
    "clients",
    "resample",
    "seed",
    "private",
    "deadline",
    "quorum",
    "watch",
    "shuffle",
    "delta",
    "worst_case",
    "broker",
    "csv",
    "dates",
)


@dataclass(frozen=True, kw_only=True)
class Server(Role):
    """Coordinates a run whose clients join from elsewhere.

    With the clients' table, it prints the true error of a simulation. The exit code is 6 if the
    result is degraded.
    """

    omissions = OF_RUNS - {*_ASKING}
    example = f"{MEETING} --clients 501"
    broker: str = option(brief=URL, help=FORM, metavar="URL")
    run: str = option(brief=RUN, metavar="NAME")
    joining: float = option(
        60.0, "Longest wait for the clients to join", metavar="T", unit="seconds"
    )
    grace: float | None = option(
        None,
        "Longest wait for a member whose connection fell",
        help="Default: to the end of the round",
        metavar="T",
        unit="seconds",
    )
    as_json: bool = json_option("the outcome (`local-dp schema`)")
    journal: Path | None = option(
        None,
        "Folder that stores the run; default: the user's own",
        help="`resume` continues from it",
        metavar="DIR",
    )
    key: Path | None = option(None, KEY_FILE, metavar="FILE")
    roster: Path | None = option(None, ROSTER, metavar="FILE")

    def __call__(
        self,
        kind: Kind,
        parameters: Texts,
        earlier: Journal | None = None,
    ) -> int:
        """Begins a run, or continues an interrupted one."""
        from local_dp.simulation.over_bus import serve_run  # a client needs no broker

        check_name(self.run)
        chance = self.randomness() if earlier is None else Randomness(**earlier.began["randomness"])
        keys = server_keys(self.key, self.roster, self.private)
        protocol, table = self.prepared(kind, parameters, self.private)
        SCREEN.check()
        SCREEN.working(f"joining the broker as the server of run {self.run}")
        with run_progress() as progress:
            options = self.with_progress(
                progress, tier="hosts", hosts=1, seed=None if chance.private else chance.seed
            )
            settings = replace(options.settings(protocol, table), randomness=chance)
            usual = GRACE if self.shuffle else math.inf  # a shuffler that died is not started again
            settings = replace(
                settings,
                terms=replace(settings.terms, grace=usual if self.grace is None else self.grace),
            )
            address = Address.parse(self.broker)
            folder = self.journal or runs_folder()
            journal = earlier or Journal.begin(
                folder, self.run, self._began(kind, parameters, chance)
            )

            def serve(settings: Settings, on_progress: OnProgress) -> Outcome:
                return asyncio.run(
                    serve_run(
                        settings,
                        self.run,
                        address,
                        self.joining,
                        on_progress,
                        journal=journal,
                        keys=keys,
                    )
                )

            try:
                # without a table, the records are known to the clients alone
                result = play(settings, options, serve, truth_known=table is not None)
                journal.end(result.to_dict())
            except QuorumError:
                if journal.standing()[1] and not self.shuffle:
                    SCREEN.note(
                        f"the members wait: `local-dp resume {named(self.run, folder)}` asks "
                        "those once more who have not answered"
                    )
                raise
            finally:
                journal.leave()
        return show(result, self.as_json, f"`local-dp show {named(self.run, folder)}` prints it")

    def _began(self, kind: Kind, parameters: Texts, chance: Randomness) -> dict[str, Any]:
        """The data for `resume`. The broker's address is stored without user and password."""
        values = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if each.name not in self.omissions and each.metadata.get("shell", True)
        }
        values["broker"] = without_user(self.broker)
        options = {
            name: str(value.absolute()) if isinstance(value, Path) else value
            for name, value in values.items()
        }
        at = datetime.now(UTC).isoformat(timespec="seconds")
        return {
            "at": at,
            "protocol": PROTOCOLS.place(kind),
            "given": {
                name: absolute(value) if isinstance(value, str) else value
                for name, value in parameters.items()
            },
            "options": options,
            "randomness": vars(chance),
        }


@dataclass(frozen=True)
class Shuffler:
    """Stands between the clients and the server of a run, and removes the senders.

    It asks the clients in place of the server. The server is started with --shuffle, and receives
    reports in random order, once they are a crowd. The order is drawn from the operating system,
    unless a seed is given.
    """

    broker: str = option(brief="Address of the clients' MQTT broker", help=FORM, metavar="URL")
    run: str = option(brief=RUN, metavar="NAME")
    clients: int = option(brief="Number of clients", metavar="N")
    crowd: int = option(100, "The fewest clients whose reports are passed on", metavar="C")
    server_broker: str = option(
        "",
        "Address of the server's broker, if it is another one",
        help="The clients' names never reach it",
        metavar="URL",
    )
    joining: float = option(
        48.0,
        "Longest wait for the clients to join",
        help="Less than the server's",
        metavar="T",
        unit="seconds",
    )
    deadline: float = option(
        24.0, "Longest duration of a round; less than the server's", metavar="T", unit="seconds"
    )
    seed: int | None = option(None, "Seed of the order, in a simulation", metavar="S")
    key: Path | None = option(None, KEY_FILE, metavar="FILE")
    server_key: str = option("", SERVER_KEY, metavar="HEX|FILE")
    roster: Path | None = option(None, ROSTER, metavar="FILE")
    journal: Path | None = option(
        None, "Folder that notes runs passed on; default: the user's", metavar="DIR"
    )

    def __call__(self) -> None:
        check_name(self.run)
        keys = server_keys(self.key, self.roster, private=False)
        server = member_keys(self.key, self.server_key, private=False)
        check_whole("clients", self.clients, 2, MOST_CLIENTS["hosts"])
        check_crowd(self.crowd)
        own = {
            name: getattr(self, name)
            for name in ("run", "broker", "clients", "crowd", "seed", "deadline", "joining")
        }
        own["grace"] = self.deadline  # as long as the round goes on
        SCREEN.working(f"mixing the reports of run {self.run}")
        signed: dict[str, Any] = (
            {}
            if keys is None or server is None
            else {"key": keys.own.hex(), "server_key": server[1].hex(), "roster": str(keys.roster)}
        )
        folder = str(self.journal or runs_folder())
        asyncio.run(
            ShufflerConfig(
                **own, **signed, server_broker=self.server_broker or self.broker, folder=folder
            ).serve()
        )
        SCREEN.note(f"shuffler: run {self.run} is over")


@dataclass(frozen=True, kw_only=True)
class Answering(Role):
    """A role that answers: a host, or a client."""

    omissions = OF_RUNS - {
        "epsilon",
        "seed",
        "private",
        "allow",
        "broker",
        "csv",
        "person",
        "dates",
    }
    broker: str = option(brief=URL, help=FORM, metavar="URL")
    run: str = option(brief=RUN, metavar="NAME")
    store: Path | None = option(
        None,
        "File of answers and spent budget; default: memory",
        help="In a private run the default is a file of the user's",
        metavar="FILE",
    )
    lifetime: float | None = option(
        None, "Lifetime budget of a new store; default: --epsilon", metavar="E", unit="nats"
    )
    key: Path | None = option(None, KEY_FILE, metavar="FILE")
    server_key: str = option("", SERVER_KEY, metavar="HEX|FILE")
    idle: float = option(
        86_400.0, "End after so long without a message of the server", metavar="T", unit="seconds"
    )

    @property
    def copied(self) -> bool:
        """The records of a member's clients stay where they are."""
        return False

    def population(
        self,
        kind: Kind,
        parameters: Texts,
        start: int,
        clients: int | None,
    ) -> Population:
        """The records of the clients from `start` on: a table's rows, or synthetic ones."""
        check_whole("the first client", start, 0, MOST_CLIENTS["hosts"])
        if clients is not None:
            check_whole("clients", clients, 1, MOST_CLIENTS["hosts"])
        if self.private and self.schema is None and self.records is not None:
            raise InputError(
                "column types are read from the values, so a refusal would reveal some: declare "
                "the types with --schema FILE"
            )
        protocol, table = self.prepared(kind, parameters, self.private)
        if table is not None:
            if clients not in (None, len(table)):
                raise InputError(
                    f"the table has {len(table)} rows for {clients} clients; a member's table has "
                    "one row for each of its own clients"
                )
            return Rows(table)
        if clients is None:
            raise InputError("a host without --records needs --clients N")
        return Rows(
            protocol.synthetic(start + clients, self.randomness().seed).batch(
                start, start + clients
            )
        )

    def reads(self, protocol: LocalProtocol[Any]) -> None:
        """All columns: a member's store belongs to whole rows."""

    def serve(self, member: str, group: str, start: int, population: Population) -> None:
        """Answers until the run is over. Raises QuorumError if it hears nothing for too long."""
        check_name(self.run)
        if not self.idle > 0:
            raise InputError(f"--idle is {self.idle} seconds; give a number above 0")
        keys = member_keys(self.key, self.server_key, self.private)
        envelopes = (
            UNSIGNED if keys is None else Party.member(self.run, server=keys[1], own=keys[0])
        )
        allowed = None if self.allow is None else frozenset(map(RANDOMIZERS.name_of, self.allow))
        policy = Policy(allowed)
        store, noise = self._store(member)
        role = ClientRole(
            member,
            start,
            population.batch(0, population.size),
            noise,
            store,
            policy,
            self.person or "",
        )
        bus = BlockingBus(
            Address.parse(self.broker),
            f"{self.run}-{member}",
            filters(self.run, group),
            will(self.run, group, member, envelopes),
            idle=self.idle,
        )

        async def on_connect() -> None:
            mode = "answering in private" if role.private else STAMP
            SCREEN.note(
                f"{member}: ready for run {self.run} with the clients "
                f"{role.start}..{role.stop - 1}, {mode}{'' if envelopes.signed else ', unsigned'}"
            )
            SCREEN.working("answering until the run is over")

        SCREEN.working(f"joining the broker as {member} of run {self.run}")
        if not finish(serve(role, SealedBus(bus, envelopes), self.run, group, on_connect)):
            why = bus.lost or "start it again, with a longer --idle if the run goes on"
            raise QuorumError(
                f"{member}: nothing came of run {self.run} for {self.idle:g} seconds; {why}"
            )
        rounds, loss = len(store.lines(self.run)), store.ledger.runs.get(self.run, 0.0)
        SCREEN.note(
            f"{member}: the run is over; epsilon spent {number(loss)}, {len(role.confirmations)} "
            f"of {rounds} rounds confirmed"
        )

    def _store(self, member: str) -> tuple[Store, Noise | StoreNoise]:
        """The store, and the noise. A restarted process repeats its private answers exactly."""
        if self.store is None and not self.private:
            return MemoryStore(self.epsilon, lifetime=self.lifetime), self.randomness().noise()
        store = SqliteStore(
            self.store or stores_folder() / f"{member}.store", self.epsilon, self.lifetime
        )
        return store, StoreNoise(store.secret) if self.private else self.randomness().noise()


@dataclass(frozen=True, kw_only=True)
class Host(Answering):
    """Holds many clients of a run, from index --start on: the rows of their table, or synthetic
    records."""

    example = f"{MEETING} --clients 500"
    omissions = Answering.omissions - {"clients"}
    start: int = option(0, "Index of the first client", metavar="I")
    clients: int | None = option(
        None, "Number of clients of this host; default: all rows", metavar="N"
    )

    def __call__(self, kind: Kind, parameters: Texts) -> None:
        self.serve(
            f"host-{self.start}",
            HOSTS,
            self.start,
            self.population(kind, parameters, self.start, self.clients),
        )


@dataclass(frozen=True, kw_only=True)
class Client(Answering):
    """Is one client of a run: with the only row of its own table, or a synthetic record."""

    example = f"{MEETING} --index 500"
    index: int = option(brief="Index of this client, from 0", metavar="I")

    def __call__(self, kind: Kind, parameters: Texts) -> None:
        self.serve(
            f"client-{self.index}",
            client_group(self.index),
            self.index,
            self.population(kind, parameters, self.index, 1),
        )


POLL = "poll"  # as the journal of a poll is named
FOLDER = "Folder of stored runs; default: the user's own"


@dataclass(frozen=True)
class Runs:
    """Lists the runs that are stored on this machine: those of servers with their progress, then
    the last ones of `run`.

    LOCAL_DP_LOG=off in the environment stores none of `run`.
    """

    journal: Path | None = option(None, FOLDER, metavar="DIR")

    def __call__(self) -> None:
        folder = self.journal or runs_folder()
        rows = [
            _row(folder, path.name.removesuffix(SUFFIX))
            for path in sorted(folder.glob(f"*{SUFFIX}"))
        ]
        rows += [
            _stored_row(folder, path.name.removesuffix(ENDING))
            for path in sorted(folder.glob(f"*{ENDING}"))
        ]
        if rows:
            SCREEN.tell(table(("run", "protocol", "begun (UTC)", "progress"), rows, screen_width()))
        else:
            SCREEN.note(f"no run is stored in {str(folder)!r}")


@dataclass(frozen=True)
class Show:
    """Prints the result of a run, or its progress. The exit code is 6 if the result is degraded."""

    run: str = argument("The run", metavar="RUN")
    journal: Path | None = option(None, FOLDER, metavar="DIR")
    as_json: bool = json_option("the outcome")

    def __call__(self) -> int:
        folder = self.journal or runs_folder()
        check_name(self.run)
        if (record := stored(folder, self.run)) is not None:
            result, began, progress = record["result"], record, ""
        else:
            with closing(Journal.open(folder, self.run)) as journal:
                result, began, progress = journal.result, journal.began, _progress(journal)
        if result is not None:
            with reading(f"{self.run}{SUFFIX}", "run it again under a new name"):
                text = json.dumps(result) if self.as_json else _text_of(began, result)
            SCREEN.tell(text)
        elif self.as_json:
            raise InputError(f"run {self.run!r} has no outcome yet: {progress}")
        else:
            SCREEN.tell(
                f"run {self.run}, {began.get('protocol')}, begun {began.get('at')}: {progress}"
            )
        return DEGRADED if result is not None and "degraded" in result else 0


def _text_of(began: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """A result for a terminal."""
    if began.get("protocol") == POLL:
        from local_dp.server.poll.results import text_of

        return text_of(result)
    return summary(dict(result), screen_width())


@dataclass(frozen=True)
class Resume:
    """Continues a run whose server was killed, from its journal.

    Closed rounds are computed again without asking any client. The open round keeps its accepted
    reports; waiting members answer the rest. The result is that of an uninterrupted run.
    """

    run: str = argument("The run", metavar="RUN")
    journal: Path | None = option(None, FOLDER, metavar="DIR")
    broker: str | None = option(
        None,
        "Address of the broker, if it has changed",
        help="Also if it has a user and a password, which are not stored",
        metavar="URL",
    )
    as_json: bool = json_option("the outcome")

    def __call__(self) -> int:
        with closing(Journal.open(self.journal or runs_folder(), self.run)) as journal:
            if journal.began.get("protocol") == POLL:
                from local_dp.cli.run.poll import continued

                return continued(journal, self.broker, None, self.as_json)
            if journal.result is not None:
                raise InputError(
                    f"run {self.run!r} is over; `local-dp show {named(self.run, journal.folder)}` "
                    "prints its outcome"
                )
            with reading(f"{self.run}{SUFFIX}", "run it again under a new name"):
                options = {
                    **journal.began["options"],
                    "as_json": self.as_json,
                    "journal": self.journal,
                }
                if self.broker is not None:
                    options["broker"] = self.broker
                server = Server(**_options(options))
                protocol = journal.began["protocol"]
                parameters = journal.began["given"]
            return server(find_protocol(protocol), parameters, journal)


def _options(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a server from their JSON; unknown ones are left out, missing ones have their
    defaults."""
    hints, names = get_type_hints(Server), {each.name for each in fields(Server)}
    values = dict[str, Any]()
    for name, value in options.items():
        if name in names:
            is_path = isinstance(value, str) and hints[name] in (Path, Path | None)
            values[name] = (
                Path(value) if is_path else tuple(value) if isinstance(value, list) else value
            )
    return values


def _row(folder: Path, run: str) -> tuple[str, str, str, str]:
    try:
        with closing(Journal.open(folder, run)) as journal:
            return (
                run,
                str(journal.began.get("protocol")),
                _minute(str(journal.began.get("at"))),
                "done" if journal.result is not None else _progress(journal),
            )
    except InputError as error:
        return run, "", "", "running" if "open" in str(error) else "unreadable"


def _stored_row(folder: Path, run: str) -> tuple[str, str, str, str]:
    try:
        record = stored(folder, run) or {"at": "", "result": {}}  # deleted since it was listed
    except InputError:
        return run, "", "", "unreadable"
    return run, str(record["result"].get("protocol", "")), _minute(record["at"]), "done"


def _minute(at: str) -> str:
    """A time of ISO 8601 to the minute."""
    return at[:16].replace("T", " ")


def _progress(journal: Journal) -> str:
    closed, requests, messages = journal.standing()
    return (
        f"{closed} of {requests} rounds closed, {messages} messages stored"
        if requests
        else "no client was asked"
    )
