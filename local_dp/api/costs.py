"""Costs: the best randomizer for a task, the price of mechanisms, the epsilon of shuffled reports,
shares by several messages; and budgets in files."""

import math
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local_dp.accounting import rules
from local_dp.accounting.rules import losses_of
from local_dp.api.asking import protocol_of, with_table
from local_dp.api.audit import built
from local_dp.api.declare import WIDTH, Printable, Tabular, by_name
from local_dp.api.release_text import loss_data, loss_text
from local_dp.api.result import drawn_rows, framed
from local_dp.api.show import result_table
from local_dp.api.tables import Dates, Table, sample_rows
from local_dp.bounds import best
from local_dp.checks import check_whole
from local_dp.clients.journal import KIND, SqliteStore
from local_dp.domains import Parameter
from local_dp.errors import InputError, reading
from local_dp.loss import MAX_EPSILON, NANO, Pure, approximate, nano_epsilon
from local_dp.noise import KeyedNoise
from local_dp.populations.finite import Population
from local_dp.protocols.local_protocol import LocalProtocol, plain
from local_dp.protocols.surveys.frequency import OfShares, Shares
from local_dp.shuffle.accountant import amplified, largest_local
from local_dp.shuffle.histogram import Target, multi_message
from local_dp.simulation.outcome import STAMP, described
from local_dp.simulation.settings import Randomness
from local_dp.storage.budget_file import KeptBudget
from local_dp.storage.log import kind_of
from local_dp.text.layout import bound, number, paragraph
from local_dp.text.widgets import table

if TYPE_CHECKING:  # what draws takes a while to import
    from local_dp.experiments.lab.style import Drawing

MOST = 1e6  # nats
RULES = {
    "basic": "losses add up",
    "advanced": "Dwork, Rothblum and Vadhan",
    "tanh": "the same, with the largest expected loss, eps tanh(eps/2)",
    "zcdp": "rho adds up and is converted",
    "exact": "the smallest provable epsilon",
}
SHUFFLE_RULES = {
    "no shuffler": "the server knows the senders",
    "closed form": "Feldman, McMillan, Talwar 2021",
    "clones": "the same, computed",
    "variation ratio": "any randomizer of this epsilon",
    "blanket": "this randomizer; Balle, Bell, Gascon, Nissim 2019",
    "all data sets": "the worst data set, proved",
    "others hold one value": "a pair of data sets, its delta bounded from below",
}
_DIGITS = 4


@dataclass(frozen=True, repr=False)
class BestFor(Printable):
    """The randomizer, its parameters, n times its variance, the reason, and the others."""

    def text(self, width: int = WIDTH) -> str:
        data = self.data
        parameters = ", ".join(f"{name}={value}" for name, value in data["parameters"].items())
        error = (
            ""
            if data["clients"] is None
            else f" With {data['clients']:,} clients the standard error is {number(data['error'])}."
        )
        head = paragraph(
            f"{data['randomizer']}({parameters}): {data['reason']}.{error}", width, "  "
        )
        rows = [
            (name, number(variance))
            for name, variance in [(data["randomizer"], data["variance"]), *data["others"]]
        ]
        return "\n\n".join(
            (head, table(("randomizer", f"n times the variance of {data['of']}"), rows, width))
        )


@by_name
def best_for(task: str, *, epsilon: float = 1.0, k: int = 2, clients: int | None = None) -> BestFor:
    """The best known randomizer for a task at this epsilon, by closed form, with its reason. Raises
    InputError.

    "survey": the share of a yes; "frequency": the shares of `k` symbols; "mean": the mean in [0, 1]
    of the distribution that the clients are drawn from; "table-mean": the mean of the clients' own
    numbers; "mean-vector": vectors in [-1, 1]^k, the variances of all coordinates together;
    "ball-vector": vectors in the unit ball; "strings": the share of one of all strings of `k` bits.
    With `clients`, also the standard error.
    """
    choice = best.best_for(task, epsilon, k)
    if clients is not None:
        check_whole("clients", clients, 1, 10**15)
    error = None if clients is None else choice.error(clients)
    return BestFor(
        {
            "task": task,
            "clients": clients,
            **asdict(choice),
            "error": error,
            "others": [list(pair) for pair in choice.others],
        }
    )


