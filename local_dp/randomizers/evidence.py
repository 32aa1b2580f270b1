"""The evidence of a randomizer's loss: its worst ratio as a Fraction, from whole numbers alone."""

import math
from fractions import Fraction

import numpy as np

from local_dp.arrays import Words
from local_dp.errors import RefusedError
from local_dp.loss import Pure, exp_epsilon
from local_dp.randomizers.base import Evidence, Randomizer
from local_dp.randomizers.bit_vector import BitVector
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.one_bit import OneBit
from local_dp.randomizers.per_coin import PerCoin

PROVEN: frozenset[Evidence] = frozenset({"enumerated", "product", "per coin"})
MAX_ENTRIES = 1 << 28
_BLOCK = 1 << 20  # true bits enumerated at a time


def exact_ratio(randomizer: Randomizer) -> Fraction:
    """The largest Pr[w | u, c] / Pr[w | u', c] over all coins c, reports w and values u, u'.

    Raises RefusedError("unverifiable") if the randomizer is not of a kind that can be enumerated, if its channel is too large, is not a table of
    probabilities, or gives a report to one value only.
    """
    if isinstance(randomizer, OneBit) and randomizer.alphabet == 2 and type(randomizer).weight is OneBit.weight:
        return _of_bit(randomizer)
    if isinstance(randomizer, PerCoin):
        if randomizer.inner.uses_coins or randomizer.inner.word_bits != randomizer.word_bits:
            raise RefusedError("unverifiable", f"{randomizer.name}: its inner channel must use no coin and words of the same width")
        return _of_table(randomizer.inner) if isinstance(randomizer.inner, FiniteChannel) else _of_product(randomizer.inner)
    if isinstance(randomizer, FiniteChannel):
        return _of_table(randomizer)
    if isinstance(randomizer, BitVector):
        return _of_product(randomizer)
    raise RefusedError("unverifiable", f"{randomizer.name} is {randomizer.evidence}: there is nothing to enumerate")


def _check_size(randomizer: Randomizer, entries: int) -> None:
    if entries > MAX_ENTRIES:
        raise RefusedError("unverifiable", f"{randomizer.name}: a channel of {entries} entries is too large to enumerate")


