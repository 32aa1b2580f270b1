"""The options that several commands share, and what is made of them."""

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from local_dp.errors import InputError
from local_dp.loss import nano_epsilon
from local_dp.populations.base import Population
from local_dp.protocols.base import Protocol
from local_dp.protocols.policies import Launch
from local_dp.protocols.registry import find_protocol
from local_dp.records import Records

ProtocolName: TypeAlias = Annotated[str, typer.Argument(metavar="PROTOCOL", help="What to run; `local-dp protocols` lists them.")]
RecordsFile: TypeAlias = Annotated[Path | None, typer.Option("--records", metavar="FILE", help="A CSV or Parquet table; each row is a client's record.")]
QuestionText: TypeAlias = Annotated[str | None, typer.Option("--question", metavar="Q", help="A yes/no question: 'affairs > 0 and age >= 30'.")]
ColumnName: TypeAlias = Annotated[str | None, typer.Option("--column", metavar="C", help="The column that is counted or averaged.")]
SetValues: TypeAlias = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the protocol; may be repeated.")]
Clients: TypeAlias = Annotated[int | None, typer.Option("--clients", metavar="N", help="How many. Default: all rows, or what the bounds ask for 95 %.")]
Epsilon: TypeAlias = Annotated[float, typer.Option("--epsilon", metavar="E", help="Every client's privacy budget, in nats.")]
Seed: TypeAlias = Annotated[int | None, typer.Option("--seed", metavar="S", help="Repeats a simulation. Default: one is drawn and shown.")]
Private: TypeAlias = Annotated[bool, typer.Option("--private", help="Operating-system entropy for every client's noise; takes no seed.")]
Deadline: TypeAlias = Annotated[float, typer.Option("--deadline", metavar="SECONDS", help="The longest that a round may take.")]
Quorum: TypeAlias = Annotated[float, typer.Option("--quorum", metavar="FRACTION", help="The least share of those asked that must have answered by then.")]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the outcome as JSON, alone on standard output.")]
BrokerUrl: TypeAlias = Annotated[str, typer.Option("--broker", metavar="URL", help="mqtt://[user:password@]host[:port], or mqtts://...[?ca=FILE].")]
RunName: TypeAlias = Annotated[str, typer.Option("--run", metavar="NAME", help="The run that server, hosts and clients join.")]
Allow: TypeAlias = Annotated[str | None, typer.Option("--allow", metavar="NAMES", help="The clients' own list of randomizers, separated by commas.")]


def configured(
    protocol: str, records: Path | None, question: str | None, column: str | None, settings: list[str] | None, private: bool
) -> tuple[Protocol[Any], Records | None]:
    """The protocol with its parameters, and the table if there is one. Raises InputError where a private run would publish what only the table holds."""
    kind = find_protocol(protocol)
    values = {}
    for setting in settings or []:
        key, separator, value = setting.partition("=")
        if not separator:
            raise InputError(f"--set takes KEY=VALUE, not {setting!r}")
        values[key.strip()] = value.strip()
    if question is not None:
        values["queries" if protocol == "sq" else "question"] = question
    if column is not None:
        values["column"] = column
    built = kind.from_settings(values)
    if records is None:
        return built, None
    from experiments.cli.tables import read_records

    table = read_records(records)
    return built.for_table(Launch(table, private)), table


def population_of(protocol: Protocol[Any], table: Records | None, clients: int | None, epsilon: float, seed: int) -> Population:
    """The table's rows, or a synthetic population of as many clients as were asked for."""
    nano_epsilon(epsilon)
    if table is None:
        return protocol.synthetic(protocol.clients(epsilon) if clients is None else clients, seed)
    from experiments.cli.tables import sample_rows

    return sample_rows(table, len(table) if clients is None else clients, seed)


def allowed_names(allow: str | None) -> tuple[str, ...] | None:
    """The allow-list in the option `--allow`."""
    return None if allow is None else tuple(name.strip() for name in allow.split(",") if name.strip())
