"""The evidence of a randomizer's loss: its worst ratio as a Fraction, from whole numbers alone."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from local_dp.arrays import Counts, Ints, Words
from local_dp.errors import RefusedError
from local_dp.loss import NANO, Pure, exp_epsilon, nano_epsilon
from local_dp.randomizers.finite import FiniteChannel, Mixed, OneBit
from local_dp.randomizers.places import BitVector, PerCoin, PlaceVector
from local_dp.randomizers.randomizer import Evidence, Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.table import NumberTable
from local_dp.randomizers.with_coin import WithCoin

MAX_ENTRIES = 1 << 28  # of a channel or a code, or pairs of its rows
MAX_TOGETHER = 1 << 22  # pairs of rows that share a place, listed at most
MAX_KINDS = 64  # rows with other counts of symbols, where pairs are not listed one by one


@dataclass(frozen=True)
class Meeting:
    """One way in which two rows meet: how many places have each pair of symbols, and two such
    rows."""

    counts: tuple[int, ...]
    rows: tuple[int, int]


def meetings(code: Ints, pairs: Sequence[tuple[int, int]]) -> Iterator[Meeting]:
    """Every way in which two different rows of a code, shape (rows, places), meet: how many places
    have symbol a in one row and b in the other.

    (a, b) are the `pairs`. Most codes have one symbol nearly everywhere. Only rows with another
    symbol at a common place are compared pair by pair; the others meet as their own counts of
    symbols determine. O(code) for unary encoding. Raises RefusedError("unverifiable") if the code
    is too large.
    """
    if max(code.size, len(code) ** 2) > MAX_ENTRIES:
        raise RefusedError(
            "unverifiable",
            f"a code of {code.shape[0]} values at {code.shape[1]} places is too large to enumerate",
        )
    symbols = 1 + max(map(max, pairs))
    background = int(np.argmax([np.count_nonzero(code == symbol) for symbol in range(symbols)]))
    rows, places = np.nonzero(code != background)
    crowd = np.bincount(places, minlength=code.shape[1])
    if int((crowd**2).sum()) <= MAX_TOGETHER:
        values = code[rows, places].astype(np.int64)
        sparse = _Sparse(len(code), symbols, background, rows, places, values)
        if len(sparse.kinds) <= MAX_KINDS:
            return sparse.meetings(pairs)
    return _of_all(code, pairs)


class _Sparse:
    """The rare symbols of a code, at these rows and places in the order of rows."""

    def __init__(
        self, size: int, symbols: int, background: int, rows: Ints, places: Ints, values: Ints
    ) -> None:
        self.size, self.symbols, self.background = size, symbols, background
        own = np.bincount(rows * symbols + values, minlength=size * symbols).reshape(size, symbols)
        self.kinds, kind = np.unique(own, axis=0, return_inverse=True)
        self.kind = kind.ravel()  # of each row
        self.keys, self.shared = self._together(rows, places, values)

    def _together(self, rows: Ints, places: Ints, symbol: Ints) -> tuple[Ints, Counts]:
        """The pairs of rows that share a place, as first * size + second, and how often each pair
        of symbols meets there."""
        order = np.argsort(places, kind="stable")
        rows, places, symbol = rows[order], places[order], symbol[order]
        nothing, square = np.zeros(0, dtype=np.int64), self.symbols**2
        keys, kinds = [nothing], [nothing]
        for step in range(1, int(np.bincount(places).max(initial=0))):
            same = np.flatnonzero(places[step:] == places[:-step])
            for one, other in ((same, same + step), (same + step, same)):
                keys.append(rows[one] * self.size + rows[other])
                kinds.append(symbol[one] * self.symbols + symbol[other])
        distinct, which = np.unique(np.concatenate(keys), return_inverse=True)
        cells = which.ravel() * square + np.concatenate(kinds)
        counts = np.bincount(cells, minlength=len(distinct) * square)
        return distinct, counts.reshape(len(distinct), self.symbols, self.symbols)

    def meetings(self, pairs: Sequence[tuple[int, int]]) -> Iterator[Meeting]:
        """Of rows that share a place, each way once; then of rows that share none, for each pair of
        kinds that has such rows."""
        first, second = np.divmod(self.keys, self.size)
        shared = self.shared.reshape(len(self.keys), self.symbols**2)
        ways = np.column_stack([self.kind[first], self.kind[second], shared])
        for place in np.unique(ways, axis=0, return_index=True)[1].tolist():
            one, other = int(first[place]), int(second[place])
            kinds = self.kind[one], self.kind[other]
            yield Meeting(self._counts(*kinds, self.shared[place], pairs), (one, other))
        nothing = np.zeros((self.symbols, self.symbols), dtype=np.int64)
        for one, other in product(range(len(self.kinds)), repeat=2):
            if (rows := self._apart(one, other)) is not None:
                yield Meeting(self._counts(one, other, nothing, pairs), rows)

    def _counts(
        self, one: int, other: int, shared: Counts, pairs: Sequence[tuple[int, int]]
    ) -> tuple[int, ...]:
        counts = shared.copy()
        counts[:, self.background] = self.kinds[one] - shared.sum(axis=1)
        counts[self.background, :] = self.kinds[other] - shared.sum(axis=0)
        return tuple(int(counts[pair]) for pair in pairs)

    def _apart(self, one: int, other: int) -> tuple[int, int] | None:
        """Two rows of these kinds that share no place; None if there are none."""
        others = np.flatnonzero(self.kind == other)
        for row in np.flatnonzero(self.kind == one).tolist():
            start, stop = np.searchsorted(self.keys, [row * self.size, (row + 1) * self.size])
            near = self.keys[start:stop] - row * self.size
            free = np.setdiff1d(others, np.append(near, row), assume_unique=True)
            if len(free):
                return row, int(free[0])
        return None


def _of_all(code: Ints, pairs: Sequence[tuple[int, int]]) -> Iterator[Meeting]:
    """By a product of matrices for each pair of symbols; the counts of a pair of rows are the
    digits of one number."""
    base = code.shape[1] + 1
    if base ** len(pairs) >= 1 << 62 or base > 1 << 23:
        raise RefusedError(
            "unverifiable",
            f"{len(pairs)} pairs of symbols at {code.shape[1]} places are too many to enumerate",
        )
    holds = {symbol: (code == symbol).astype(np.float32) for pair in pairs for symbol in pair}
    digits = np.zeros((len(code), len(code)), dtype=np.int64)
    for a, b in pairs:
        # whole numbers below 2^24: exact
        digits = digits * base + (holds[a] @ holds[b].T).astype(np.int64)
    numbers, places = np.unique(digits.ravel(), return_index=True)
    for key, place in zip(numbers.tolist(), places.tolist(), strict=True):
        counts = []
        for _ in pairs:
            key, times = divmod(key, base)
            counts.append(times)
        yield Meeting(tuple(reversed(counts)), divmod(place, len(code)))


PROVEN: frozenset[Evidence] = frozenset({"enumerated", "product", "per coin"})
_BLOCK = 1 << 20  # true bits enumerated at a time
_ROWS = 1 << 18  # entries of a table made at a time: they stay in cache


def unverifiable(randomizer: Randomizer, fault: str) -> RefusedError:
    """The error of a randomizer whose loss cannot be enumerated."""
    return RefusedError("unverifiable", f"{randomizer.name}: {fault}")


REVEALS = "a report that some value never sends reveals that value"


def exact_ratio(randomizer: Randomizer) -> Fraction:
    """The largest Pr[w | u, c] / Pr[w | u', c] over all coins c, reports w and values u, u', or
    over all transcripts of a session.

    Raises RefusedError("unverifiable") for a randomizer that cannot be enumerated: of another kind,
    too large, with weights that are no probabilities, or with a report that some values never send.
    """
    if type(randomizer) is WithCoin:
        return exact_ratio(randomizer.coined)  # the coin is drawn whatever the value
    once = randomizer.silence is None  # what may be asked again and again is looked at as a table
    if (
        once
        and isinstance(randomizer, OneBit)
        and randomizer.alphabet == 2
        and type(randomizer).weight is OneBit.weight
    ):
        return _of_bit(randomizer)
    if isinstance(randomizer, PerCoin):
        return _of_code(randomizer)
    if once and isinstance(randomizer, Mixed) and type(randomizer).weight is Mixed.weight:
        return _of_mixture(randomizer)
    if isinstance(randomizer, FiniteChannel):
        return _of_table(randomizer)
    if isinstance(randomizer, BitVector | PlaceVector):
        return worst_meeting(randomizer)[0]
    raise RefusedError(
        "unverifiable", f"{randomizer.name} is {randomizer.evidence}: there is nothing to enumerate"
    )


def _of_code(randomizer: PerCoin) -> Fraction:
    inner = randomizer.inner
    if inner.uses_coins or inner.word_bits != randomizer.word_bits:
        fault = "its inner channel must use no coin and words of the same width"
        raise unverifiable(randomizer, fault)
    return _of_table(inner) if isinstance(inner, FiniteChannel) else worst_meeting(inner)[0]


def extremes(randomizer: FiniteChannel) -> Counts:
    """The values whose rows all others are mixtures of: of a built-in table below a finer lattice
    its own. A class of somebody else may say anything of itself: of it all values."""
    kind = type(randomizer)
    is_built_in = kind.name in RANDOMIZERS.built_in and RANDOMIZERS[kind.name] is kind
    if isinstance(randomizer, NumberTable) and is_built_in:
        return randomizer.corners
    return randomizer.domain.values()


def entries(randomizer: Randomizer) -> int:
    """An upper bound on the entries that `exact_ratio` enumerates, known before any of them is
    computed: the cost of verification. 0 without enumeration."""
    if randomizer.evidence not in PROVEN:
        return 0
    if isinstance(randomizer, WithCoin):
        return entries(randomizer.coined)
    if isinstance(randomizer, PerCoin):
        return entries(randomizer.inner)
    if isinstance(randomizer, Mixed):
        return randomizer.domain.size + _corner_entries(randomizer)
    if isinstance(randomizer, FiniteChannel):
        return channel_entries(randomizer)
    return randomizer.domain.size * randomizer.words


def channel_entries(randomizer: FiniteChannel) -> int:
    """The weights of its whole channel, or of the rows that all others are mixtures of."""
    return randomizer.cells * randomizer.alphabet * len(extremes(randomizer))


def _corner_entries(randomizer: Mixed) -> int:
    return randomizer.cells * randomizer.alphabet * len(randomizer.corners)


def _check_size(randomizer: Randomizer, entries: int) -> None:
    if entries > MAX_ENTRIES:
        raise unverifiable(randomizer, f"a channel of {entries} entries is too large to enumerate")


def _of_bit(randomizer: OneBit) -> Fraction:
    """The ratio of randomized response on a bit: only the true bits are enumerated, since every
    entry has one of two weights."""
    values = randomizer.domain.values()[None, :]
    cells = np.arange(randomizer.cells, dtype=np.int64)[:, None]
    _check_size(randomizer, 2 * cells.size * values.size)
    weights = randomizer.flip, randomizer.total - randomizer.flip
    differ, block = False, max(1, _BLOCK // values.size)
    for first in range(0, randomizer.cells, block):
        some = cells[first : first + block]
        bits = np.broadcast_to(randomizer.encode(values, some), (len(some), values.size))
        if ((bits != 0) & (bits != 1)).any() or min(weights) < 0:
            fault = "what it randomizes is not a bit, or is not flipped with a probability"
            raise unverifiable(randomizer, fault)
        differ = differ or bool((bits != bits[:, :1]).any())
    if not differ:
        return Fraction(1)
    if min(weights) == 0:
        raise unverifiable(randomizer, REVEALS)
    return Fraction(max(weights), min(weights))


def _of_table(randomizer: FiniteChannel) -> Fraction:
    _check_size(randomizer, channel_entries(randomizer))
    ratio = _of_ends(randomizer, lambda cell: _of_cell(randomizer, cell))
    silence = randomizer.silence
    return ratio if silence is None else max(ratio, _of_session(randomizer, silence))


def _of_session(randomizer: FiniteChannel, silence: int) -> Fraction:
    """The ratio of all reports of rounds of which a client speaks in one at most. Two records may
    speak in two rounds, each silent in the other's.

    The chance of a record's reports is that of silence, times Pr[w | u] / Pr[w | silence] in its
    round; no report has weight 0 under silence alone.
    """
    more, less = Fraction(1), Fraction(1)
    place = silence - randomizer.domain.low
    for cell in range(randomizer.cells):
        silent = randomizer.channel(cell)[place]
        ends = (each.tolist() for each in (*_of_cell(randomizer, cell), silent))
        for high, low, weight in zip(*ends, strict=True):
            if weight:
                more, less = max(more, Fraction(high, weight)), min(less, Fraction(low, weight))
    return more / less


def _of_ends(randomizer: FiniteChannel, ends_of: Callable[[int], tuple[Words, Words]]) -> Fraction:
    """The worst ratio from the largest and the least weight of each report in every cell."""
    worst = Fraction(1)
    extremes: set[tuple[int, int]] = set()
    for cell in range(randomizer.cells):
        most, least = ends_of(cell)
        for high, low in {*zip(most.tolist(), least.tolist(), strict=True)} - extremes:
            extremes.add((high, low))
            if low == 0 < high:
                raise unverifiable(randomizer, REVEALS)
            if high:
                worst = max(worst, Fraction(high, low))
    return worst


def _of_cell(randomizer: FiniteChannel, cell: int) -> tuple[Words, Words]:
    """The largest and the least weight of each report; the rows of some values at a time, so that
    they fit into memory."""
    values = extremes(randomizer)
    step = max(1, _ROWS // randomizer.alphabet)
    if step >= len(values):
        return _ends(randomizer, randomizer.rows(values, cell), cell)
    parts = (values[first : first + step] for first in range(0, len(values), step))
    ends = [_ends(randomizer, randomizer.rows(part, cell), cell) for part in parts]
    return np.max([most for most, _ in ends], axis=0), np.min([least for _, least in ends], axis=0)


def _ends(randomizer: FiniteChannel, rows: Words, cell: int) -> tuple[Words, Words]:
    """The same of these rows. Each must be a law."""
    total = randomizer.total
    # exact modulo 2^64; the float sum below excludes a whole multiple
    wrong = rows.sum(axis=1, dtype=np.uint64) != np.uint64(total % 2**64)
    wrong |= abs(rows.sum(axis=1, dtype=np.float64) / total - 1) > 1e-6
    if wrong.any():
        fault = f"the weights of cell {cell} do not sum to 2^{randomizer.word_bits}"
        raise unverifiable(randomizer, fault)
    return rows.max(axis=0), rows.min(axis=0)


def _of_mixture(randomizer: Mixed) -> Fraction:
    """The worst ratio of the corners' rows. Every other row must lie between two of them, at a
    whole number of equal steps."""
    corners = randomizer.corners
    _check_size(randomizer, max(randomizer.domain.size, _corner_entries(randomizer)))
    firsts, seconds = (np.searchsorted(corners, each) for each in _lines(randomizer))

    def ends_of(cell: int) -> tuple[Words, Words]:
        rows = corner_rows(randomizer, cell)
        one, other = rows[firsts], rows[seconds]
        apart = np.maximum(one, other) - np.minimum(one, other)
        if (apart % np.uint64(randomizer.equal)).any():
            fault = f"the weights of two corners of cell {cell} are no whole number of equal steps "
            raise unverifiable(randomizer, fault + "apart")
        return _ends(randomizer, rows, cell)

    return _of_ends(randomizer, ends_of)


def corner_rows(randomizer: Mixed, cell: int) -> Words:
    """The weights of the corners in one cell, shape (corners, alphabet)."""
    reports = np.arange(randomizer.alphabet, dtype=np.int64)[None, :]
    return randomizer.corner_weight(reports, randomizer.corners[:, None], np.array([[cell]]))


def _lines(randomizer: Mixed) -> tuple[Ints, Ints]:
    """The pairs of corners that values lie between. Raises RefusedError unless every value lies
    between two, and each corner is itself."""
    domain, corners, pairs = randomizer.domain, randomizer.corners, set[tuple[int, int]]()
    for low in range(domain.low, domain.high + 1, _BLOCK):
        values = np.arange(low, min(low + _BLOCK, domain.high + 1), dtype=np.int64)
        first, second, level = randomizer.between(values)
        between = np.isin(first, corners) & np.isin(second, corners)
        right = between & (level >= 0) & (level <= randomizer.equal)
        at_end = (level == randomizer.equal) & (second == values)
        itself = np.where(level == 0, first == values, at_end)
        if not right.all() or not itself[np.isin(values, corners)].all():
            raise unverifiable(randomizer, "not every value lies between two corners")
        # values of one line lie side by side
        moves = np.diff(first, prepend=first[0] - 1) | np.diff(second, prepend=second[0])
        changes = np.flatnonzero(moves)
        pairs |= {*zip(first[changes].tolist(), second[changes].tolist(), strict=True)}
    one, other = np.array(sorted(pairs), dtype=np.int64).T
    return one, other


def worst_meeting(randomizer: BitVector | PlaceVector) -> tuple[Fraction, tuple[int, int]]:
    """The largest product over places of the worst ratio of one place, and the indices of two
    values that reach it. Raises RefusedError("unverifiable")."""
    if isinstance(randomizer, BitVector):
        worst = _worst_of_bits(randomizer)
    else:
        worst = _worst_of_symbols(randomizer)
    largest = Fraction(1), (0, 0)
    if worst:
        for meeting in meetings(randomizer.code, list(worst)):
            factors = map(pow, worst.values(), meeting.counts)
            ratio = math.prod(factors, start=Fraction(1))
            largest = max(largest, (ratio, meeting.rows), key=lambda each: each[0])
    return largest


def _worst_of_bits(randomizer: BitVector) -> dict[tuple[int, int], Fraction]:
    """The worst ratio of one bit between any two symbols that differ."""
    code, ones, total = randomizer.code, randomizer.ones, randomizer.total
    fits = len(code) == randomizer.domain.size and code.min() >= 0 and code.max() < len(ones)
    if not fits or not all(0 <= weight <= total for weight in ones):
        raise unverifiable(randomizer, "its code and its weights of a 1 do not fit together")
    symbols = [symbol for symbol in range(len(ones)) if (code == symbol).any()]
    weights = {ones[symbol] for symbol in symbols}
    if len(weights) > 1 and weights & {0, total}:
        raise unverifiable(randomizer, "a bit that some value never sends reveals that value")
    return {
        (a, b): max(Fraction(ones[a], ones[b]), Fraction(total - ones[a], total - ones[b]))
        for a, b in product(symbols, symbols)
        if ones[a] != ones[b]
    }


def _worst_of_symbols(randomizer: PlaceVector) -> dict[tuple[int, int], Fraction]:
    """The worst ratio of one place's report between any two symbols."""
    code, inner = randomizer.code, randomizer.inner
    fits = len(code) == randomizer.domain.size and code.min() >= 0
    fits = fits and inner.domain.low == 0 and code.max() < inner.domain.size
    plain = not inner.uses_coins and inner.word_bits == randomizer.word_bits
    if not (fits and plain and inner.alphabet <= 1 << 8):
        fault = "its code and the channel of its places do not fit together"
        raise unverifiable(randomizer, fault)
    if type(randomizer).respond is not PlaceVector.respond:
        raise unverifiable(randomizer, "it has a sampler of its own")
    _of_table(inner)  # that its rows are laws, and that no report is one symbol's alone
    rows = inner.channel().tolist()
    worst = {}
    for a, b in product(range(len(rows)), repeat=2):
        if rows[a] != rows[b]:
            pairs = zip(rows[a], rows[b], strict=True)
            worst[a, b] = max(Fraction(one, other) for one, other in pairs if other)
    return worst


def exact_epsilon(randomizer: Randomizer) -> float:
    """The exact privacy loss in nats: ln of `exact_ratio`."""
    ratio = exact_ratio(randomizer)
    return math.log1p(float(ratio - 1))


def check_evidence(randomizer: Randomizer, evidence: frozenset[Evidence] = PROVEN) -> None:
    """Raises RefusedError unless this evidence is accepted ("evidence") and is of pure privacy
    ("unverifiable")."""
    name = randomizer.name
    if randomizer.evidence not in evidence:
        accepted_kinds = ", ".join(sorted(evidence))
        fault = f"the loss of {name} is {randomizer.evidence}, and this client accepts "
        raise RefusedError("evidence", fault + accepted_kinds)
    if not isinstance(randomizer.loss, Pure):
        delta = f"{name} has delta {randomizer.loss.delta:g}; "
        raise RefusedError("unverifiable", delta + "a client's ledger counts pure privacy")


def too_much(randomizer: Randomizer, ratio: Fraction) -> str:
    """The error if the worst ratio exceeds the claim; empty if it does not."""
    # its parameter, loss or charge, each of which a class may override
    claim = min(nano_epsilon(randomizer.epsilon), randomizer.loss.nano, randomizer.nano)
    if ratio <= exp_epsilon(claim):
        return ""
    return (
        f"{randomizer.name} claims epsilon {claim / NANO:g} but its channel has "
        f"{math.log1p(float(ratio - 1)):.9g}"
    )


def delta_above(randomizer: FiniteChannel) -> float:
    """The largest Pr[S | u, c] - e^eps Pr[S | u', c], up to 1e-9 of it plus 1e-15 e^eps. Raises
    RefusedError("unverifiable") for too large a channel."""
    _check_size(randomizer, channel_entries(randomizer))
    # three roundings of 2^-53 each stay above it
    growth = float(exp_epsilon(randomizer.nano)) * (1 - 2**-50)
    worst = 0.0
    for cell in range(randomizer.cells):
        shares = randomizer.channel(cell).astype(np.float64)
        for row in shares:
            excess = np.maximum(shares * (1 + 2**-52) - growth * row, 0.0).sum(axis=1)
            worst = max(worst, float(excess.max()))
    return worst / randomizer.total * (1 + 1e-9)


def check_loss(randomizer: Randomizer, evidence: frozenset[Evidence] = PROVEN) -> None:
    """Raises RefusedError unless this evidence is accepted ("evidence") and, where it can be
    repeated, shows at most the charged loss ("unverifiable")."""
    check_evidence(randomizer, evidence)
    if randomizer.evidence in PROVEN and (fault := too_much(randomizer, exact_ratio(randomizer))):
        raise RefusedError("unverifiable", fault)
