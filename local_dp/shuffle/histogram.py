"""Histograms from shuffled messages: one randomized report a client, or the true symbol among
blanket messages.

Both are unbiased. The first has some privacy against the shuffler; the second has none: a client's
own messages show its symbol.
"""

import math
from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Counts, Ints, Words
from local_dp.checks import check_share, check_whole
from local_dp.domains import symbols
from local_dp.errors import InputError
from local_dp.loss import nano_epsilon
from local_dp.noise import Draw, Noise
from local_dp.populations.finite import Population
from local_dp.queries.query import Query
from local_dp.randomizers.frequencies.base import FrequencyOracle
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.records import chunks
from local_dp.shuffle.accountant import largest_local
from local_dp.shuffle.pair import Pair, delta_at_most
from local_dp.tallies import Estimate, Tally

WORD_BITS = 32
MAX_TRIES = 1 << 12
_WORDS = 1 << 18  # at a time


@dataclass(frozen=True)
class Target:
    """The allowed joint loss of the shuffled messages of all clients: epsilon in nats, and
    delta."""

    clients: int
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_whole("clients", self.clients, 2, 10**7)
        nano_epsilon(self.epsilon)
        check_share("delta", self.delta)


def single_message(name: str, k: int, target: Target) -> Randomizer:
    """The frequency oracle `name` on k symbols at the largest local epsilon whose shuffled reports
    keep to the target.

    Utility: the oracle's own, at that epsilon: its estimate needs the counts of reports alone.
    Raises InputError if `name` estimates no frequencies.
    """
    kind = RANDOMIZERS[name]
    if not issubclass(kind, FrequencyOracle):
        raise InputError(f"{name} estimates no frequencies; take grr, hadamard, sue or oue")

    def at(local: float) -> FrequencyOracle:
        return kind(local, k=k)  # type: ignore[call-arg]

    return at(largest_local(at, target.clients, target.epsilon, target.delta))


@dataclass(frozen=True)
class BlanketHistogram:
    """Each client sends its symbol and, in each of `tries` turns, a blanket message of each of the
    k symbols with probability weight / 2^32.

    Privacy: the server sees the counts of messages. The others' symbols move them by a known
    vector, so delta is the same for all data sets. It is that of (B, B') + (1, 0) against (B, B') +
    (0, 1), two counts of the same `clients` `tries` turns: exact. There is no privacy from the
    shuffler, or if nobody else sends blankets. Utility: unbiased; each frequency has variance tries
    q (1 - q) / n, q = weight / 2^32, whatever the data. Cost: 1 + tries k q messages of log2 k
    bits. Source: the blanket of Balle, Bell, Gascon, Nissim 2019, in messages of its own as in
    Cheu, Zhilyaev 2022.
    """

    k: int
    weight: int
    tries: int = 1

    def __post_init__(self) -> None:
        symbols(self.k)
        check_whole("weight", self.weight, 1, (1 << WORD_BITS) // self.k)
        check_whole("tries", self.tries, 1, MAX_TRIES)

    @property
    def share(self) -> float:
        """The probability of a blanket message of one symbol in one turn."""
        return math.ldexp(self.weight, -WORD_BITS)

    @property
    def messages_each(self) -> float:
        """The mean number of messages of a client."""
        return 1 + self.tries * self.k * self.share

    def respond(self, values: Ints, words: Words) -> Counts:
        """All messages of clients with `values`, shape (n,), from 32-bit words, shape (n, tries),
        in an order that a shuffler must end."""
        blanket = words.astype(np.int64).ravel() // self.weight
        return np.concatenate([values.astype(np.int64), blanket[blanket < self.k]])

    def tally(self, messages: Ints, clients: int) -> Tally:
        return Tally(np.bincount(messages, minlength=self.k).astype(np.int64, copy=False), clients)

    def draw_tally(self, values: Counts, generator: np.random.Generator) -> Tally:
        """A tally of so many clients with each symbol, from its law."""
        law = np.append(np.full(self.k, self.share), max(0.0, 1 - self.k * self.share))
        clients = int(values.sum())
        return Tally(values + generator.multinomial(clients * self.tries, law)[:-1], clients)

    def estimate(self, tally: Tally) -> Estimate:
        """The k frequencies, unbiased, shape (k,); of the law that the clients were drawn from, the
        variance of f is (f (1 - f) + tries q (1 - q)) / n."""
        value = tally.counts / tally.answered - self.tries * self.share
        # the two values that a report of this variance would take
        apart = math.sqrt(1 + 4 * self.variance(1))
        return Estimate.between(((1 - apart) / 2, (1 + apart) / 2), value, tally.n)

    def gather(self, query: Query, population: Population, noise: Noise) -> Tally:
        """The tally of all messages of a population, a chunk of clients at a time, so that memory
        does not grow with the population."""
        tally = Tally(np.zeros(self.k, dtype=np.int64), 0)
        for start, stop in chunks(0, population.size, max(1, _WORDS // self.tries)):
            words = noise.words(Draw(1), start * self.tries, stop * self.tries, WORD_BITS)
            tally += self.tally(
                self.respond(population.values(query, start, stop), words), stop - start
            )
        return tally

    def variance(self, clients: int) -> float:
        """Of one frequency, given the clients' values."""
        return self.tries * self.share * (1 - self.share) / clients

    @property
    def pair(self) -> Pair:
        """The two counts that distinguish one client's symbols, against one turn."""
        rest = 1 - 2 * self.share
        return Pair(
            np.array([1.0, 0.0, 0.0]),
            np.array([0.0, 1.0, 0.0]),
            np.array([self.share, self.share, rest]),
        )

    def epsilon(self, clients: int, delta: float) -> tuple[float, float]:
        """Bounds on the least epsilon (nats) beside `delta`; infinity above 24."""
        pair, turns = self.pair, clients * self.tries
        most = pair.epsilon_at_most(turns + 1, delta, 24.0)
        return pair.epsilon_at_least(
            [(pair.others, turns)], delta, 24.0
        ), most if most < 24 else math.inf


def multi_message(k: int, target: Target) -> BlanketHistogram:
    """The fewest blanket messages that keep to the target. Raises InputError if 4096 turns for each
    client are not enough."""
    full, tries = (1 << WORD_BITS) // k, 1
    while tries <= MAX_TRIES and not _keeps(BlanketHistogram(k, full, tries), target):
        tries *= 2
    if tries > MAX_TRIES:
        raise InputError(
            f"{target.clients} clients are too few for {k} symbols at epsilon {target.epsilon:g}; "
            "ask more of them, or allow a larger epsilon"
        )
    low, high = 0, tries * full
    while high - low > max(1, high >> 10):
        middle = (low + high) // 2
        low, high = (low, middle) if _keeps(_spread(k, middle, full), target) else (middle, high)
    return _spread(k, high, full)


def _spread(k: int, weight: int, full: int) -> BlanketHistogram:
    """This weight over as few turns as possible."""
    tries = -(-weight // full)
    return BlanketHistogram(k, -(-weight // tries), tries)


def _keeps(histogram: BlanketHistogram, target: Target) -> bool:
    return (
        delta_at_most(histogram.pair, target.clients * histogram.tries + 1, target.epsilon)
        <= target.delta
    )
