"""The loss of shuffled reports: bounds on epsilon, the exact one where it is proved over all data
sets, and that of a few clients by enumeration."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement, permutations, product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from local_dp.arrays import Floats, Ints
from local_dp.checks import check_share, check_whole
from local_dp.errors import InputError
from local_dp.loss import nano_epsilon
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.places import BitVector
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.with_coin import without_coin
from local_dp.shuffle.binary import Bits, worst
from local_dp.shuffle.pair import Pair, delta_at_most

MAX_VALUES = 64  # of which all pairs are looked at
_SOME = 9  # values of a larger domain
_MAX_KINDS = 32
_MAX_ENTRIES = 1 << 24
_MAX_PLACES = 4


@dataclass(frozen=True)
class Laws:
    """The law of a report for each value: `rows`, shape (values, reports); `complete` if these are
    all values.

    A report is the public coin's cell together with the answer: behind a shuffler a client draws
    its own cell and sends it along.
    """

    rows: Floats
    complete: bool = True

    @classmethod
    def of(cls, randomizer: Randomizer) -> "Laws":
        """Of a finite channel; of a vector of bits, at places where two values differ. Raises
        InputError for others and for too large a table."""
        channel = without_coin(randomizer)
        if isinstance(channel, FiniteChannel):
            return _of_channel(channel)
        if isinstance(channel, BitVector):
            return _of_bits(channel)
        raise InputError(
            f"{randomizer.name} is no finite channel: its shuffled reports cannot be accounted "
            "for; take grr, hadamard, sue, oue or binary-rr"
        )

    @property
    def bits(self) -> Bits | None:
        """The two extreme laws of a one-bit report; every other law is a mixture of them."""
        shares = self.rows[:, 1]
        return Bits(float(shares.max()), float(shares.min())) if self.rows.shape[1] == 2 else None

    @cached_property
    def blanket(self) -> Floats:
        """The part of a law that does not depend on the value, shape (reports,). Source: Balle,
        Bell, Gascon, Nissim 2019."""
        return np.asarray(self.rows.min(axis=0))

    @property
    def few(self) -> bool:
        return (
            self.complete
            and len(self.rows) <= MAX_VALUES
            and len(self.against_blanket) <= _MAX_KINDS
        )

    @property
    def epsilon(self) -> float:
        """The loss of one report of a known sender, in nats, over the values in `rows`."""
        support = self.blanket > 0
        growth = (self.rows.max(axis=0)[support] / self.blanket[support]).max()
        return math.log(float(growth)) * (1 + 1e-15) + 1e-15

    @cached_property
    def against_blanket(self) -> list[Pair]:
        """Every pair of values against the blanket, one of each kind, the most different pair
        first."""
        return _kinds(
            Pair(self.rows[one], self.rows[other], self.blanket)
            for one in range(len(self.rows))
            for other in range(one + 1, len(self.rows))
        )

    @cached_property
    def against_one_value(self) -> list[Pair]:
        """The worst pair of values against each data set whose others share one value, one of each
        kind, the worst first."""
        return _kinds(
            Pair(self.against_blanket[0].first, self.against_blanket[0].second, row)
            for row in self.rows
        )


def _kinds(pairs: Iterator[Pair]) -> list[Pair]:
    """One pair of each kind: reports may be renamed."""
    kinds = {pair.kind: pair for pair in pairs}
    return sorted(kinds.values(), key=lambda pair: -pair.apart)


def _of_channel(randomizer: FiniteChannel) -> Laws:
    """All values of a small domain, or nine values of a large one."""
    values = randomizer.domain.values()
    complete = len(values) <= MAX_VALUES or randomizer.alphabet * randomizer.cells == 2
    some = values if complete else values[np.linspace(0, len(values) - 1, _SOME).astype(np.int64)]
    reports, cells = randomizer.alphabet, randomizer.cells
    if len(some) * reports * cells > _MAX_ENTRIES:
        raise InputError(
            f"{randomizer.name}: {reports * cells} kinds of report are too many to account for; "
            "take a smaller domain"
        )
    kinds = np.arange(reports)[None, None, :]
    coins = np.arange(cells)[None, :, None]
    table = randomizer.weight(kinds, some[:, None, None], coins)
    laws = np.broadcast_to(table, (len(some), cells, reports))
    return Laws(laws.reshape(len(some), -1) / (randomizer.total * cells), complete)


def _of_bits(randomizer: BitVector) -> Laws:
    """The first values, at bits where the first two differ: a server sees no less."""
    code = randomizer.code[:_SOME]
    rows = np.ones((len(code), 1))
    for place in np.flatnonzero(code[0] != code[1])[:_MAX_PLACES]:
        one = np.array(randomizer.ones)[code[:, place]][:, None] / randomizer.total
        rows = np.concatenate([rows * (1 - one), rows * one], axis=1)
    return Laws(rows, complete=False)


MAX_CLIENTS = 10**7
MAX_EXACT = 10**6


@dataclass(frozen=True)
class Amplified:
    """Bounds on the epsilon (nats) of shuffled reports beside one delta, by name; `exact`: the best
    two enclose the worst data set's to one part in 10^4."""

    uppers: dict[str, float]
    lowers: dict[str, float]
    exact: bool

    @property
    def upper(self) -> float:
        return min(self.uppers.values())

    @property
    def lower(self) -> float:
        return max(self.lowers.values())


