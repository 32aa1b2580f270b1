"""`local-dp server`, `host` and `client`: the roles one at a time, for runs that span machines. They meet at a broker, under a run's name."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from local_dp.bus.address import Address
from local_dp.bus.blocking import BlockingBus, finish
from local_dp.bus.sealed import SealedBus
from local_dp.checks import check_whole
from local_dp.clients.journal import MemoryStore, SqliteStore, Store
from local_dp.clients.member import HOSTS, client_group, filters, serve, will
from local_dp.clients.role import ClientRole, Policy
from local_dp.errors import InputError
from local_dp.experiments.api.asking import play
from local_dp.experiments.cli.fields import option
from local_dp.experiments.cli.operate.keys import known, served
from local_dp.experiments.cli.run.options import Asking, Role, allowed_names
from local_dp.experiments.cli.run.output import RunProgress, show
from local_dp.experiments.cli.run.protocols import RoleOfProtocols
from local_dp.experiments.text.notation import number
from local_dp.experiments.text.screen import SCREEN
from local_dp.experiments.tiers.outcome import STAMP, Outcome
from local_dp.experiments.tiers.over_bus import serve_run
from local_dp.experiments.tiers.places import runs_folder, stores_folder
from local_dp.experiments.tiers.settings import MOST_CLIENTS, OnProgress, Randomness
from local_dp.noise import Noise, SystemNoise
from local_dp.populations.population import Population
from local_dp.populations.table import Rows
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.sealing import UNSIGNED, Party
from local_dp.server.journal import Journal
from local_dp.server.shuffler import ShufflerConfig
from local_dp.shuffle.central import check_crowd
from local_dp.wire import check_name

KEY_FILE = "Its private key, which local-dp keys creates; signs what it says"
SERVER_KEY = "The public key of whoever asks, as it stands in its .pub file; others are not heard"
URL = "mqtt://[user:password@]host[:port], or mqtts://...[?ca=FILE[&cert=FILE]]"
MEETING = "survey --broker mqtt://localhost --run first"


@dataclass(frozen=True, kw_only=True)
class Server(Asking):
    """Coordinates a run whose clients join from elsewhere.

    A table, if given, tells the true error of a simulation.
    """

    example: ClassVar[str] = f"{MEETING} --clients 501"
    broker: str = option(help=URL, metavar="URL")
    run: str = option(help="The run that server, hosts and clients join", metavar="NAME")
    joining: float = option(60.0, "How long to wait for the clients to join", metavar="T", unit="seconds")
    journal: Path | None = option(None, "Where the run is kept, for `resume` to go on with; without it, a folder of the user's", metavar="DIR")
    key: Path | None = option(None, KEY_FILE, metavar="FILE")
    roster: Path | None = option(None, "Who may join, with which keys and for which clients; local-dp keys writes it", metavar="FILE")

    def __call__(self, kind: type[LocalProtocol[Any]], given: Mapping[str, str]) -> None:
        self.serve(kind, given, None)

    def serve(self, kind: type[LocalProtocol[Any]], given: Mapping[str, str], kept: Journal | None) -> None:
        """Begins a run, or goes on with one that is kept."""
        check_name(self.run)
        chance = self.randomness() if kept is None else Randomness(**kept.began["randomness"])
        keys = served(self.key, self.roster, self.private)
        protocol, table = self.configured(kind, given)
        with RunProgress(f"joining the broker as the server of run {self.run}") as progress:
            how = replace(self, seed=None if chance.private else chance.seed).how(progress.show, tier="hosts", hosts=1, broker=self.broker)
            settings = replace(how.settings(protocol, table), randomness=chance)
            address = Address.parse(self.broker)
            journal = kept or Journal.begin(self.journal or runs_folder(), self.run, self._began(kind, given, chance))

            def serve(shown: OnProgress) -> Outcome:
                return asyncio.run(serve_run(settings, self.run, address, self.joining, shown, journal=journal, keys=keys))

            try:
                result = play(settings, how, serve, truth_known=table is not None)  # otherwise the clients' records are their own
                journal.end(result.to_dict())
            finally:
                journal.leave()
        show(result.to_dict(), self.as_json)

    def _began(self, kind: type[LocalProtocol[Any]], given: Mapping[str, str], chance: Randomness) -> dict[str, Any]:
        """What `resume` needs to know; of the broker's address, no user and no password."""
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        told["broker"] = re.sub("//[^@/]*@", "//", self.broker)
        options = {name: str(value.absolute()) if isinstance(value, Path) else value for name, value in told.items()}
        at = datetime.now(UTC).isoformat(timespec="seconds")
        return {"at": at, "protocol": kind.name, "given": dict(given), "options": options, "randomness": vars(chance)}