@dataclass(frozen=True, repr=False)
class Prices(Printable):
    """The price of a list of mechanisms, by each rule of composition."""

    def text(self, width: int = WIDTH) -> str:
        """The prices are rounded up."""
        data = self.data
        measure, beside = (
            ("epsilon", "delta") if isinstance(data["epsilon"], dict) else ("delta", "epsilon")
        )
        head = (
            f"{data['mechanisms']}: {data['answers']:,} "
            f"{'answer' if data['answers'] == 1 else 'answers'}, {beside} {data[beside]:g}"
        )
        rows = [
            (f"{rule}: {RULES[rule]}", "none" if price is None else bound(price, True, _DIGITS))
            for rule, price in data[measure].items()
        ]
        return f"{paragraph(head, width, '  ')}\n\n{table(('rule', measure), rows, width)}"


@by_name
def price(mechanisms: str, *, delta: float = 1e-6, epsilon: float | None = None) -> Prices:
    """The epsilon beside `delta`, or with an `epsilon` the delta beside it, by each rule; None
    where a rule promises nothing. Raises InputError.

    The list has the form of `local-dp price`: "discrete-laplace 0.01 x 10000 + gaussian 5 x 3".
    """
    losses = losses_of(mechanisms)
    about = {"mechanisms": mechanisms, "answers": sum(losses.values())}
    if epsilon is None:
        epsilons = {rule: rules.epsilon(losses, delta, rule) for rule in rules.RULES}
        return Prices(
            {
                **about,
                "delta": delta,
                "epsilon": {
                    rule: cost if math.isfinite(cost) else None for rule, cost in epsilons.items()
                },
            }
        )
    if not 0 <= epsilon <= MOST:
        raise InputError(f"epsilon is {epsilon}; give a number from 0 to {MOST:g} nats")
    deltas = {rule: rules.delta(losses, epsilon, rule) for rule in rules.RULES}
    return Prices(
        {
            **about,
            "epsilon": epsilon,
            "delta": {rule: cost if cost < 1 else None for rule, cost in deltas.items()},
        }
    )


@dataclass(frozen=True, repr=False)
class Shuffled(Printable):
    """Upper and lower bounds on the epsilon of shuffled reports."""

    def text(self, width: int = WIDTH) -> str:
        """Upper bounds are rounded up, lower bounds down."""
        data = self.data
        name = " ".join(
            [data["randomizer"], *(f"{key}={value}" for key, value in data["parameters"].items())]
        )
        head = (
            f"{name}: {data['clients']:,} shuffled reports of epsilon {data['epsilon']:.6g} "
            f"each, delta {data['delta']:g}"
        )
        rows = [
            (f"at most: {rule}", SHUFFLE_RULES[rule], bound(most, True))
            for rule, most in data["upper"].items()
        ]
        rows += [
            (
                f"at least: {rule}",
                SHUFFLE_RULES.get(rule, "the worst data set"),
                bound(least, False),
            )
            for rule, least in data["lower"].items()
        ]
        verdict = (
            "The epsilon of the worst data set is known from both sides."
            if data["exact"]
            else "The epsilon of the worst data set lies between the two."
        )
        trust = (
            "This holds if all clients answer and the shuffler keeps the senders secret. From the "
            "shuffler itself, only its own epsilon protects a report."
        )
        return "\n\n".join(
            [
                paragraph(head, width, "  "),
                table(("epsilon", "by", "nats"), rows, width),
                paragraph(f"{verdict} {trust}", width, "  "),
            ]
        )


@by_name
def shuffled(
    name: str,
    *,
    clients: int,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    together: float | None = None,
    **parameters: Parameter,
) -> Shuffled:
    """The epsilon of `clients` shuffled reports of a randomizer beside `delta`, by every rule.
    Raises InputError or RefusedError.

    With `together`, an epsilon after shuffling, `epsilon` is the largest one of a report for which
    this is proved.
    """
    return behind_shuffler(name, parameters, clients, epsilon, delta, together)


