"""Attacks on accurate answers, each a non-adaptive statistical-query algorithm: reconstruct the
table, trace its records, and find the traitors of a word."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import TypeAlias

import numpy as np

from local_dp.arrays import Bools, Counts, Floats, Words
from local_dp.bounds.attacks import boneh_shaw_block
from local_dp.checks import check_share, check_whole
from local_dp.curator.marginals.base import BinaryTable
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.noise import keyed_generator
from local_dp.oracles.statistical.oracles import StatisticalQuery
from local_dp.queries.encoded import Bit
from local_dp.queries.subsets import Subset, encrypted
from local_dp.records import Records

Decoder: TypeAlias = Callable[[Floats, Floats], Floats]
"""From the subsets, shape (k, n), and their noisy sums, shape (k,), to a number in about [0, 1] for
each row, shape (n,)."""

MOST_ROWS = 12  # of a search through all 2^n tables
_CHUNK = 256


def reconstruction(
    subsets: Bools, tolerance: float, decoder: Decoder
) -> Nonadaptive[StatisticalQuery, float, Bools]:
    """The attack: asks how many secret bits are set in each subset, shape (k, n), and guesses all
    of them, shape (n,).

    It is an algorithm like any other: `run` applies it to exact, hostile and noisy expectations,
    `curated_from_sq` to a trusted curator, `from_own_bits` to the clients themselves. On the [-1,
    1] scale of a statistical query a tolerance tau is an error of n tau / 2 in the sum.
    """
    n = subsets.shape[1]
    check_whole("the number of rows", n, 1, 1 << 20)
    matrix = subsets.astype(np.float64)
    queries = tuple(StatisticalQuery(Subset.of(members), tolerance) for members in subsets)

    def decode(answers: tuple[float, ...]) -> Bools:
        return decoder(matrix, n * (np.array(answers) + 1) / 2) >= 0.5

    return Nonadaptive(queries, decode)


def random_subsets(k: int, n: int, generator: np.random.Generator) -> Bools:
    """k subsets, each row in each of them by a fair coin, shape (k, n)."""
    return generator.random((k, n)) < 0.5


def every_subset(n: int) -> Bools:
    """All 2^n subsets of n <= 12 rows, shape (2^n, n)."""
    check_whole("the number of rows", n, 1, MOST_ROWS)
    return (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(np.bool_)


def exhaustive(matrix: Floats, sums: Floats) -> Floats:
    """The table with the least largest error over the given sums, among all 2^n: Dinur and Nissim's
    exponential attack, n <= 12.

    Claim: asked `every_subset`, with largest error E it has at most 4 E wrong bits, whatever the
    answers (lecture notes 4.1.2). Proof: its own errors are at most E too. So no subset sum of the
    difference is beyond 2 E, and the wrong bits are two subsets of one sign. Cost: 2^n k n.
    """
    tables = every_subset(matrix.shape[1]).astype(np.float64)
    parts = np.array_split(tables, -(-len(tables) // _CHUNK))
    worst = [np.abs(part @ matrix.T - sums).max(axis=1) for part in parts]
    return np.asarray(tables[int(np.argmin(np.concatenate(worst)))])


def least_squares(matrix: Floats, sums: Floats) -> Floats:
    """argmin |Q x - y|_2. Wrong bits under noise of standard deviation s:
    `bounds.attacks.wrong_bits`. Cost: k n^2. Raises InputError below rank n."""
    k, n = matrix.shape
    try:
        return np.asarray(np.linalg.solve(matrix.T @ matrix, matrix.T @ sums), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise InputError(f"{k} sums do not determine {n} rows; ask more, {4 * n} say") from None


def least_largest(matrix: Floats, sums: Floats) -> Floats:
    """argmin |Q x - y|_inf over [0, 1]^n, a linear program of n + 1 variables: the best of these
    where the errors are bounded."""
    return _least_slack(matrix, sums, np.ones((len(matrix), 1)))


def least_sum(matrix: Floats, sums: Floats) -> Floats:
    """argmin |Q x - y|_1 over [0, 1]^n, a linear program: a few arbitrarily wrong answers cost no
    bit. Source: Dwork, McSherry, Talwar 2007."""
    return _least_slack(matrix, sums, np.eye(len(matrix)))


def _least_slack(matrix: Floats, sums: Floats, slack: Floats) -> Floats:
    """The x in [0, 1]^n of the least sum of e with |matrix x - sums| <= slack e, e >= 0."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    n = matrix.shape[1]
    others = slack.shape[1]
    costs = np.r_[np.zeros(n), np.ones(others)]
    limits = np.r_[sums, -sums]
    bounds = [(0.0, 1.0)] * n + [(0.0, None)] * others
    both = csr_array(np.block([[matrix, -slack], [-matrix, -slack]]))
    solution = linprog(costs, A_ub=both, b_ub=limits, bounds=bounds, method="highs")
    if solution.status != 0:
        raise InputError(f"the linear program of {n} rows was not solved: {solution.message}")
    return np.asarray(solution.x[:n], dtype=np.float64)