def closed_form(local: float, clients: int, delta: float) -> float:
    """ln(1 + (E - 1)/(E + 1) (8 sqrt(E ln(4/delta)/n) + 8 E/n)), E = e^local, but at most `local`,
    which always holds.

    For local <= ln(n / (16 ln(2/delta))). Source: Feldman, McMillan, Talwar 2021, Theorem 3.1.
    """
    if local > math.log(clients / (16 * math.log(2 / delta))):
        return local
    growth = math.exp(local)
    rest = 8 * growth
    noise = 8 * math.sqrt(growth * math.log(4 / delta) / clients) + rest / clients
    return min(local, math.log1p((growth - 1) / (growth + 1) * noise) * (1 + 1e-12))


def cloned(local: float, share: float) -> Pair:
    """Any randomizer of loss `local`; each other client is, with probability `share`, a clone of
    the client at one of its two values."""
    truth = 1 / (1 + math.exp(-local))
    other = 1 - truth
    clone = share / 2
    return Pair(np.array([truth, other]), np.array([other, truth]), np.array([clone, clone]))


def clones(local: float) -> Pair:
    """Others are clones with probability e^-local. Source: Feldman, McMillan, Talwar 2021, Theorem
    3.2."""
    return cloned(local, math.exp(-local))


def variation_ratio(local: float) -> Pair:
    """Others are clones with probability 2 / (e^local + 1): the largest total variation of this
    loss, (e^local - 1) / (e^local + 1).

    Source: Feldman, McMillan, Talwar 2022; Wang et al. 2023. For a smaller total variation their
    formula is not used: see docs/shuffle.md.
    """
    return cloned(local, 2 / (math.exp(local) + 1))


def amplified(randomizer: Randomizer, clients: int, delta: float) -> Amplified:
    """All bounds for n `clients` that send one report each, beside `delta`. Raises InputError for a
    number out of range."""
    laws = Laws.of(randomizer)
    return accounted(laws, local_loss(randomizer, laws), clients, delta)


def accounted(laws: Laws, local: float, clients: int, delta: float) -> Amplified:
    """The same for laws whose loss is `local` nats."""
    uppers = accounted_for_any(local, clients, delta).uppers
    if laws.bits and clients <= MAX_EXACT:
        exact = worst(laws.bits, clients, delta)
        return Amplified(
            {**uppers, "all data sets": exact.most},
            {f"{exact.ones:,} of the others at one end": exact.least},
            True,
        )
    if laws.few:
        uppers["blanket"] = blanket_epsilon(laws, clients, delta, local)
    alike = (
        pair.epsilon_at_least([(pair.others, clients - 1)], delta, local)
        for pair in laws.against_one_value[:2]
    )
    lowers = {"others hold one value": max(alike)}
    least = max(lowers.values())
    most = min(uppers.values())
    return Amplified(uppers, lowers, most - least <= 1e-5 * most)


def accounted_for_any(local: float, clients: int, delta: float) -> Amplified:
    """Upper bounds for every randomizer of this pure loss."""
    check_clients(clients, delta)
    clone_pair = clones(local)
    ratio_pair = variation_ratio(local)
    uppers = {
        "no shuffler": local,
        "closed form": closed_form(local, clients, delta),
        "clones": clone_pair.epsilon_at_most(clients, delta, local),
        "variation ratio": ratio_pair.epsilon_at_most(clients, delta, local),
    }
    return Amplified(uppers, {"nothing": 0.0}, False)


def check_clients(clients: int, delta: float) -> None:
    check_whole("clients", clients, 2, MAX_CLIENTS)
    check_share("delta", delta)


def local_loss(randomizer: Randomizer, laws: Laws) -> float:
    """The loss of one report, in nats: exact where all values are listed."""
    return laws.epsilon if laws.complete else randomizer.nano / 1e9


