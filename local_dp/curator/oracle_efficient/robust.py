"""PRSMA: private whatever the oracle does, by a test on random pieces of the data (Neel, Roth, Wu
2019, Section 3.2)."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import chain, product, repeat
from operator import sub
from typing import Generic, Protocol, TypeAlias, TypeVar

from local_dp.checks import check_share, check_whole
from local_dp.curator.clipped import laplace_tail, least_tail
from local_dp.curator.mechanism import Law, Mechanism, mixture, probabilities, whole_weights
from local_dp.curator.oracle_efficient.separated import Fail
from local_dp.curator.selection.exponential import Labelled, expand
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import ATTO, NANO, Approximate, Pure, nano_epsilon, nano_of_ratio

MAX_WAYS = 1 << 14
Piece: TypeAlias = tuple[tuple[int, int], ...]
_Counts: TypeAlias = tuple[int, ...]
_Way: TypeAlias = tuple[tuple[_Counts, ...], _Counts]  # the pieces, and what remains


def cuts(
    database: Labelled, pieces: int, records: int
) -> Iterator[tuple[tuple[Piece, ...], Fraction]]:
    """Each unordered choice of disjoint `pieces` of `records` records, with its probability in a
    uniform order. Raises InputError above 2^14 of them."""
    kinds = sorted(Counter(zip(database.x.tolist(), database.y.tolist(), strict=True)).items())
    rest = tuple(count for _, count in kinds)
    ways: dict[_Way, int] = {((), rest): 1}
    for _ in range(pieces):
        ways = _one_more(ways, records)
        if len(ways) > MAX_WAYS:
            raise InputError(
                f"there are more than {MAX_WAYS} ways to cut {len(database.x)} records into "
                f"{pieces} pieces; give fewer"
            )
    total = sum(ways.values())
    records_of = [record for record, _ in kinds]
    for (cut_pieces, _), share in ways.items():
        records_in = (chain(*map(repeat, records_of, piece)) for piece in cut_pieces)
        yield tuple(map(tuple, records_in)), Fraction(share, total)


def _one_more(ways: dict[_Way, int], records: int) -> dict[_Way, int]:
    """One more piece of the remaining records, in each way."""
    more: dict[_Way, int] = {}
    for (cut_pieces, rest), share in ways.items():
        for piece in _pieces(rest, records):
            after = tuple(sorted((*cut_pieces, piece))), tuple(map(sub, rest, piece))
            more[after] = more.get(after, 0) + share * math.prod(map(math.comb, rest, piece))
    return more


@cache
def _pieces(counts: _Counts, records: int) -> tuple[_Counts, ...]:
    ranges = [range(min(count, records) + 1) for count in counts]
    return tuple(piece for piece in product(*ranges) if sum(piece) == records)


R = TypeVar("R")
_UP = 1 + 1e-9  # pays for the rounding of floats
_APART = math.log(2)  # the survivors' laws agree within a factor 2


class Fallible(Protocol[R]):
    """An algorithm that is private as long as its oracle never fails; a failing oracle only removes
    answers. `loss` and `law` are of one run."""

    @property
    def loss(self) -> Pure: ...

    def attempt(self, database: Labelled, draws: Draws) -> R | Fail: ...

    def law(self, database: Labelled) -> Law[R | Fail]: ...


@dataclass(frozen=True)
class Terms:
    """eps* and delta*, and the whole numbers that follow: enough survivors, threshold, pieces, runs
    of each.

    Y is discrete Laplace noise of parameter eps*, t the least whole number with Pr[Y > t] <=
    delta*.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        nano_epsilon(self.epsilon)
        check_share("delta", self.delta)

    @property
    def nano(self) -> int:
        """eps*, in nano-nats."""
        return nano_epsilon(self.epsilon)

    @property
    def enough(self) -> int:
        """M = floor(1 / eps*), at least 1: among this many survivors, one more or less changes
        little."""
        return max(1, NANO // self.nano)

    @cached_property
    def threshold(self) -> int:
        """M + t: M survivors pass with probability delta* at most."""
        return self.enough + least_tail(self.nano, Fraction(self.delta)) - 1

    @property
    def pieces(self) -> int:
        """K = M + 2 t + 1: if no piece fails, the test is passed with probability 1 - delta* at
        least."""
        return 2 * self.threshold - self.enough + 1

    @cached_property
    def runs(self) -> int:
        """R: a piece that fails more often than delta* survives them all with probability delta* /
        K at most."""
        return math.ceil(math.log(self.pieces / self.delta) / self.delta)

    def pass_chance(self, survivors: int) -> Fraction:
        """Pr[survivors + Y > threshold], with e^eps* replaced by the fraction just below it."""
        return laplace_tail(self.nano, self.threshold - survivors + 1)


def apart(epsilon: float, records: int, pieces: int) -> float:
    """An upper bound on the delta of survivors whose laws differ by more than a factor 2, for a
    base of loss `epsilon` on random pieces.

    0 if epsilon * records <= ln 2. Else, with v = records eps^2 and t = (ln 2 - eps) / 2 > v / 4: K
    e^(t - 2 t^2 / v) (3 + 1 / (4 t / v - 1)).
    """
    if epsilon * records <= _APART:
        return 0.0
    spread, room = records * epsilon**2, (_APART - epsilon) / 2
    if room <= spread / 4:
        return 1.0
    tail = _UP * pieces * math.exp(room - 2 * room**2 / spread)
    return min(1.0, tail * (3 + 1 / (4 * room / spread - 1)))


@dataclass(frozen=True)
class RobustRelease(Mechanism[Labelled, R | None, Approximate], Generic[R]):
    """One answer of an algorithm whose oracle may fail at will, on any data; or nothing (None).

    Steps: the records are shuffled and cut into K pieces of `records`, the rest put aside. A piece
    survives if none of R runs on it fails. T survivors; nothing unless T + Y > threshold. Else an
    answer of one survivor, a uniform one.

    Privacy, on all databases, one record replaced, whatever the oracle does: epsilon = eps* + ln((M
    + 2) / (M + 1)). That is below 2 eps* (1.97 eps* at 1/48). delta = g + apart + (1 + e^epsilon)
    (K (1 - delta*)^R + delta*); g = Pr[M + Y > threshold]. Proof: docs/heuristics.md. Utility, if
    nothing fails: the base's on `records` records, with probability 1 - delta*. Cost: K R runs.
    Source: Neel, Roth, Wu 2019, Section 3.2 and Theorem 8, with eps* = eps / 48 and delta* about
    delta / 11; this accounting is sharper.
    """

    summary = "Releases one answer of an algorithm that may fail"
    base: Fallible[R]
    records: int
    terms: Terms

    def __post_init__(self) -> None:
        check_whole("records", self.records, 1, 1 << 40)
        if self._delta() >= 1:
            raise InputError(
                f"delta comes to 1: give a base of less than epsilon {self.base.loss.epsilon:g} "
                f"on {self.records} records, or a smaller delta"
            )

    @property
    def loss(self) -> Approximate:
        return Approximate(self._epsilon().nano, math.ceil(self._delta() * ATTO))

    def release(self, database: Labelled, draws: Draws) -> R | None:
        pieces = self._pieces(len(database.x))
        order = draws.order(len(database.x))[: pieces * self.records].reshape(pieces, self.records)
        cut_pieces = [Labelled(database.x[rows], database.y[rows]) for rows in order]
        outcomes = [self._outcome(piece, draws) for piece in cut_pieces]
        survivors = [answer for answer in outcomes if not isinstance(answer, Fail)]
        noisy = len(survivors) + draws.discrete_laplace(Fraction(self.terms.nano, NANO))
        if noisy <= self.terms.threshold or not survivors:
            return None
        return survivors[draws.below(len(survivors))]

    def law(self, database: Labelled) -> Law[R | None]:
        """By all ways to cut a small database."""
        ways = cuts(database, self._pieces(len(database.x)), self.records)
        laws = (
            (share, [self.base.law(Labelled.of(piece)) for piece in pieces])
            for pieces, share in ways
        )
        shares = mixture((share, self.answer_law(each)) for share, each in laws)
        return whole_weights({**shares, None: 1 - sum(shares.values(), Fraction(0))})

    def answer_law(self, laws: Sequence[Law[R | Fail]]) -> dict[R, Fraction]:
        """The probability of each answer, given the law of a run on each piece."""
        survive = [(1 - failing(law)) ** self.terms.runs for law in laws]
        parts = []
        for i, law in enumerate(laws):
            others = expand((1 - p, p) for p in survive[:i] + survive[i + 1 :])
            chance = Fraction(0)
            for t, share in enumerate(others, 1):
                chance += share * self.terms.pass_chance(t) / t
            answers = {answer: w for answer, w in law.items() if not isinstance(answer, Fail)}
            parts.append((survive[i] * chance, probabilities(answers)))
        return mixture(parts)

    def _epsilon(self) -> Pure:
        enough = self.terms.enough
        return Pure(self.terms.nano + nano_of_ratio(Fraction(enough + 2, enough + 1)))

    def _delta(self) -> float:
        terms = self.terms
        unlike = terms.pieces * math.exp(terms.runs * math.log1p(-terms.delta)) + terms.delta
        disagree = apart(self.base.loss.epsilon, self.records, terms.pieces)
        unlike *= 1 + math.exp(self._epsilon().epsilon)
        return _UP * (float(terms.pass_chance(terms.enough)) + disagree + unlike)

    def _pieces(self, n: int) -> int:
        if n < self.terms.pieces * self.records:
            raise InputError(
                f"there are {n} records; {self.terms.pieces} pieces of {self.records} need "
                f"{self.terms.pieces * self.records}"
            )
        return self.terms.pieces

    def _outcome(self, piece: Labelled, draws: Draws) -> R | Fail:
        """The answer of the last of all runs, or the first failure."""
        for _ in range(self.terms.runs):
            answer = self.base.attempt(piece, draws)
            if isinstance(answer, Fail):
                break
        return answer


def failing(law: Law[R | Fail]) -> Fraction:
    failures = sum(weight for answer, weight in law.items() if isinstance(answer, Fail))
    return Fraction(failures, sum(law.values()))