def _of_bit(randomizer: OneBit) -> Fraction:
    """Of randomized response on a bit, where only the true bits need to be enumerated: the two weights are those of every entry."""
    values, cells = randomizer.domain.values()[None, :], np.arange(randomizer.cells, dtype=np.int64)[:, None]
    _check_size(randomizer, randomizer.cells * randomizer.alphabet * randomizer.domain.size)
    kept, told_apart = randomizer.total - randomizer.flip, False
    for first in range(0, randomizer.cells, block := max(1, _BLOCK // values.size)):
        bits = np.broadcast_to(randomizer.encode(values, cells[first : first + block]), (len(cells[first : first + block]), values.size))
        if ((bits != 0) & (bits != 1)).any() or not 0 <= randomizer.flip <= randomizer.total:
            raise RefusedError("unverifiable", f"{randomizer.name}: what it randomizes is not a bit, or is not flipped with a probability")
        told_apart = told_apart or bool((bits != bits[:, :1]).any())
    if not told_apart:
        return Fraction(1)
    if min(kept, randomizer.flip) == 0:
        raise RefusedError("unverifiable", f"{randomizer.name}: a report that some value never sends reveals that value")
    return Fraction(max(kept, randomizer.flip), min(kept, randomizer.flip))


def _of_table(randomizer: FiniteChannel) -> Fraction:
    _check_size(randomizer, randomizer.cells * randomizer.alphabet * randomizer.domain.size)
    worst = Fraction(1)
    seen: set[tuple[int, int]] = set()
    for cell in range(randomizer.cells):
        most, least = _of_cell(randomizer, cell)
        for high, low in {*zip(most.tolist(), least.tolist(), strict=True)} - seen:
            seen.add((high, low))
            if low == 0 < high:
                raise RefusedError("unverifiable", f"{randomizer.name}: a report that some value never sends reveals that value")
            if high:
                worst = max(worst, Fraction(high, low))
    return worst


def _of_cell(randomizer: FiniteChannel, cell: int) -> tuple[Words, Words]:
    """The largest and the least weight of each report, from the rows of some values at a time: at least one, and so many that they fit into memory."""
    total, values = randomizer.total, randomizer.domain.values()
    step = max(1, _BLOCK * 4 // randomizer.alphabet)
    ends: list[tuple[Words, Words]] = []
    for first in range(0, len(values), step):
        rows = randomizer.channel(cell) if step >= len(values) else randomizer.rows(values[first : first + step], cell)
        sums = rows.sum(axis=1, dtype=np.uint64)  # exact modulo 2^64; the float sum below excludes a whole multiple
        if np.any(sums != np.uint64(total % 2**64)) or np.any(abs(rows.sum(axis=1, dtype=np.float64) / total - 1) > 1e-6):
            raise RefusedError("unverifiable", f"{randomizer.name}: the weights of cell {cell} do not sum to 2^{randomizer.word_bits}")
        ends.append((rows.max(axis=0), rows.min(axis=0)))
    return np.max([most for most, _ in ends], axis=0), np.min([least for _, least in ends], axis=0)


def _of_product(randomizer: BitVector) -> Fraction:
    """The largest product over places of the worst ratio of one bit, over all pairs of values.

    A pair of values counts by how many places hold each pair of symbols, so all pairs of values are one product of matrices for each pair of symbols.
    """
    code, ones, total = randomizer.code, randomizer.ones, 1 << randomizer.word_bits
    values = randomizer.domain.size
    _check_size(randomizer, max(values * values, code.size))
    if code.shape[0] != values or code.min() < 0 or code.max() >= len(ones) or not all(0 <= weight <= total for weight in ones):
        raise RefusedError("unverifiable", f"{randomizer.name}: its code and its weights of a 1 do not fit together")
    used = sorted(set(np.unique(code).tolist()))
    if any(ones[symbol] in (0, total) for symbol in used) and len({ones[symbol] for symbol in used}) > 1:
        raise RefusedError("unverifiable", f"{randomizer.name}: a bit that some value never sends reveals that value")
    worst = {(a, b): max(Fraction(ones[a], ones[b]), Fraction(total - ones[a], total - ones[b])) for a in used for b in used if ones[a] != ones[b]}
    if not worst:
        return Fraction(1)
    holds = {symbol: (code == symbol).astype(np.float32) for symbol in used}
    pairs = np.zeros(values * values, dtype=np.int64)  # for each pair of values, how often each pair of symbols meets, as digits
    base = randomizer.places + 1
    if base ** len(worst) >= 1 << 62 or base > 1 << 23:
        raise RefusedError("unverifiable", f"{randomizer.name}: {len(ones)} symbols at {randomizer.places} places are too many to enumerate")
    for a, b in worst:
        pairs = pairs * base + (holds[a] @ holds[b].T).ravel().astype(np.int64)  # whole numbers below 2^24: exact
    ratio = Fraction(1)
    for key in np.unique(pairs).tolist():
        product = Fraction(1)
        for factor in reversed(worst.values()):
            key, times = divmod(key, base)
            product *= factor**times
        ratio = max(ratio, product)
    return ratio


def exact_epsilon(randomizer: Randomizer) -> float:
    """The exact privacy loss in nats: ln of `exact_ratio`."""
    ratio = exact_ratio(randomizer)
    return math.log1p(float(ratio - 1))


def delta_above(randomizer: FiniteChannel) -> float:
    """The largest Pr[S | u, c] - e^eps Pr[S | u', c] over all coins c, sets S of reports and values u, u', rounded up by at most 1e-9 of it plus 1e-15 e^eps.

    Raises RefusedError("unverifiable") if the channel is too large.
    """
    _check_size(randomizer, randomizer.cells * randomizer.alphabet * randomizer.domain.size)
    growth, worst = float(exp_epsilon(randomizer.nano)) * (1 - 2**-50), 0.0  # three roundings of 2^-53 each stay above it
    for cell in range(randomizer.cells):
        channel = randomizer.channel(cell)
        shares = channel.astype(np.float64)
        for row in shares:
            excess = np.maximum(shares * (1 + 2**-52) - growth * row, 0.0).sum(axis=1)
            worst = max(worst, float(excess.max()))
    return worst / randomizer.total * (1 + 1e-9)


def keeps_loss(randomizer: Randomizer) -> bool:
    """Whether the channel loses at most what one report is charged for. Raises RefusedError("unverifiable") where that cannot be enumerated."""
    if isinstance(randomizer.loss, Pure):
        return exact_ratio(randomizer) <= exp_epsilon(randomizer.nano)
    return isinstance(randomizer, FiniteChannel) and delta_above(randomizer) <= randomizer.loss.delta


def check_loss(randomizer: Randomizer, accepted: frozenset[Evidence] = PROVEN) -> None:
    """Raises RefusedError unless this evidence is accepted ("evidence") and shows a loss of at most the epsilon it charges for ("unverifiable").

    Evidence from a density or an audit cannot be repeated here: where it is accepted it is taken as it is.
    """
    if randomizer.evidence not in accepted:
        raise RefusedError("evidence", f"the loss of {randomizer.name} is {randomizer.evidence}, and this client accepts {', '.join(sorted(accepted))}")
    if not isinstance(randomizer.loss, Pure):
        raise RefusedError("unverifiable", f"{randomizer.name} has delta {randomizer.loss.delta:g}; a client's ledger counts pure privacy")
    if randomizer.evidence in PROVEN and not keeps_loss(randomizer):
        raise RefusedError(
            "unverifiable",
            f"{randomizer.name} claims epsilon {randomizer.epsilon:g} but its channel has {exact_epsilon(randomizer):.9g}",
        )
