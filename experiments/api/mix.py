"""Shares of symbols behind a shuffler, from several messages a client: the symbol as it is, among blanket messages."""

from dataclasses import dataclass
from typing import Any

from local_dp.errors import InputError
from local_dp.experiments.api.show import result_table
from local_dp.experiments.api.tables import Table, records_of, sample_rows
from local_dp.experiments.api.told import WIDTH, Told
from local_dp.experiments.text.layout import paragraph
from local_dp.experiments.text.notation import bound, number
from local_dp.experiments.tiers.outcome import STAMP
from local_dp.experiments.tiers.settings import Randomness
from local_dp.noise import KeyedNoise
from local_dp.protocols.local_protocol import LocalProtocol, plain
from local_dp.protocols.registry import find_protocol
from local_dp.protocols.surveys.frequency import Shares
from local_dp.protocols.surveys.policies import Launch
from local_dp.shuffle.histogram import Target, multi_message


@dataclass(frozen=True, repr=False)
class Mixed(Told):
    """Shares with their 95 % intervals, and what all messages together lose; prints itself as one block."""

    def text(self, width: int = WIDTH) -> str:
        return shown(self.data, width)


@dataclass(frozen=True, kw_only=True)
class Blend:
    """What all messages together may lose, epsilon in nats beside delta; of how many clients (None: the table's rows), and the seed of the simulation."""

    epsilon: float = 1.0
    delta: float = 1e-6
    clients: int | None = None
    seed: int | None = None


def mix(
    task: str, table: Table | None = None, *, epsilon: float = 1.0, delta: float = 1e-6, clients: int | None = None, seed: int | None = None, **settings: Any
) -> Mixed:
    """Simulates clients that send their symbol among blanket messages through a shuffler: `mix("frequency", table, column="colour", labels=("red", "blue"))`.

    `task` is a protocol of shares: frequency, histogram or crosstab, with its parameters as `settings`. All messages together are (epsilon, delta)-private,
    exactly and for every data set; from the shuffler nothing is hidden. Raises InputError.
    """
    try:
        protocol = find_protocol(task)(**settings)
    except TypeError as error:
        raise InputError(f"{task}: {error}; `local-dp describe {task}` lists its parameters") from None
    return mixed(protocol, table, Blend(epsilon=epsilon, delta=delta, clients=clients, seed=seed))


def mixed(protocol: LocalProtocol[Any], table: Table | None, blend: Blend) -> Mixed:
    """The same of a protocol that is built."""
    if not isinstance(protocol, Shares):
        raise InputError(f"{protocol.name} estimates no shares of symbols: blanket messages are for frequency, histogram and crosstab")
    if protocol.excluded:
        raise InputError(f"{protocol.name} among those present is a quotient of shares, which has no interval here; use missing=category")
    records = None if table is None else records_of(table)
    told = protocol if records is None else protocol.for_table(Launch(records, private=False))
    seed = Randomness.choose(blend.seed, private=False).seed
    if records is None:
        population = told.synthetic(10_000 if blend.clients is None else blend.clients, seed)
    else:
        population = sample_rows(records, len(records) if blend.clients is None else blend.clients, seed)
    histogram = multi_message(told.query.domain.size, Target(population.size, blend.epsilon, blend.delta))
    estimate = histogram.estimate(histogram.gather(told.query, population, KeyedNoise(seed)))
    least, most = histogram.epsilon(population.size, blend.delta)
    return Mixed(
        {
            "protocol": told.name,
            "clients": population.size,
            "epsilon": blend.epsilon,
            "delta": blend.delta,
            "upper": min(most, blend.epsilon),
            "lower": least,
            "messages_each": histogram.messages_each,
            "blanket": {"k": histogram.k, "weight": histogram.weight, "tries": histogram.tries},
            "result": {**told.describe(estimate), "truth": plain(told.truth(population)), "true_error": told.true_error(estimate, population)},
            "seed": seed,
            "stamp": STAMP,
        }
    )


def shown(data: dict[str, Any], width: int) -> str:
    """For a person."""
    head = f"{data['protocol']} behind a shuffler, blanket messages, {number(data['clients'])} clients; {data['stamp']}, seed {data['seed']}"
    lost = (
        f"All messages together lose epsilon {bound(data['upper'], True)} (and at least {bound(data['lower'], False)}) beside delta {number(data['delta'])}, "
        f"whatever the data, if the shuffler keeps silent and all clients answer; from the shuffler a client hides nothing."
    )
    cost = f"{number(data['messages_each'])} messages from each client on average; true error {number(data['result']['true_error'])}"
    return "\n\n".join([paragraph(head, width), result_table(data["result"], width), f"{paragraph(cost, width)}\n{paragraph(lost, width)}"])
