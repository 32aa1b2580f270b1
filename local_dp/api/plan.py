"""Plans a run: the clients for an accuracy, or the accuracy of a number of clients."""

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from local_dp.api.asking import protocol_of, with_table, with_target
from local_dp.api.declare import WIDTH, Printable, by_name
from local_dp.api.tables import Dates, Table, sample_rows
from local_dp.errors import InputError
from local_dp.populations.finite import Population
from local_dp.protocols.local_protocol import BETA, LocalProtocol, PlainData
from local_dp.protocols.planning.ways import (
    Bounded,
    OneReport,
    Together,
    Way,
    check_accuracy,
    shuffled_ways,
    tolerance_of,
    ways,
    with_tolerance,
)
from local_dp.shuffle.central import Behind
from local_dp.text.layout import bound, held, number, paragraph
from local_dp.text.widgets import table

ANY, MADE_UP, TABLE, OWN_BOUND = "any", "made-up", "table", "own bound"
Who: TypeAlias = Table | Literal["any", "made-up"]


@dataclass(frozen=True, repr=False)
class Plan(Printable):
    """Every method for a question, with its clients and its accuracy; prints itself as one block,
    and is plain data by `to_dict`.

    `rows` has a mapping for each method: name, model ("local", "curator" or "open"), bits a client,
    whether a run would use it, clients, accuracy.
    """

    def text(self, width: int = WIDTH) -> str:
        """A sentence, and a line for each method."""
        data, own = self.data, self.chosen
        key = "accuracy" if "clients" in data["asked"] else "clients"
        notes = [_WHO.get(data["population"], "For people drawn like the table's rows.")]
        default = data["default_clients"]
        is_exact = default <= 1.01 * own["clients"] + 1
        if data["population"] == ANY and key == "clients" and not is_exact:
            notes.append(
                f"A run asks {held(number(default) + ' clients')} by default, so that its 95 % "
                "interval is exact enough."
            )
        if data["shuffle"] is not None:
            delta = held(f"delta {number(data['shuffle'])}")
            notes.append(
                f"Shuffled: this epsilon and {delta} are for all reports together, if all clients "
                "answer and the shuffler keeps the senders secret."
            )
        heading = ("method", "model", "bits", key, "times the run's")
        rows = [_cells(row, own, key) for row in data["ways"]]
        parts = [paragraph(_sentence(data, own), width), table(heading, rows, width)]
        return "\n\n".join((*parts, paragraph(" ".join(notes), width)))

    @property
    def rows(self) -> list[PlainData]:
        """The methods: local ones, best first, then the trusted curator and no privacy."""
        rows: list[PlainData] = self.data["ways"]
        return rows

    @property
    def chosen(self) -> PlainData:
        """The method of a run."""
        return next(row for row in self.rows if row["chosen"])

    @property
    def clients(self) -> int | None:
        """The number of clients that a run needs, or has."""
        clients: int | None = self.chosen["clients"]
        return clients

    @property
    def accuracy(self) -> float | None:
        """The bound on the largest error of a run, with probability 95 %; None for a learned
        concept, or if the clients are too few."""
        accuracy: float | None = self.chosen["accuracy"]
        return accuracy