@dataclass(frozen=True)
class Shuffler:
    """Stands between the clients and the server of a run, and takes the senders away.

    To the clients it is who asks them; the server is started with --shuffle, and hears of reports in random order, once they are a crowd. The order is the
    operating system's entropy, unless a seed is given.
    """

    broker: str = option(help=f"The clients' broker: {URL}", metavar="URL")
    run: str = option(help="The run that server, hosts and clients join", metavar="NAME")
    clients: int = option(help="How many clients there are", metavar="N")
    crowd: int = option(100, "The fewest clients whose reports are passed on", metavar="C")
    server_broker: str = option("", "The server's broker, if it is another one, which the clients' names then never reach", metavar="URL")
    joining: float = option(48.0, "How long to wait for the clients to join; less than the server waits", metavar="T", unit="seconds")
    deadline: float = option(24.0, "The longest that a round may take; less than the server's", metavar="T", unit="seconds")
    seed: int | None = option(None, "Repeats the order of a simulation", metavar="S")
    key: Path | None = option(None, KEY_FILE, metavar="FILE")
    server_key: str = option("", SERVER_KEY, metavar="HEX|FILE")
    roster: Path | None = option(None, "Which clients may join, with which keys; local-dp keys writes it", metavar="FILE")

    def __call__(self) -> None:
        check_name(self.run)
        keys, server = served(self.key, self.roster, private=False), known(self.key, self.server_key, private=False)
        check_whole("clients", self.clients, 2, MOST_CLIENTS["hosts"])
        check_crowd(self.crowd)
        own = {name: getattr(self, name) for name in ("run", "broker", "clients", "crowd", "seed", "deadline", "joining")}
        SCREEN.working(f"mixing the reports of run {self.run}")
        signed: dict[str, Any] = {} if keys is None or server is None else {"key": keys.own.hex(), "server_key": server[1].hex(), "roster": str(keys.roster)}
        asyncio.run(ShufflerConfig(**own, **signed, server_broker=self.server_broker or self.broker).serve())
        SCREEN.note(f"shuffler: run {self.run} is over")