def behind_shuffler(
    name: str,
    parameters: Mapping[str, Parameter],
    clients: int,
    epsilon: float,
    delta: float,
    together: float | None,
) -> Shuffled:
    """`price` for a notebook, with parameters of any name."""
    if together is not None:
        epsilon = largest_local(
            lambda local: built(name, local, parameters), clients, together, delta
        )
    bounds = amplified(built(name, epsilon, parameters), clients, delta)
    about = {
        "randomizer": name,
        "parameters": dict(parameters),
        "epsilon": epsilon,
        "clients": clients,
        "delta": delta,
    }
    return Shuffled(
        {
            **about,
            "upper": bounds.uppers,
            "lower": bounds.lowers,
            "least": bounds.lower,
            "most": bounds.upper,
            "exact": bounds.exact,
        }
    )


@dataclass(frozen=True, repr=False)
class Mixed(Tabular):
    """Shares with their 95 % intervals, and the epsilon of all messages together."""

    def frame(self) -> Mapping[str, list[Any]]:
        """The estimates: label, estimate, standard_error, low, high, truth."""
        return framed(self.data["result"])

    def draw(self, path: Path, drawing: "Drawing") -> None:
        from local_dp.experiments.lab.figures import plot_estimates

        title = (
            f"{self.data['protocol']} behind a shuffler, epsilon {self.data['epsilon']:g}, "
            f"{self.data['clients']:,} clients; {STAMP}"
        )
        plot_estimates(drawn_rows(self.data, title, "shuffled"), path, drawing)

    def text(self, width: int = WIDTH) -> str:
        data = self.data
        head = (
            f"{data['protocol']} behind a shuffler, blanket messages, {number(data['clients'])} "
            f"clients; {data['stamp']}, seed {data['seed']}"
        )
        cost = (
            f"{number(data['messages_each'])} messages from each client on average; true error "
            f"{number(data['result']['true_error'])}"
        )
        loss = (
            f"All messages together have epsilon {bound(data['upper'], True)} (at least "
            f"{bound(data['lower'], False)}) at delta {number(data['delta'])}, for any data, if "
            "all clients answer and the shuffler keeps the senders secret. The shuffler itself "
            "sees the true symbols."
        )
        return "\n\n".join(
            [
                paragraph(head, width),
                result_table(data["result"], width),
                f"{paragraph(cost, width)}\n{paragraph(loss, width)}",
            ]
        )


@by_name
def mix(
    task: str | LocalProtocol[Any],
    table: Table | None = None,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    clients: int | None = None,
    seed: int | None = None,
    csv: str = "",
    dates: Dates = None,
    **settings: Any,
) -> Mixed:
    """Simulates clients that send their symbol among blanket messages through a shuffler:
    `mix("frequency", table, column="colour", labels=("red", "blue"))`.

    `task` is a protocol of shares, such as frequency or crosstab, by name with its parameters as
    `settings`, or as an object. All messages together are (epsilon, delta)-private, exactly and for
    every data set; the shuffler itself sees the symbols. Raises InputError.
    """
    protocol = protocol_of(task, settings, ("clients", "epsilon", "seed"))
    if not isinstance(protocol, OfShares):
        raise InputError(
            f"{protocol.name} estimates no shares of symbols, which blanket messages are for; "
            "`local-dp mix` lists the protocols that do"
        )
    if protocol.excluded:
        raise InputError(
            f"{protocol.name} among those present is a quotient of shares, which has no interval "
            "here; use missing=category"
        )
    of_table, records = with_table(protocol, table, csv, dates)
    seed = Randomness.choose(seed, private=False).seed
    if records is None:
        population = of_table.synthetic(10_000 if clients is None else clients, seed)
    else:
        population = sample_rows(records, len(records) if clients is None else clients, seed)
    assert isinstance(of_table, OfShares)
    return _mixed(of_table, population, Target(population.size, epsilon, delta), seed)


def _mixed(protocol: OfShares[Any], population: Population, target: Target, seed: int) -> Mixed:
    """The shares of this population, from blanket messages."""
    if isinstance(protocol, Shares):
        protocol = protocol.of_population
    histogram = multi_message(protocol.query.domain.size, target)
    counts = histogram.gather(protocol.query, population, KeyedNoise(seed))
    result = protocol.of_shares(histogram.estimate(counts))
    least, most = histogram.epsilon(population.size, target.delta)
    parameters = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(protocol).items()
    }
    truth = {
        "truth": plain(protocol.truth(population)),
        "true_error": protocol.true_error(result, population),
    }
    return Mixed(
        {
            "protocol": protocol.name,
            **asdict(target),
            "upper": min(most, target.epsilon),
            "lower": least,
            "messages_each": histogram.messages_each,
            "blanket": {"k": histogram.k, "weight": histogram.weight, "tries": histogram.tries},
            "parameters": parameters,
            "result": {**described(protocol, result), **truth},
            "seed": seed,
            "stamp": STAMP,
        }
    )