@by_name
def plan(
    task: str | LocalProtocol[Any],
    of: Who = ANY,
    *,
    epsilon: float = 1.0,
    accuracy: float | None = None,
    clients: int | None = None,
    shuffle: bool = False,
    delta: float = Behind.delta,
    csv: str = "",
    dates: Dates = None,
    **settings: Any,
) -> Plan:
    """Plans a protocol, by name with its parameters as `settings`, or as an object:
    `plan("survey", epsilon=1, accuracy=0.02)`. Raises InputError.

    `accuracy`, in units of the protocol's tolerance, bounds the largest error of all estimates in
    95 % of runs; give it, or `clients`, or neither. `of`: "any" population (for each method its
    least favourable one), "made-up" (that of a run without a table), or a table; `csv` and `dates`
    are its forms. Or it is the protocol's parameter `of`, "records" or "population". `shuffle`
    plans behind a shuffler too, between local and curator: epsilon is then that of all reports
    together, beside `delta`.
    """
    target, settings = with_target(of, settings)
    of = ANY if target is None else target
    protocol = protocol_of(task, settings, ("accuracy", "clients", "epsilon", "shuffle"))
    of_whom = of if isinstance(of, str) and of in (ANY, MADE_UP) else TABLE
    of_table, records = with_table(protocol, of if of_whom == TABLE else None, csv, dates)
    population: Population | None = None
    if of_whom == MADE_UP:
        population = protocol.synthetic(1, 0)  # its law does not depend on how many they are
    elif records is not None:
        population = sample_rows(records, len(records), 0)
    aim = _aim(of_table, accuracy, clients)
    tolerance = type(of_table).__dataclass_fields__.get("tolerance")
    every = ways(of_table, epsilon, population)
    is_own = len(every) == 1 and isinstance(every[0], Bounded)
    if shuffle:
        place = sum(way.model == "local" for way in every)
        every[place:place] = shuffled_ways(of_table, Together(epsilon, delta), population)
    aimed_at = of_table if aim is None else with_tolerance(of_table, aim)
    return Plan(
        {
            "protocol": protocol.name,
            "epsilon": epsilon,
            "shuffle": delta if shuffle else None,
            "probability": 1 - BETA,
            "unit": "" if tolerance is None else str(tolerance.metadata.get("unit", "")),
            "population": OWN_BOUND if is_own else of_whom,
            "asked": {"accuracy": aim} if clients is None else {"clients": clients},
            "default_clients": aimed_at.clients(epsilon),
            "ways": [_row(way, of_table, epsilon, clients, aim) for way in every],
        }
    )


def _aim(protocol: LocalProtocol[Any], accuracy: float | None, clients: int | None) -> float | None:
    """The accuracy to plan for; None where the protocol has none. Raises InputError."""
    goal = tolerance_of(protocol)
    if accuracy is not None and clients is not None:
        raise InputError(
            "both an accuracy and a number of clients are given; one follows from the other, so "
            "give one"
        )
    if goal is None and (accuracy is not None or clients is not None):
        raise InputError(
            f"{protocol.name} has no accuracy to choose; leave out accuracy and clients to plan "
            "for success with probability 95 %"
        )
    if clients is not None and clients < 1:
        raise InputError(f"clients is {clients}; give 1 or more")
    aim = goal if accuracy is None else accuracy
    if aim is not None:
        check_accuracy(aim)
    return aim


def _row(
    way: Way, protocol: LocalProtocol[Any], epsilon: float, clients: int | None, aim: float | None
) -> PlainData:
    accuracy = aim
    if clients is not None:
        accuracy = way.accuracy(clients)
    else:
        clients = protocol.clients(epsilon) if aim is None else way.clients(aim)
    if accuracy is not None and not math.isfinite(accuracy):
        accuracy = None
    report = {"report_epsilon": way.local(clients)} if isinstance(way, OneReport) else {}
    about = {name: getattr(way, name) for name in ("name", "model", "bits", "chosen")}
    return {**about, **report, "clients": clients, "accuracy": accuracy}


_WHO = {
    ANY: "Worst case over all populations, for each method its own.",
    MADE_UP: "For the synthetic population of a run without a table.",
    OWN_BOUND: "By the protocol's own bound, which is sufficient; no other method is computed.",
}


def _sentence(data: PlainData, own: PlainData) -> str:
    start = f"{data['protocol']} at {held('epsilon ' + number(data['epsilon']))}:"
    clients = held(f"{number(own['clients'])} clients")
    if own["accuracy"] is not None:
        unit = f" ({data['unit']})" if data["unit"] else ""
        return (
            f"{start} with {clients} the largest error is at most "
            f"{number(own['accuracy'])}{unit} with probability 95 %."
        )
    if "clients" in data["asked"]:
        return f"{start} {clients} are too few for any accuracy with probability 95 %."
    return f"{start} {clients} are enough to succeed with probability 95 %."


def _cells(row: PlainData, own: PlainData, key: str) -> tuple[str, ...]:
    value, best = row[key], own[key]
    times = "" if value is None or best is None else number(round(value / best, 4))
    each = f" of epsilon {bound(row['report_epsilon'], False)}" if "report_epsilon" in row else ""
    name = row["name"] + each + (" (a run's)" if row["chosen"] else "")
    model = "none" if row["model"] == "open" else row["model"]
    return (
        name,
        model,
        "" if row["bits"] is None else str(row["bits"]),
        "none" if value is None else number(value),
        times,
    )
