"""Sets and keys with numbers: the share of each item, and the mean of each key's numbers."""

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.tails import normal_quantile
from local_dp.checks import check_built, check_whole
from local_dp.errors import InputError
from local_dp.loss import nano_epsilon
from local_dp.oracles.local.asked import Local, ask_all
from local_dp.populations.finite import Finite, Population, weighted_records
from local_dp.protocols.local_protocol import (
    BETA,
    LocalProtocol,
    PlainData,
    describe_estimates,
    parameter,
    policy,
    target_error,
)
from local_dp.protocols.needs import Need
from local_dp.protocols.surveys.policies import Launch, ends_of
from local_dp.queries.members import Members
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.sets.padding_sampling import (
    MAX_ITEMS,
    MAX_VALUES,
    PCKV,
    PCKVUE,
    PaddingSampling,
)
from local_dp.records import Records
from local_dp.tallies import Estimate, Possible, Tally

STEPS = 1 << 10  # of a number in a row


@dataclass(frozen=True)
class Holdings:
    """The share of clients with each item, and the mean number of each key, if there are
    numbers."""

    estimates: tuple[Estimate, ...]


@dataclass(frozen=True)
class Sets(LocalProtocol[Holdings]):
    """Estimates the share of people whose set has each of the `labels`; with `low` and `high` also
    the mean of each key's numbers.

    A text lists the members between ";": "a;b;c", or with numbers "a=0.3;b=-1". A client reports
    one member, after its set is filled up with dummies to `limit` members. Of a larger set each
    counts limit / its size: the estimate is then too low. Privacy: every report is epsilon-locally
    private. Utility: unbiased where no set is larger; the variance of a share is that of the
    randomizer. `tolerance` sets the default number of clients: all shares within it with
    probability 95 %. Cost: log2 of the labels, or above 12 labels a byte a label; one round.
    """

    name = "sets"
    summary = "Estimates the share of each item in sets, or of each key"
    source = "Wang, Li, Jha 2018 (sets); Gu, Li, Cheng, Xiong, Cao 2020 (keys with numbers)"
    example = "--records apps.csv --column apps --labels 'mail;maps;chat' --limit 3"
    column: str = parameter("items", "Column of texts such as a;b;c", of_table=True)
    labels: tuple[str, ...] = parameter((), "The public labels of items or keys")
    limit: int = parameter(2, "Most members of a set that count in full")
    low: float | None = parameter(None, "Public least number of a key, if keys have numbers")
    high: float | None = parameter(None, "Public greatest number of a key")
    missing: str = policy("missing sets", empty="they count as empty")
    other: str = policy("members that are not listed", exclude="they are left out of their sets")
    larger: str = policy("sets above the limit", sample="their members count less")
    k: int = parameter(6, "Without a table: number of labels")
    randomizer: str = parameter("best", "Randomizer of sets; best: the one of least variance")
    tolerance: float = target_error(0.05)

    def check(self) -> None:
        check_whole("limit", self.limit, 1, len(self.items))
        check_built(*self.queries.values())

    @property
    def items(self) -> tuple[str, ...]:
        return self.labels or tuple(map(str, range(self.k)))

    @property
    def has_numbers(self) -> bool:
        return self.low is not None or self.high is not None

    @cached_property
    def queries(self) -> dict[str, Members]:
        """The question in the form of each kind of randomizer, by the name of a built-in one."""
        k, bounds = len(self.items), ends_of(self.low, self.high)
        forms = {PCKVUE.name: (STEPS if self.has_numbers else 1, 1)}
        if not self.has_numbers and k <= MAX_ITEMS:
            forms[PaddingSampling.name] = (0, 0)
        if (steps := int(MAX_VALUES ** (1 / k)) - 2) >= 1:
            forms[PCKV.name] = (steps, 0)
        return {
            name: Members(self.column, self.items, *bounds, *form) for name, form in forms.items()
        }

    @property
    def need(self) -> Need:
        first, *others = (
            Need(
                query.domain,
                estimates=RANDOMIZERS[name].estimates,
                own=(("k", len(self.items)), ("limit", self.limit), ("steps", query.steps)),
            )
            for name, query in self.queries.items()
        )
        return replace(first, others=tuple(others))

    def choice(self, epsilon: float) -> tuple[Members, Randomizer, float]:
        """Question and randomizer, and n times the variance of a share of a half."""
        nano_epsilon(epsilon)  # a wrong epsilon is the input's fault, not the randomizer's
        names = self.queries if self.randomizer == "best" else [self.randomizer]
        choices = []
        for name in names:
            made = self.need.randomizer(name, epsilon, self.name)
            query = next(each for each in self.queries.values() if each.domain == made.domain)
            places = query(Records({self.column: np.array(["", self.items[0]])}))
            values = query.discretize(places, np.zeros(2))
            variance = math.inf  # of one without a form
            with suppress(NotImplementedError):
                variance = float(made.variance(values, np.array([0.5, 0.5]))[0])
            choices.append((query, made, variance))
        return min(choices, key=lambda choice: choice[2])

    def clients(self, epsilon: float) -> int:
        z = normal_quantile(BETA / (2 * len(self.items)))
        variance = self.choice(epsilon)[2]
        if math.isinf(variance):
            variance = replace(self, randomizer="best").choice(epsilon)[2]
        return math.ceil(variance * (z / self.tolerance) ** 2)

    def algorithm(self, epsilon: float, clients: int) -> Local[Holdings]:
        query, made, _ = self.choice(epsilon)

        def read(tally: Tally) -> Holdings:
            every, k = made.estimate(tally), len(self.items)
            shares = Estimate(every.value[:k], every.standard_error[:k], every.n, every.ends)
            if not (self.has_numbers and isinstance(made, PCKV | PCKVUE)):
                return Holdings((shares,))
            low, high = ends_of(self.low, self.high)  # of -1 and 1
            return Holdings((shares, made.means(tally).on_scale((low + high) / 2, high)))

        return ask_all(query, made, clients, read)

    def possible(self, result: Holdings) -> Possible | list[Possible]:
        shares = Possible(0.0, 1.0)
        return [shares, Possible(*ends_of(self.low, self.high))] if self.has_numbers else shares

    def synthetic(self, clients: int, seed: int) -> Population:
        """Sets of `limit` neighbouring items, or fewer: the j-th has weight 1 / j, and numbers rise
        with the item."""
        self.check_without_table("labels", self.labels)
        low, high = ends_of(self.low, self.high)
        k, each = self.k, list(self.items)
        if self.has_numbers:
            each = [f"{item}={low + (high - low) * j / k:.6f}" for j, item in enumerate(each)]
        texts = [";".join(each[j : j + self.limit]) for j in range(k)]
        weights = 1 / np.arange(1, k + 1)
        return Finite(Records({self.column: np.array(texts)}), weights, clients, seed)

    def for_table(self, table: Launch) -> Self:
        table.labels(self.column, self.labels, None)
        if table.types[self.column].dtype.kind != "U":
            raise InputError(f"column {self.column!r} is no text; write its sets as a;b;c")
        query = self.queries[PCKVUE.name]
        table.refuse_missing(self.missing, self.column, "missing=empty (an empty set)")
        table.refuse(
            self.other,
            lambda part: query.listed(part) > (query.digits(part) > 0).sum(axis=1),
            f"{self.column!r} lists a member that is no label, or one twice",
            "other=exclude (such members are left out), or list all labels",
        )
        table.refuse(
            self.larger,
            lambda part: (query.digits(part) > 0).sum(axis=1) > self.limit,
            f"{self.column!r} has more than {self.limit} members",
            "larger=sample (each then counts less), or a larger limit",
        )
        return self

    def values(self, result: Holdings) -> Floats:
        return np.concatenate([each.value for each in result.estimates])

    def describe(self, result: Holdings) -> PlainData:
        means = [f"mean of {item}" for item in self.items]
        return {
            "column": self.column,
            "labels": [*self.items, *means][: len(self.values(result))],
            **describe_estimates(result.estimates),
        }

    def truth(self, population: Population) -> Floats:
        """The shares, and with numbers the means, in the distribution that the clients are drawn
        from."""
        records, weights = weighted_records(population)
        query = self.queries[PCKVUE.name]
        digits = query.digits(records)
        shares = weights @ (digits > 0) / weights.sum()
        if not self.has_numbers:
            return np.asarray(shares)
        with np.errstate(all="ignore"):
            present = weights @ (digits > 0)
            means = weights @ np.maximum(digits - 1, 0) / present / query.steps
        low, high = ends_of(self.low, self.high)
        return np.concatenate([shares, low + (high - low) * means])