def blanket_epsilon(laws: Laws, clients: int, delta: float, most: float) -> float:
    """An upper bound for every data set: each other client sends the blanket at least, and the
    server is assumed to know the rest."""
    first, *others = laws.against_blanket
    epsilon = first.epsilon_at_most(clients, delta, most)
    for pair in others:
        if max(delta_at_most(way, clients, epsilon) for way in (pair, pair.reversed)) > delta:
            epsilon = max(epsilon, pair.epsilon_at_most(clients, delta, most))
    return epsilon


def holds(randomizer: Randomizer, clients: int, epsilon: float, delta: float) -> bool:
    """True if n shuffled reports are proved to be (epsilon, delta)-private by the best available
    bound."""
    laws = Laws.of(randomizer)
    local = local_loss(randomizer, laws)
    if local <= epsilon:
        return True
    if laws.bits and clients <= MAX_EXACT:
        return worst(laws.bits, clients, delta).most <= epsilon
    pairs = laws.against_blanket if laws.few else [variation_ratio(local)]
    return all(
        delta_at_most(way, clients, epsilon) <= delta
        for pair in pairs
        for way in (pair, pair.reversed)
    )


def largest_local(
    make: Callable[[float], Randomizer], clients: int, epsilon: float, delta: float
) -> float:
    """The largest local epsilon (nats, to 1e-4 of it, 20 at most) at which the shuffled reports of
    `make(local)` are (epsilon, delta)-private."""
    check_clients(clients, delta)
    nano_epsilon(epsilon)
    low = epsilon
    high = min(20.0, 2 * epsilon + 1)
    while high < 20 and holds(make(high), clients, epsilon, delta):
        low, high = high, min(20.0, 2 * high)
    while high - low > 1e-4 * low:
        middle = (low + high) / 2
        low, high = (
            (middle, high) if holds(make(middle), clients, epsilon, delta) else (low, middle)
        )
    return low


Row: TypeAlias = tuple[Fraction, ...]
Exact: TypeAlias = NDArray[Any]
"""A law in whole numbers of any size, over the multisets of reports in lexicographic order."""


def rows_of(randomizer: FiniteChannel) -> list[Row]:
    """The law of a value's report: its coin's cell with the answer."""
    channels = [randomizer.channel(cell) for cell in range(randomizer.cells)]
    return [
        tuple(
            Fraction(int(weight), randomizer.total * randomizer.cells)
            for channel in channels
            for weight in channel[v]
        )
        for v in range(len(channels[0]))
    ]


def worst_delta(rows: Sequence[Row], clients: int, growths: Sequence[Fraction]) -> list[Fraction]:
    """The least delta beside each e^epsilon over all neighbouring data sets: multisets of the
    others' values, pairs of values; in whole numbers."""
    whole = math.lcm(*(share.denominator for row in rows for share in row))
    weights = [[int(share * whole) for share in row] for row in rows]
    worst = [0] * len(growths)
    for law in _of_others(weights, np.array([1], dtype=object), clients - 1, clients - 1, 0):
        laws = [_one_more(law, row, clients - 1) for row in weights]
        for (first, other), (place, growth) in product(permutations(laws, 2), enumerate(growths)):
            over = first * growth.denominator - other * growth.numerator
            worst[place] = max(worst[place], over[over > 0].sum())
    return [
        Fraction(least, growth.denominator * whole**clients)
        for least, growth in zip(worst, growths, strict=True)
    ]


def _of_others(
    weights: Sequence[Sequence[int]], law: Exact, others: int, left: int, value: int
) -> Iterator[Exact]:
    """The law of each data set of the others: `left` of them still come, none with a value below
    `value`."""
    if not left:
        yield law
        return
    for each in range(value, len(weights)):
        yield from _of_others(
            weights, _one_more(law, weights[each], others - left), others, left - 1, each
        )


def _one_more(law: Exact, row: Sequence[int], clients: int) -> Exact:
    """The law with one more client."""
    further = _further(len(row), clients)
    longer: Exact = np.zeros(math.comb(clients + len(row), clients + 1), dtype=object)
    for report, weight in enumerate(row):
        longer[further[:, report]] += law * weight
    return longer


@lru_cache(maxsize=64)
def _further(reports: int, clients: int) -> Ints:
    """The place of each multiset of so many reports, with one more of each kind, among the
    multisets of one more; shape (multisets, kinds)."""
    places = {
        multiset: place
        for place, multiset in enumerate(combinations_with_replacement(range(reports), clients + 1))
    }
    multisets = combinations_with_replacement(range(reports), clients)
    return np.array(
        [
            [places[tuple(sorted((*multiset, report)))] for report in range(reports)]
            for multiset in multisets
        ]
    )