@dataclass(frozen=True, repr=False)
class Spending(Printable):
    """A budget, its charges, and the rest."""

    def text(self, width: int = WIDTH) -> str:
        charges = [
            (
                charge["at"],
                charge["what"],
                number(charge["epsilon"], 0.0),
                number(charge["delta"], 0.0),
            )
            for charge in self.data["charges"]
        ]
        total, left = (loss_text(self.data[name]) for name in ("budget", "left"))
        rows = [table(("when", "what", "epsilon", "delta"), charges, width)] if charges else []
        return "\n\n".join(
            (paragraph(f"{self.data['file']}: a budget of {total}; {left} is left", width), *rows)
        )


@dataclass(frozen=True, repr=False)
class Spent(Printable):
    """The spent budget of a store, by run and by label, and the rest for life; with several
    clients, of the one that has spent most."""

    def text(self, width: int = WIDTH) -> str:
        data = self.data
        line = (
            f"{data['file']}: epsilon {number(data['spent'], 0.0)} of "
            f"{number(data['lifetime'], 0.0)} spent for life; {number(data['left'], 0.0)} is left"
        )
        runs = [
            (each["run"], number(each["epsilon"], 0.0), str(each["rounds"]))
            for each in data["runs"]
        ]
        labels = [
            (each["label"], each["run"], number(each["epsilon"], 0.0)) for each in data["labels"]
        ]
        tables = (
            table(names, rows, width)
            for names, rows in (
                (("run", "epsilon", "rounds"), runs),
                (("label", "in run", "epsilon"), labels),
            )
            if rows
        )
        return "\n\n".join((paragraph(line, width), *tables))


@by_name
def budget(
    file: str | Path, *, epsilon: float | None = None, delta: float | None = None
) -> Spending | Spent:
    """Makes a new budget in `file` if epsilon is given, pure without a delta; else shows a budget,
    or the store of a client. Raises InputError."""
    if epsilon is None and delta is None and _is_store(Path(file)):
        return _store_account(Path(file))
    ledger = KeptBudget(Path(file))
    if epsilon is not None:
        ledger = KeptBudget.create(
            Path(file),
            Pure(nano_epsilon(epsilon)) if delta is None else approximate(epsilon, delta),
        )
    elif delta is not None:
        raise InputError(
            f"a new budget needs an epsilon beside delta {delta:g}; leave out delta to see a budget"
        )
    with reading(file, "its budget cannot be known, so release nothing more of its table"):
        standing = ledger.standing()
    charges = [
        {"at": each.at, "what": each.what, "neighbours": each.neighbours, **loss_data(each.loss)}
        for each in standing.charges
    ]
    return Spending(
        {
            "file": str(file),
            "budget": loss_data(standing.budget),
            "left": loss_data(standing.left),
            "charges": charges,
        }
    )


def _is_store(path: Path) -> bool:
    with suppress(OSError):
        return kind_of(path) == KIND
    return False


def _store_account(path: Path) -> Spent:
    store = SqliteStore(path, MAX_EPSILON)
    rounds, labels = Counter[str](), dict[str, dict[str, Any]]()
    for commit in store.commits():
        rounds[commit.run] += 1
        for charge in commit.charges:
            if charge.label:
                labels.setdefault(
                    charge.label,
                    {"label": charge.label, "run": commit.run, "epsilon": charge.nano / NANO},
                )
    ledger = store.ledger
    store.close()
    runs = [
        {"run": run, "epsilon": cost, "rounds": rounds[run]} for run, cost in ledger.runs.items()
    ]
    life, cost = ledger.lifetime / NANO, ledger.max_spent
    left = (ledger.lifetime - round(cost * NANO)) / NANO
    return Spent(
        {
            "file": str(path),
            "lifetime": life,
            "spent": cost,
            "left": left,
            "runs": runs,
            "labels": list(labels.values()),
        }
    )