@dataclass(frozen=True, kw_only=True)
class Answering(Role):
    """Who answers: a host, or a client."""

    broker: str = option(help=URL, metavar="URL")
    run: str = option(help="The run that server, hosts and clients join", metavar="NAME")
    allow: str | None = option(None, "The clients' own list of randomizers, separated by commas", metavar="NAMES")
    store: Path | None = option(None, "What was answered and spent; without it, in private a file of the user's, else in memory", metavar="FILE")
    lifetime: float | None = option(None, "Of a new store: the budget for life, over all runs; without it, --epsilon", metavar="E", unit="nats")
    key: Path | None = option(None, KEY_FILE, metavar="FILE")
    server_key: str = option("", SERVER_KEY, metavar="HEX|FILE")

    def held(self, kind: type[LocalProtocol[Any]], given: Mapping[str, str], start: int, clients: int | None) -> Population:
        """The records of the clients from `start` on: a table's rows, or synthetic ones."""
        check_whole("the first client", start, 0, MOST_CLIENTS["hosts"])
        if clients is not None:
            check_whole("clients", clients, 1, MOST_CLIENTS["hosts"])
        if self.private and self.schema is None and self.records is not None:
            raise InputError("the types of a table are seen from its values, and a refusal would tell of them: declare them with --schema FILE")
        protocol, table = self.configured(kind, given)
        if table is not None:
            if clients not in (None, len(table)):
                raise InputError(f"the table has {len(table)} rows for {clients} clients; a member's table holds its own clients' records, one row each")
            return Rows(table)
        if clients is None:
            raise InputError("a host without --records needs --clients N")
        return Rows(protocol.synthetic(start + clients, self.randomness().seed).batch(start, start + clients))

    def serve(self, member: str, group: str, start: int, population: Population) -> None:
        """Answers until the run is over."""
        check_name(self.run)
        keys = known(self.key, self.server_key, self.private)
        envelopes = UNSIGNED if keys is None else Party.member(self.run, server=keys[1], own=keys[0])
        names = allowed_names(self.allow)
        policy = Policy(None if names is None else frozenset(names))
        store, noise = self._kept(member)
        role = ClientRole(member, start, population.batch(0, population.size), noise, store, policy)
        bus = BlockingBus(Address.parse(self.broker), f"{self.run}-{member}", filters(self.run, group), will(self.run, group, member, envelopes))

        async def connected() -> None:
            how = "answering in private" if role.private else STAMP
            SCREEN.note(f"{member}: joined run {self.run} with the clients {role.start}..{role.stop - 1}, {how}{'' if envelopes.signed else ', unsigned'}")
            SCREEN.working("answering until the run is over")

        SCREEN.working(f"joining the broker as {member} of run {self.run}")
        finish(serve(role, SealedBus(bus, envelopes), self.run, group, connected))
        rounds, spent = len(store.lines(self.run)), store.ledger.runs.get(self.run, 0.0)
        SCREEN.note(f"{member}: the run is over; epsilon spent {number(spent)}, {len(role.confirmed)} of {rounds} rounds confirmed")

    def _kept(self, member: str) -> tuple[Store, Noise]:
        """What it has answered and spent, and its noise: private answers are repeated as they were, also by a process that is started again."""
        if self.store is None and not self.private:
            return MemoryStore(self.epsilon, lifetime=self.lifetime), self.randomness().noise()
        store = SqliteStore(self.store or stores_folder() / f"{member}.store", self.epsilon, self.lifetime)
        return store, SystemNoise(store.secret) if self.private else self.randomness().noise()


@dataclass(frozen=True, kw_only=True)
class Host(Answering):
    """Holds many clients of a run, from index --start on: the rows of a table of theirs, or synthetic records."""

    example: ClassVar[str] = f"{MEETING} --clients 500"
    start: int = option(0, "The index of the first client", metavar="I")
    clients: int | None = option(None, "How many clients this host holds; without it, a row each", metavar="N")

    def __call__(self, kind: type[LocalProtocol[Any]], given: Mapping[str, str]) -> None:
        self.serve(f"host-{self.start}", HOSTS, self.start, self.held(kind, given, self.start, self.clients))


@dataclass(frozen=True, kw_only=True)
class Client(Answering):
    """Is one client of a run: with the one row of a table of its own, or a synthetic record."""

    example: ClassVar[str] = f"{MEETING} --index 500"
    index: int = option(help="Which client this is, from 0", metavar="I")

    def __call__(self, kind: type[LocalProtocol[Any]], given: Mapping[str, str]) -> None:
        self.serve(f"client-{self.index}", client_group(self.index), self.index, self.held(kind, given, self.index, 1))


SERVER, HOST, CLIENT = RoleOfProtocols("server", Server), RoleOfProtocols("host", Host), RoleOfProtocols("client", Client)
