"""Tracing: which records are in the table, by attribute means or by synthetic rows."""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from local_dp.arrays import Bools, Floats, Words
from local_dp.checks import check_share, check_whole
from local_dp.curator.marginals.base import BinaryTable
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.oracles.statistical.oracles import StatisticalQuery
from local_dp.queries.encoded import Bit

FAILURE = 0.01  # Pr[anybody innocent is accused]
_STEPS = np.geomspace(0.01, 40.0, 64)  # where Chernoff's bound is tried, in standard deviations


@dataclass(frozen=True, eq=False)
class Traced:
    """The scores of the suspects, shape (m,), in standard deviations of an innocent's, and their `p_values` for being innocent."""

    scores: Floats
    p_values: Floats

    def accused(self, failure: float = FAILURE) -> Bools:
        """The suspects with a p-value below `failure` / m, shape (m,): no innocent is accused with probability 1 - `failure` or more (union bound)."""
        check_share("the probability of a false accusation", failure)
        return self.p_values < failure / len(self.p_values)


def tracing(shares: Floats, suspects: Bools, tolerance: float, *, rounded: bool = False) -> Nonadaptive[StatisticalQuery, float, Traced]:
    """The attack: asks for the mean of each of d bits and scores the suspects' rows, shape (m, d), against strangers, whose bit j is 1 with `shares`[j].

    The score is the sum over j of (x_j - p_j)(q_j - p_j) / (p_j (1 - p_j)). q are the answers or, with `rounded`, the nearer of 0 and 1.
    Members of n exactly answered rows stand out by sqrt(d / n) standard deviations. It runs on exact answers, a curator's, clients', pirates'.
    Source: Dwork, Smith, Steinke, Ullman, Vadhan 2015; lecture notes 5.2; scored against p rather than 1/2.
    """
    if suspects.ndim != 2 or suspects.shape[1:] != shares.shape or not (np.all(shares > 0) and np.all(shares < 1)):
        raise InputError(f"suspects of shape {suspects.shape} need as many shares as bits, strictly between 0 and 1; shares have shape {shares.shape}")
    queries = tuple(StatisticalQuery(Bit(number), tolerance) for number in range(len(shares)))

    def decode(answers: tuple[float, ...]) -> Traced:
        means = (np.array(answers) + 1) / 2
        return traced(shares, (means >= 0.5).astype(np.float64) if rounded else means, suspects)

    return Nonadaptive(queries, decode)


def traced(shares: Floats, means: Floats, suspects: Bools) -> Traced:
    """The scores and p-values, given the answers, shape (d,)."""
    weights = (means - shares) / (shares * (1 - shares))
    spread = np.sqrt(np.sum(weights**2 * shares * (1 - shares)))
    weights = weights / (spread or 1.0)
    scores: Floats = (suspects - shares) @ weights
    return Traced(scores, chernoff_p_values(scores, weights, shares))


def chernoff_p_values(scores: Floats, weights: Floats, shares: Floats) -> Floats:
    """A bound on Pr[a stranger scores as much], for each score: min over t of E[e^(t S)] e^(-t s), S = sum of w_j (X_j - p_j), X_j ~ Bernoulli(p_j), at most 1.

    A p-value for the actual p and w: a row that is independent of the weights given the shares has one below a with probability at most a.
    The weights may depend on the answers: an innocent's row had no part in them. Only the minimum over t is approximate, upwards.
    """
    steps = _STEPS[:, None] * weights
    growth = np.logaddexp(np.log1p(-shares) - steps * shares, np.log(shares) + steps * (1 - shares)).sum(axis=1)
    return np.asarray(np.exp(np.minimum(0.0, (growth[:, None] - _STEPS[:, None] * scores).min(axis=0))))


def traced_share(members: Floats, strangers: Floats, rate: float) -> float:
    """The share of the members who score above all but `rate` of the strangers: the true positive rate at that false positive rate."""
    check_share("the false positive rate", rate)
    return float(np.mean(members > np.quantile(strangers, 1 - rate)))


@dataclass(frozen=True)
class Signer:
    """Messages of `message` bits, each followed by its tag of `tag` bits: keyed BLAKE2b, cut.

    The query "does the row verify?" is 1 for every row of a signed table. Synthetic rows that answer it well mostly verify: each is copied or forged.
    A private mechanism copies a record with hardly more chance than it has without the record. A forgery takes 2^tag guesses or the key. So accurate
    synthetic data for a family with this query are hard to make, though its answers are easy. A row at random verifies with probability 2^-tag.
    Source: Dwork, Naor, Reingold, Rothblum, Vadhan 2009; Ullman, Vadhan 2011; lecture notes 6.3.
    """

    key: bytes
    message: int = 9
    tag: int = 8

    def __post_init__(self) -> None:
        check_whole("bits of a message", self.message, 1, 32)
        check_whole("bits of a tag", self.tag, 1, 32)
        if not 16 <= len(self.key) <= 64:
            raise InputError(f"the key has {len(self.key)} bytes; give 16 to 64")

    @property
    def d(self) -> int:
        """Bits of a row."""
        return self.message + self.tag

    def table(self, messages: Words) -> BinaryTable:
        """The signed messages: a row is the message in the low bits, the tag above them."""
        return BinaryTable(self.d, messages | self._tags(messages) << np.uint64(self.message))

    def verifies(self, rows: Words) -> Bools:
        """Which rows have the tag of their message."""
        messages = rows & np.uint64((1 << self.message) - 1)
        return np.asarray(rows >> np.uint64(self.message) == self._tags(messages))

    def _tags(self, messages: Words) -> Words:
        kinds, places = np.unique(messages, return_inverse=True)
        hashes = [blake2b(each.to_bytes(8, "little"), key=self.key, digest_size=8).digest() for each in kinds.tolist()]
        words = np.frombuffer(b"".join(hashes), dtype="<u8").astype(np.uint64) & np.uint64((1 << self.tag) - 1)
        return words[places]
