"""Shares of symbols behind a shuffler, by several messages a client: the true symbol among blanket messages."""

from dataclasses import dataclass
from typing import Any

from local_dp.errors import InputError
from local_dp.experiments.api.asking import protocol_of
from local_dp.experiments.api.printable import WIDTH, Printable
from local_dp.experiments.api.show import result_table
from local_dp.experiments.api.tables import Table, records_of, sample_rows
from local_dp.experiments.text.dialect import python_errors
from local_dp.experiments.text.layout import bound, number, paragraph
from local_dp.experiments.tiers.outcome import STAMP
from local_dp.experiments.tiers.settings import Randomness
from local_dp.noise import KeyedNoise
from local_dp.protocols.local_protocol import LocalProtocol, plain
from local_dp.protocols.surveys.frequency import Shares
from local_dp.protocols.surveys.policies import Launch
from local_dp.shuffle.histogram import Target, multi_message


@dataclass(frozen=True, repr=False)
class Mixed(Printable):
    """Shares with their 95 % intervals, and the epsilon of all messages together."""

    def text(self, width: int = WIDTH) -> str:
        data = self.data
        head = f"{data['protocol']} behind a shuffler, blanket messages, {number(data['clients'])} clients; {data['stamp']}, seed {data['seed']}"
        cost = f"{number(data['messages_each'])} messages from each client on average; true error {number(data['result']['true_error'])}"
        loss = (
            f"All messages together have epsilon {bound(data['upper'], True)} (at least {bound(data['lower'], False)}) at delta {number(data['delta'])}, "
            "for any data, if all clients answer and the shuffler keeps the senders secret. The shuffler itself sees the true symbols."
        )
        return "\n\n".join([paragraph(head, width), result_table(data["result"], width), f"{paragraph(cost, width)}\n{paragraph(loss, width)}"])


@python_errors()
def mix(
    task: str | LocalProtocol[Any],
    table: Table | None = None,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    clients: int | None = None,
    seed: int | None = None,
    **settings: Any,
) -> Mixed:
    """Simulates clients that send their symbol among blanket messages through a shuffler: `mix("frequency", table, column="colour", labels=("red", "blue"))`.

    `task` is a protocol of shares: frequency, histogram or crosstab, by name with its parameters as `settings`, or as an object. All messages together are
    (epsilon, delta)-private, exactly and for every data set; the shuffler itself sees the symbols. Raises InputError.
    """
    protocol = protocol_of(task, settings)
    if not isinstance(protocol, Shares):
        raise InputError(f"{protocol.name} estimates no shares of symbols: blanket messages are for frequency, histogram and crosstab")
    if protocol.excluded:
        raise InputError(f"{protocol.name} among those present is a quotient of shares, which has no interval here; use missing=category")
    records = None if table is None else records_of(table)
    known = protocol if records is None else protocol.for_table(Launch(records, private=False))
    drawn = Randomness.choose(seed, private=False).seed
    if records is None:
        population = known.synthetic(10_000 if clients is None else clients, drawn)
    else:
        population = sample_rows(records, len(records) if clients is None else clients, drawn)
    histogram = multi_message(known.query.domain.size, Target(population.size, epsilon, delta))
    estimate = histogram.estimate(histogram.gather(known.query, population, KeyedNoise(drawn)))
    least, most = histogram.epsilon(population.size, delta)
    return Mixed(
        {
            "protocol": known.name,
            "clients": population.size,
            "epsilon": epsilon,
            "delta": delta,
            "upper": min(most, epsilon),
            "lower": least,
            "messages_each": histogram.messages_each,
            "blanket": {"k": histogram.k, "weight": histogram.weight, "tries": histogram.tries},
            "result": {**known.describe(estimate), "truth": plain(known.truth(population)), "true_error": known.true_error(estimate, population)},
            "seed": drawn,
            "stamp": STAMP,
        }
    )
