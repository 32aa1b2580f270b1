"""The exact loss of a declared channel, with the two values and the report at which it is reached."""

import math
from fractions import Fraction

import numpy as np

from local_dp.arrays import Words
from local_dp.errors import RefusedError
from local_dp.loss import NANO, Pure, exp_epsilon
from local_dp.randomizers.base import Randomizer
from local_dp.randomizers.bit_vector import BitVector
from local_dp.randomizers.evidence import MAX_ENTRIES, delta_above, exact_ratio
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.per_coin import PerCoin
from local_dp.testing.findings import Finding, Witness


def loss_found(randomizer: Randomizer) -> tuple[float | None, Finding]:
    """The exact loss in nats, None where it is not finite or the channel is none, and whether it is at most what one report is charged for."""
    if isinstance(randomizer, FiniteChannel) and not isinstance(randomizer.loss, Pure):
        return None, _delta_found(randomizer)
    try:
        ratio = exact_ratio(randomizer)
    except RefusedError as error:
        return None, Finding("loss", False, True, str(error), witness_of(randomizer, None))
    loss = math.log1p(float(ratio - 1))
    holds = ratio <= exp_epsilon(randomizer.nano)
    told = "at most" if holds else "above"
    said = f"the exact loss is {loss:.12g} nats, {told} the epsilon {randomizer.nano / NANO:.12g} that is charged"
    return loss, Finding("loss", holds, True, said, witness_of(randomizer, ratio))


def _delta_found(randomizer: FiniteChannel) -> Finding:
    """Of an approximate loss: the delta at its epsilon."""
    try:
        delta = delta_above(randomizer)
    except RefusedError as error:
        return Finding("loss", False, True, str(error))
    holds = delta <= randomizer.loss.delta
    told = "at most" if holds else "above"
    said = f"at epsilon {randomizer.loss.epsilon:.12g} the exact delta is {delta:.9g}, {told} the {randomizer.loss.delta:.9g} that is stated"
    return Finding("loss", holds, True, f"{said}; there is no finite loss without a delta")


def witness_of(randomizer: Randomizer, ratio: Fraction | None) -> Witness | None:
    """Where the channel has this ratio; with None, where some report is sent by some values only, if it is anywhere."""
    if isinstance(randomizer, PerCoin):
        return witness_of(randomizer.inner, ratio)  # values of the inner channel: codes
    if isinstance(randomizer, BitVector):
        return _of_product(randomizer)
    if isinstance(randomizer, FiniteChannel) and randomizer.cells * randomizer.alphabet * randomizer.domain.size <= MAX_ENTRIES:
        return _of_table(randomizer, ratio)
    return None


def _of_table(randomizer: FiniteChannel, ratio: Fraction | None) -> Witness | None:
    """In the first cell where it is reached."""
    low = randomizer.domain.low
    for cell in range(randomizer.cells):
        found = worst_of(randomizer.channel(cell), low, cell)
        if found is not None and (found.ratio is None if ratio is None else found.ratio is not None and found.ratio >= float(ratio)):
            return found
    return None


def worst_of(channel: Words, low: int, cell: int) -> Witness | None:
    """The largest ratio within one report, for weights of shape (values, reports) from the value `low` on; None if no report tells values apart."""
    most, least = channel.max(axis=0), channel.min(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(most == 0, 1.0, most.astype(np.float64) / least.astype(np.float64))
    report = int(ratios.argmax())
    if ratios[report] <= 1:
        return None
    inputs = int(channel[:, report].argmax()) + low, int(channel[:, report].argmin()) + low
    ratio = None if least[report] == 0 else int(most[report]) / int(least[report])
    return Witness(inputs, f"report {report}", cell, ratio)


def _of_product(randomizer: BitVector) -> Witness | None:
    """The pair of values with the largest product of ratios, and the bits by which the first is told from the second."""
    code, ones, total = randomizer.code, randomizer.ones, 1 << randomizer.word_bits
    used = sorted(set(np.unique(code).tolist()))
    if code.shape[0] ** 2 > MAX_ENTRIES or not (used[0] >= 0 and used[-1] < len(ones) and all(0 <= ones[symbol] <= total for symbol in used)):
        return None
    holds = {symbol: (code == symbol).astype(np.float64) for symbol in used}
    sums = np.zeros((len(code), len(code)))
    for a in used:
        for b in used:
            sums += np.multiply(holds[a] @ holds[b].T, _bit_loss(ones[a], ones[b], total)) if ones[a] != ones[b] else 0.0
    if sums.max() <= 0:
        return None
    first, second = (int(place) for place in np.unravel_index(sums.argmax(), sums.shape))
    bits = "".join("1" if ones[a] > ones[b] else "0" for a, b in zip(code[first], code[second], strict=True) if ones[a] != ones[b])
    at = [str(place) for place in np.flatnonzero(code[first] != code[second])[:8]]
    ratio = float(np.exp(sums[first, second]))
    return Witness(
        (first + randomizer.domain.low, second + randomizer.domain.low), f"bits {bits[:8]} at places {', '.join(at)}", 0, ratio if ratio < 1e300 else None
    )


def _bit_loss(a: int, b: int, total: int) -> float:
    """The larger log-ratio of a bit that is 1 with weight a against one with weight b; a large number where it is infinite."""
    return max(math.log(high / low) if low else 1e6 if high else 0.0 for high, low in ((a, b), (total - a, total - b)))