def partial_discrepancy(subsets: Bools, share: float) -> tuple[int, Counts]:
    """min |Q z|_inf over z in {0, +1, -1}^n with more than `share` n entries that are not 0; and a
    z that has it, shape (n,).

    Claim: with every error below half of it, a table that is consistent with the answers has at
    most `share` n wrong bits. Cost: an integer program of 2 n + 1 variables, n up to about 20.
    Solved in floats: the witness z is checked in whole numbers; its optimality rests on the solver.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    check_share("the share of rows", share)
    k, n = subsets.shape
    least = math.floor(share * n) + 1
    q = subsets.astype(np.float64)
    one = np.ones((k, 1))
    none = np.zeros((n, 1))
    constraints = [
        LinearConstraint(np.hstack([q, -q, -one]), ub=0.0),
        LinearConstraint(np.hstack([-q, q, -one]), ub=0.0),
        LinearConstraint(np.hstack([np.eye(n), np.eye(n), none]), ub=1.0),
        LinearConstraint(np.r_[np.ones(2 * n), 0.0][None, :], lb=least),
    ]
    whole = np.ones(2 * n + 1)
    bounds = Bounds(0, np.r_[np.ones(2 * n), np.inf])
    solution = milp(
        np.r_[np.zeros(2 * n), 1.0], integrality=whole, bounds=bounds, constraints=constraints
    )
    if solution.status != 0:
        raise InputError(f"the integer program of {n} rows was not solved: {solution.message}")
    ups = np.rint(solution.x[:n]).astype(np.int64)
    downs = np.rint(solution.x[n : 2 * n]).astype(np.int64)
    z: Counts = ups - downs
    return int(np.abs(subsets.astype(np.int64) @ z).max()), z


FAILURE = 0.01  # Pr[anybody innocent is accused]
_STEPS = np.geomspace(0.01, 40.0, 64)  # where Chernoff's bound is tried, in standard deviations


@dataclass(frozen=True, eq=False)
class Traced:
    """The scores of the suspects, shape (m,), in standard deviations of an innocent's, and their
    `p_values` for being innocent."""

    scores: Floats
    p_values: Floats

    def accused(self, failure: float = FAILURE) -> Bools:
        """The suspects with a p-value below `failure` / m, shape (m,): no innocent is accused with
        probability 1 - `failure` or more (union bound)."""
        check_share("the probability of a false accusation", failure)
        return self.p_values < failure / len(self.p_values)


def tracing(
    shares: Floats, suspects: Bools, tolerance: float, *, rounded: bool = False
) -> Nonadaptive[StatisticalQuery, float, Traced]:
    """The attack: asks for the mean of each of d bits. It scores the suspects' rows, shape (m, d),
    against strangers, whose bit j is 1 with `shares`[j].

    The score is the sum over j of (x_j - p_j)(q_j - p_j) / (p_j (1 - p_j)), q the answers or, with
    `rounded`, the nearer of 0 and 1; members of n exactly answered rows stand out by sqrt(d / n)
    deviations. Source: Dwork, Smith, Steinke, Ullman, Vadhan 2015; lecture notes 5.2.
    """
    if (
        suspects.ndim != 2
        or suspects.shape[1:] != shares.shape
        or not (np.all(shares > 0) and np.all(shares < 1))
    ):
        raise InputError(
            f"suspects of shape {suspects.shape} need as many shares as bits, strictly between 0 "
            f"and 1; shares have shape {shares.shape}"
        )
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
    """A bound on Pr[a stranger scores as much], for each score: min over t of E[e^(t S)] e^(-t s),
    S = sum of w_j (X_j - p_j), X_j ~ Bernoulli(p_j), at most 1.

    A p-value for the actual p and w: a row that is independent of the weights given the shares has
    one below a with probability at most a. The weights may depend on the answers: an innocent's row
    had no part in them. Only the minimum over t is approximate, upwards.
    """
    steps = _STEPS[:, None] * weights
    low = np.log1p(-shares)
    high = np.log(shares) + steps * (1 - shares)
    growth = np.logaddexp(low - steps * shares, high).sum(axis=1)
    logs = (growth[:, None] - _STEPS[:, None] * scores).min(axis=0)
    return np.asarray(np.exp(np.minimum(0.0, logs)))


def traced_share(members: Floats, strangers: Floats, rate: float) -> float:
    """The share of the members who score above all but `rate` of the strangers: the true positive
    rate at that false positive rate."""
    check_share("the false positive rate", rate)
    return float(np.mean(members > np.quantile(strangers, 1 - rate)))


@dataclass(frozen=True)
class Signer:
    """Messages of `message` bits, each followed by its tag of `tag` bits: keyed BLAKE2b, cut.

    The query "does the row verify?" is 1 for every row of a signed table, and for others with
    probability 2^-tag. Synthetic rows that answer it well are mostly copied, which a private
    mechanism hardly does, or forged by 2^tag guesses or the key: hard to make, though the answers
    are easy. Source: Dwork, Naor, Reingold, Rothblum, Vadhan 2009; Ullman, Vadhan 2011; lecture
    notes 6.3.
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
        hashes = [
            blake2b(each.to_bytes(8, "little"), key=self.key, digest_size=8).digest()
            for each in kinds.tolist()
        ]
        mask = np.uint64((1 << self.tag) - 1)
        words = np.frombuffer(b"".join(hashes), dtype="<u8").astype(np.uint64) & mask
        return words[places]


