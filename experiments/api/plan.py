"""What an answer would cost, before anybody is asked: clients for an accuracy, or accuracy for a number of clients."""

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from local_dp.errors import InputError
from local_dp.experiments.api.tables import Table, records_of, sample_rows
from local_dp.experiments.api.told import WIDTH, Told
from local_dp.experiments.text.layout import held, paragraph, table
from local_dp.experiments.text.notation import bound, number
from local_dp.populations.population import Population
from local_dp.protocols.local_protocol import BETA, LocalProtocol
from local_dp.protocols.planning.local import Bounded, Way, check_accuracy, tolerance_of, ways, with_tolerance
from local_dp.protocols.planning.shuffled import OneReport, Together, shuffled_ways
from local_dp.protocols.registry import find_protocol
from local_dp.protocols.surveys.policies import Launch

ANY, MADE_UP, OWN_BOUND = "any", "made-up", "own bound"
Who: TypeAlias = Table | Literal["any", "made-up"]


@dataclass(frozen=True, repr=False)
class Plan(Told):
    """Every way to answer a question, with its clients and its accuracy; prints itself as one block, and is plain data by `to_dict`.

    `rows` holds a mapping for each way: name, model ("local", "curator" or "open"), bits a client, whether a run would take it, clients, accuracy.
    """

    def text(self, width: int = WIDTH) -> str:
        return shown(self.data, width)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The ways: local ones, best first, then the trusted curator and no privacy."""
        found: list[dict[str, Any]] = self.data["ways"]
        return found

    @property
    def chosen(self) -> dict[str, Any]:
        """The way that a run takes."""
        return next(row for row in self.rows if row["chosen"])

    @property
    def clients(self) -> int | None:
        """How many clients a run needs, or has."""
        found: int | None = self.chosen["clients"]
        return found

    @property
    def accuracy(self) -> float | None:
        """What the largest error of a run stays within, with probability 95 %; None where the protocol learns a concept, or nothing useful is kept."""
        found: float | None = self.chosen["accuracy"]
        return found


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What is planned for: an accuracy, or a number of clients, or neither (the protocol's own tolerance), at this epsilon; `of` whom.

    `of`: any population, the one that a run without a table makes up, or rows like those of a table. With `shuffle`, a delta, also behind a shuffler: epsilon
    is then what all reports lose together.
    """

    epsilon: float = 1.0
    accuracy: float | None = None
    clients: int | None = None
    of: Who = ANY
    shuffle: float | None = None


def plan(
    task: str | LocalProtocol[Any],
    *,
    epsilon: float = 1.0,
    accuracy: float | None = None,
    clients: int | None = None,
    of: Who = ANY,
    shuffle: float | None = None,
    **settings: Any,
) -> Plan:
    """Plans a protocol, by name with its parameters as `settings` or as it is: `plan("survey", epsilon=1, accuracy=0.02)`.

    `accuracy`, in units of the protocol's tolerance, is what the largest error of all that is estimated stays within in 95 % of runs; give it, or `clients`,
    or neither. `of`: "any" population (the least favourable law, for each way its own), "made-up" (the one of a run without a table), or rows like a table's.
    `shuffle`, a delta, plans behind a shuffler too, between local and curator: epsilon is then what all reports lose together, beside this delta.
    Raises InputError.
    """
    if isinstance(task, LocalProtocol) and settings:
        raise InputError(f"{', '.join(settings)}: parameters of a protocol that is given as it is; give them to it")
    wish = Wish(epsilon=epsilon, accuracy=accuracy, clients=clients, of=of, shuffle=shuffle)
    return made(task if isinstance(task, LocalProtocol) else _built(task, settings), wish)


def _built(name: str, settings: dict[str, Any]) -> LocalProtocol[Any]:
    try:
        return find_protocol(name)(**settings)
    except TypeError as error:
        raise InputError(f"{name}: {error}; `local-dp describe {name}` lists its parameters") from None


def made(protocol: LocalProtocol[Any], wish: Wish) -> Plan:
    """The plan. Raises InputError."""
    told, population = _population(protocol, wish)
    goal = tolerance_of(told)
    if wish.accuracy is not None and wish.clients is not None:
        raise InputError("an accuracy and a number of clients are both given; one follows from the other, so give one")
    if goal is None and (wish.accuracy is not None or wish.clients is not None):
        raise InputError(f"{protocol.name} has no accuracy to choose; leave out accuracy and clients for what it needs to succeed with probability 95 %")
    if wish.clients is not None and wish.clients < 1:
        raise InputError(f"clients is {wish.clients}; give 1 or more")
    aimed = goal if wish.accuracy is None else wish.accuracy
    if aimed is not None:
        check_accuracy(aimed)
    every = ways(told, wish.epsilon, population)
    own = len(every) == 1 and isinstance(every[0], Bounded)
    if wish.shuffle is not None:
        place = sum(way.model == "local" for way in every)
        every[place:place] = shuffled_ways(told, Together(wish.epsilon, wish.shuffle), population)
    return Plan(
        {
            "protocol": protocol.name,
            "epsilon": wish.epsilon,
            "shuffle": wish.shuffle,
            "probability": 1 - BETA,
            "unit": _unit(told),
            "population": OWN_BOUND if own else wish.of if isinstance(wish.of, str) and wish.of in (ANY, MADE_UP) else "table",
            "asked": {"clients": wish.clients} if wish.clients is not None else {"accuracy": aimed},
            "default_clients": (told if aimed is None else with_tolerance(told, aimed)).clients(wish.epsilon),
            "ways": [_row(way, told, wish, aimed) for way in every],
        }
    )


