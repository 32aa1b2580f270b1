"""`local-dp server`, `host` and `client`: the roles one at a time, for runs that span machines. They meet at a broker, under a run's name."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from clients.journal import MemoryStore
from clients.member import HOSTS, client_group, filters, serve, will
from clients.role import ClientRole, Policy
from experiments.cli import options
from experiments.cli.output import ProgressLines, summary
from experiments.tiers.execute import serve_run
from experiments.tiers.outcome import as_data
from experiments.tiers.settings import Randomness, Settings
from local_dp.bus.mqtt import Address, MqttBus
from local_dp.errors import InputError
from local_dp.populations.base import Population
from local_dp.populations.table import Rows
from local_dp.wire import check_name
from server.terms import Terms

Start = Annotated[int, typer.Option("--start", metavar="I", help="The index of the first client.")]


def server(
    protocol: options.ProtocolName,
    broker: options.BrokerUrl,
    run: options.RunName,
    clients: options.Clients = None,
    epsilon: options.Epsilon = 1.0,
    records: options.RecordsFile = None,
    question: options.QuestionText = None,
    column: options.ColumnName = None,
    settings: options.SetValues = None,
    seed: options.Seed = None,
    private: options.Private = False,
    deadline: options.Deadline = 30.0,
    quorum: options.Quorum = 0.9,
    joining: Annotated[float, typer.Option("--joining", metavar="SECONDS", help="How long to wait for the clients to join.")] = 60.0,
    as_json: options.Json = False,
) -> None:
    """Coordinates a run whose clients join from elsewhere. A table, if given, tells the true error of a simulation."""
    check_name(run)
    built, table = options.configured(protocol, records, question, column, settings, private)
    randomness = Randomness.choose(seed, private)
    population = options.population_of(built, table, clients, epsilon, randomness.seed)
    chosen = Settings(built, population, epsilon, randomness, "hosts", 1, broker, Terms(deadline, quorum))
    algorithm = built.algorithm(epsilon, chosen.clients)
    with ProgressLines() as lines:
        outcome = asyncio.run(serve_run(algorithm, chosen, run, Address.parse(broker), joining, lines.update))
    data = as_data(chosen, outcome, truth_known=table is not None)  # otherwise the clients' records are their own
    if as_json:
        typer.echo(json.dumps(data))
    else:
        summary(data)


def host(
    protocol: options.ProtocolName,
    broker: options.BrokerUrl,
    run: options.RunName,
    start: Start = 0,
    clients: Annotated[int | None, typer.Option("--clients", metavar="N", help="How many clients this host holds. Default: a row each.")] = None,
    epsilon: options.Epsilon = 1.0,
    records: options.RecordsFile = None,
    question: options.QuestionText = None,
    column: options.ColumnName = None,
    settings: options.SetValues = None,
    seed: options.Seed = None,
    private: options.Private = False,
    allow: options.Allow = None,
) -> None:
    """Holds many clients, from index --start on: the rows of a table of theirs, or synthetic records."""
    population = _population(protocol, records, question, column, settings, seed, private, start, clients)
    _serve(f"host-{start}", HOSTS, population, broker, run, start, epsilon, seed, private, allow)


def client(
    protocol: options.ProtocolName,
    broker: options.BrokerUrl,
    run: options.RunName,
    index: Annotated[int, typer.Option("--index", metavar="I", help="Which client this is, from 0.")],
    epsilon: options.Epsilon = 1.0,
    records: options.RecordsFile = None,
    question: options.QuestionText = None,
    column: options.ColumnName = None,
    settings: options.SetValues = None,
    seed: options.Seed = None,
    private: options.Private = False,
    allow: options.Allow = None,
) -> None:
    """Is one client: with the one row of a table of its own, or a synthetic record."""
    population = _population(protocol, records, question, column, settings, seed, private, index, 1)
    _serve(f"client-{index}", client_group(index), population, broker, run, index, epsilon, seed, private, allow)


def _population(
    protocol: str,
    records: Path | None,
    question: str | None,
    column: str | None,
    settings: list[str] | None,
    seed: int | None,
    private: bool,
    start: int,
    clients: int | None,
) -> Population:
    if start < 0:
        raise InputError(f"the first client is {start}; give 0 or more")
    built, table = options.configured(protocol, records, question, column, settings, private)
    if table is not None:
        if clients not in (None, len(table)):
            raise InputError(f"the table has {len(table)} rows for {clients} clients; a member's table holds its own clients' records, one row each")
        return Rows(table)
    if clients is None:
        raise InputError("a host without --records needs --clients N")
    chosen = Randomness.choose(seed, private)
    return Rows(built.synthetic(start + clients, chosen.seed).batch(start, start + clients))


def _serve(
    member: str,
    group: str,
    population: Population,
    broker: str,
    run: str,
    start: int,
    epsilon: float,
    seed: int | None,
    private: bool,
    allow: str | None,
) -> None:
    check_name(run)
    noise = Randomness.choose(seed, private).noise()
    names = options.allowed_names(allow)
    allowed = None if names is None else frozenset(names)
    role = ClientRole(member, start, population.batch(0, population.size), noise, MemoryStore(epsilon), Policy(allowed))
    bus = MqttBus(Address.parse(broker), f"{run}-{member}", filters(run, group), will(run, group, member))

    async def connected() -> None:
        print(f"{member}: joined run {run} with the clients {role.start}..{role.stop - 1}", file=sys.stderr, flush=True)

    asyncio.run(serve(role, bus, run, group, connected))
    print(f"{member}: the run is over; epsilon spent {role.store.ledger.max_spent:g}", file=sys.stderr)