@dataclass(frozen=True, eq=False)
class Code:
    """`rows` of d bits, one a user, shape (N, d), of which bit j is 1 with probability `shares`[j],
    shape (d,), independently; both are secret."""

    shares: Floats
    rows: Bools


def tardos(users: int, length: int, cutoff: float, generator: np.random.Generator) -> Code:
    """Tardos's code: shares sin^2(r), r uniform where the share is in [`cutoff`, 1 - `cutoff`];
    `tracing` needs 1 / (20 c). Source: Tardos 2008."""
    angle = math.asin(math.sqrt(cutoff))
    shares = np.sin(generator.uniform(angle, math.pi / 2 - angle, length)) ** 2
    return Code(shares, generator.random((users, length)) < shares)


def tardos_accused(code: Code, word: Bools, coalition: int, failure: float) -> Bools:
    """His own accusation, shape (N,): a score over the ones of the word above 20 c ln(N / failure),
    which takes 100 c^2 ln(N / failure) bits to reach."""
    users = len(code.rows)
    high = np.sqrt((1 - code.shares) / code.shares)
    low = -np.sqrt(code.shares / (1 - code.shares))
    scores = np.where(code.rows, high, low) @ word
    return scores > 20 * coalition * math.log(users / failure)


@dataclass(frozen=True)
class BonehShaw:
    """The code of n users in n + 1 blocks of equal columns: user i, from 1 on, has ones in the
    blocks from i on; the columns' secret order is drawn by `seed`.

    Without user i nobody can distinguish blocks i - 1 and i, of `boneh_shaw_block` columns each.
    Source: Boneh, Shaw 1998; lecture notes 5.2.
    """

    users: int
    block: int
    seed: int

    def __post_init__(self) -> None:
        check_whole("the number of users", self.users, 2, 1 << 10)
        check_whole("the block", self.block, 1, 1 << 20)

    @classmethod
    def safe(cls, users: int, failure: float, seed: int) -> "BonehShaw":
        """With blocks as long as a false accusation of probability `failure` needs."""
        return cls(users, boneh_shaw_block(users, failure), seed)

    @cached_property
    def order(self) -> Counts:
        """The column of the code at each place."""
        return keyed_generator("boneh-shaw", self.seed).permutation((self.users + 1) * self.block)

    @property
    def rows(self) -> Bools:
        """Shape (users, d)."""
        blocks = np.repeat(np.arange(self.users + 1), self.block)
        return blocks[self.order] >= np.arange(1, self.users + 1)[:, None]

    def tracing(self, tolerance: float) -> Nonadaptive[StatisticalQuery, float, int]:
        """The attack: the first user i with a mean of block i at least 1/n above that of block i -
        1, counted from 0. A feasible word always accuses one."""
        queries = tuple(
            StatisticalQuery(Bit(number), tolerance) for number in range(len(self.order))
        )
        return Nonadaptive(queries, lambda answers: self.accused(np.array(answers) >= 0))

    def accused(self, word: Bools) -> int:
        """The user accused of the word, shape (d,), or -1 for a word that no coalition can make. In
        whole numbers: n (ones_i - ones_(i - 1)) >= B."""
        ones = np.bincount(self.order // self.block, weights=word).astype(np.int64)
        guilty = np.flatnonzero(self.users * np.diff(ones) >= self.block)
        return int(guilty[0]) if len(guilty) else -1


Strategy: TypeAlias = Callable[[Bools, np.random.Generator], Bools]
"""From the coalition's rows, shape (c, d), to its preferred word, shape (d,)."""


def marked(rows: Bools, wish: Bools) -> Bools:
    """The word nearest to the wish that the coalition can make: where all of its rows have one bit,
    that bit (the marking condition)."""
    return np.where(rows.min(axis=0) == rows.max(axis=0), rows[0], wish)


STRATEGIES: dict[str, Strategy] = {
    "majority": lambda rows, generator: 2 * rows.sum(axis=0) > len(rows),
    "minority": lambda rows, generator: 2 * rows.sum(axis=0) < len(rows),
    "all ones": lambda rows, generator: np.ones(rows.shape[1], dtype=np.bool_),
    "all zeros": lambda rows, generator: np.zeros(rows.shape[1], dtype=np.bool_),
    "coin flips": lambda rows, generator: generator.random(rows.shape[1:]) < 0.5,
    "interleaved": lambda rows, generator: np.asarray(
        rows[generator.integers(len(rows), size=rows.shape[1]), np.arange(rows.shape[1])]
    ),
    "parity": lambda rows, generator: rows.sum(axis=0) % 2 == 1,
    "one copied": lambda rows, generator: rows[0],
}
"""Eight ways to fill the free places. A copied row exposes its owner alone; interleaved rows have
the right mean of every bit."""


@dataclass(frozen=True)
class Pirates:
    """A coalition as an oracle: it answers statistical queries about its rows by a 0/1 word, as +1
    and -1, where an honest oracle would give their means."""

    coalition: Records
    strategy: Strategy
    generator: np.random.Generator

    def answer(self, queries: tuple[StatisticalQuery, ...]) -> tuple[float, ...]:
        """A feasible word, one letter a query."""
        rows = np.stack([query.numerators(self.coalition) > 0 for query in queries], axis=1)
        word = marked(rows, self.strategy(rows, self.generator))
        return tuple(np.where(word, 1.0, -1.0).tolist())


def traitor_tracing(
    code: Code, keys: Records, tolerance: float
) -> Nonadaptive[StatisticalQuery, float, Traced]:
    """The attack: broadcasts d ciphertexts in which user i reads row i of the code, and traces the
    word of the decoder.

    The decoder is any oracle for the queries that decrypt, a pirate or a curator whose records are
    the keys. With the coalition's keys alone it reads the coalition's rows alone. So the word is
    feasible, and `tracing` accuses as by the code. An efficient curator that errs by less than 1/2
    on every such query is therefore not private. Accusations rest on the cipher besides the
    p-values. Source: Chor, Fiat, Naor 1994; Dwork et al. 2009.
    """
    queries = tuple(StatisticalQuery(query, tolerance) for query in encrypted(keys, code.rows))
    return replace(tracing(code.shares, code.rows, tolerance, rounded=True), queries=queries)