def _population(protocol: LocalProtocol[Any], wish: Wish) -> tuple[LocalProtocol[Any], Population | None]:
    """The protocol, knowing the table if there is one, and who is asked."""
    if isinstance(wish.of, str) and wish.of == ANY:
        return protocol, None
    if isinstance(wish.of, str) and wish.of == MADE_UP:  # not a file's name
        return protocol, protocol.synthetic(1, 0)  # its law does not depend on how many they are
    records = records_of(wish.of)
    return protocol.for_table(Launch(records, private=False)), sample_rows(records, len(records), 0)


def _unit(protocol: LocalProtocol[Any]) -> str:
    fields = type(protocol).__dataclass_fields__
    return str(fields["tolerance"].metadata.get("unit", "")) if "tolerance" in fields else ""


def _row(way: Way, protocol: LocalProtocol[Any], wish: Wish, aimed: float | None) -> dict[str, Any]:
    clients, accuracy = wish.clients, aimed
    if clients is not None:
        accuracy = way.accuracy(clients)
    else:
        clients = protocol.clients(wish.epsilon) if aimed is None else way.clients(aimed)
    useful = accuracy if accuracy is not None and math.isfinite(accuracy) else None
    told: dict[str, Any] = {"name": way.name, "model": way.model, "bits": way.bits, "chosen": way.chosen}
    if isinstance(way, OneReport):
        told["report_epsilon"] = way.local(clients)
    return {**told, "clients": clients, "accuracy": useful}


def shown(data: dict[str, Any], width: int) -> str:
    """A plan for a person: a sentence, and a line for each way."""
    chosen = next(row for row in data["ways"] if row["chosen"])
    rows = [_shown(row, chosen, "clients" in data["asked"]) for row in data["ways"]]
    by_clients, more = "clients" in data["asked"], data["default_clients"]
    note = f" A run told nothing asks {held(number(more) + ' clients')}, so that its interval keeps its level." if _asks_more(data, chosen) else ""
    heading = ("way", "model", "bits", "accuracy" if by_clients else "clients", "times the run's")
    return "\n\n".join((paragraph(_sentence(data, chosen), width), table(heading, rows, width), paragraph(_who(data) + note + _mixed(data), width)))


def _sentence(data: dict[str, Any], chosen: dict[str, Any]) -> str:
    at = held(f"epsilon {number(data['epsilon'])}")
    if chosen["accuracy"] is None:
        if "clients" in data["asked"]:
            return f"{data['protocol']} at {at}: {held(number(chosen['clients']) + ' clients')} are too few to say anything, with probability 95 %."
        return f"{data['protocol']} at {at}: {held(number(chosen['clients']) + ' clients')} are enough to succeed with probability 95 %."
    error, unit = number(chosen["accuracy"]), f" ({data['unit']})" if data["unit"] else ""
    who = held(f"{number(chosen['clients'])} clients")
    return f"{data['protocol']} at {at}: with {who} the largest error is at most {error}{unit} with probability 95 %."


def _shown(row: dict[str, Any], chosen: dict[str, Any], by_clients: bool) -> tuple[str, ...]:
    key = "accuracy" if by_clients else "clients"
    value, own = row[key], chosen[key]
    times = "" if value is None or own is None else number(round(value / own, 4))
    mark = " (a run's)" if row["chosen"] else ""
    model = {"open": "none", "curator": "curator"}.get(row["model"], row["model"])
    bits = "" if row["bits"] is None else str(row["bits"])
    each = f" of epsilon {bound(row['report_epsilon'], False)}" if "report_epsilon" in row else ""
    return f"{row['name']}{each}{mark}", model, bits, "none" if value is None else number(value), times


def _asks_more(data: dict[str, Any], chosen: dict[str, Any]) -> bool:
    """Whether a run of that tolerance, told no number of clients, asks more than any population needs for it."""
    return data["population"] == ANY and "accuracy" in data["asked"] and data["default_clients"] > 1.01 * chosen["clients"] + 1


def _mixed(data: dict[str, Any]) -> str:
    """What epsilon is behind a shuffler."""
    if data["shuffle"] is None:
        return ""
    return f" Shuffled: all reports together lose this epsilon beside {held('delta ' + number(data['shuffle']))}, if the shuffler keeps silent and all answer."


def _who(data: dict[str, Any]) -> str:
    of = {
        ANY: "Of any population: each way at the law that is least favourable to it.",
        MADE_UP: "Of the population that a run without a table makes up.",
        OWN_BOUND: "By the protocol's own bound: enough, and there is no other way to compare it with.",
    }
    return of.get(data["population"], "Of people drawn like the table's rows.")
