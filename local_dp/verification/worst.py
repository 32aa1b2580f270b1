"""The exact loss of a declared channel, with two values and a report that reach it; and of all
reports of a session, against every server."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.errors import InputError, RefusedError
from local_dp.loss import NANO, Pure
from local_dp.oracles.local.memory import Speakers
from local_dp.randomizers.evidence import (
    MAX_ENTRIES,
    REVEALS,
    channel_entries,
    corner_rows,
    delta_above,
    exact_ratio,
    extremes,
    too_much,
    unverifiable,
    worst_meeting,
)
from local_dp.randomizers.finite import FiniteChannel, Mixed
from local_dp.randomizers.places import BitVector, PerCoin, PlaceVector
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.with_coin import without_coin
from local_dp.verification.findings import Finding, Witness

_FEW = 1 << 20  # entries of a channel that are looked at first


def check_channel_loss(randomizer: Randomizer) -> tuple[float | None, Finding]:
    """The exact loss in nats, None where it is not finite or there is no channel; and whether it is
    at most the charge of one report."""
    if isinstance(randomizer, FiniteChannel) and _has_delta(randomizer):
        return None, _delta_found(randomizer)
    try:
        ratio = exact_ratio(randomizer)
    except RefusedError as error:
        return None, Finding("loss", False, True, str(error), witness_of(randomizer, None))
    loss = math.log1p(float(ratio - 1))
    wrong = too_much(randomizer, ratio)
    sentence = wrong or (
        f"the exact loss is {loss:.12g} nats, at most the epsilon {randomizer.nano / NANO:.12g} "
        "that is charged"
    )
    return loss, Finding("loss", not wrong, True, sentence, witness_of(randomizer, ratio))


def _has_delta(randomizer: Randomizer) -> bool:
    try:
        return not isinstance(randomizer.loss, Pure)
    except InputError:
        return False  # it claims an epsilon that nobody may


def _delta_found(randomizer: FiniteChannel) -> Finding:
    """For an approximate loss: the delta at its epsilon."""
    try:
        delta = delta_above(randomizer)
    except RefusedError as error:
        return Finding("loss", False, True, str(error))
    holds = delta <= randomizer.loss.delta
    relation = "at most" if holds else "above"
    sentence = (
        f"at epsilon {randomizer.loss.epsilon:.12g} the exact delta is {delta:.9g}, {relation} "
        f"the {randomizer.loss.delta:.9g} that is stated"
    )
    return Finding("loss", holds, True, f"{sentence}; there is no finite loss without a delta")


def witness_of(randomizer: Randomizer, ratio: Fraction | None) -> Witness | None:
    """Two inputs with this ratio; with None, two where one never sends a report of the other, if
    there are such."""
    randomizer = without_coin(randomizer)
    if isinstance(randomizer, PerCoin):
        return witness_of(randomizer.inner, ratio)  # values of the inner channel: codes
    if isinstance(randomizer, BitVector | PlaceVector):
        return _of_places(randomizer)
    if isinstance(randomizer, Mixed) and type(randomizer).weight is Mixed.weight:
        corners = ([corner_rows(randomizer, cell)] for cell in range(randomizer.cells))
        return _of_rows(corners, ratio, randomizer.corners)
    if isinstance(randomizer, FiniteChannel) and channel_entries(randomizer) <= MAX_ENTRIES:
        rows = (_growing(randomizer, cell) for cell in range(randomizer.cells))
        return _of_rows(rows, ratio, extremes(randomizer))
    return None


def _growing(randomizer: FiniteChannel, cell: int) -> Iterator[Words]:
    """The rows of the first few values, then those of all: in a large channel a few values often
    reach the ratio."""
    few, values = _FEW // randomizer.alphabet, extremes(randomizer)
    if 1 < few < len(values):
        yield randomizer.rows(values[:few], cell)
    yield randomizer.rows(values, cell)


def _of_rows(
    cells: Iterable[Iterable[Words]], ratio: Fraction | None, values: Ints
) -> Witness | None:
    """In the first cell that reaches it; the rows are those of `values`, or of the first of
    them."""
    for cell, tables in enumerate(cells):
        for rows in tables:
            witness = worst_of(rows, 0, cell)
            if witness is not None and _reaches(witness.ratio, ratio):
                first, second = (int(values[place]) for place in witness.inputs)
                return replace(witness, inputs=(first, second))
    return None


def _reaches(ratio: float | None, least: Fraction | None) -> bool:
    """None is infinite."""
    if least is None:
        return ratio is None
    return ratio is not None and ratio >= float(least)


def worst_of(channel: Words, low: int, cell: int) -> Witness | None:
    """The largest ratio within one report, for weights of shape (values, reports) from the value
    `low` on; None if all values have one law."""
    most, least = channel.max(axis=0), channel.min(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(most == 0, 1.0, most.astype(np.float64) / least.astype(np.float64))
    report = int(ratios.argmax())
    if ratios[report] <= 1:
        return None
    column = channel[:, report]
    inputs = int(column.argmax()) + low, int(column.argmin()) + low
    ratio = None if least[report] == 0 else int(most[report]) / int(least[report])
    return Witness(inputs, f"report {report}", cell, ratio)


def _of_places(randomizer: BitVector | PlaceVector) -> Witness | None:
    """The pair of values with the largest product of ratios, and the likeliest reports of the first
    against the second; else a bit that one never sends."""
    is_bits = isinstance(randomizer, BitVector)
    try:
        ratio, (first, second) = worst_meeting(randomizer)
    except RefusedError:
        return _of_certain_bit(randomizer) if isinstance(randomizer, BitVector) else None
    if isinstance(randomizer, BitVector):
        channel = [[randomizer.total - one, one] for one in randomizer.ones]
    else:
        channel = randomizer.inner.channel().tolist()
    code, low = randomizer.code, randomizer.domain.low
    rows = [(channel[one], channel[other]) for one, other in code[[first, second]].T.tolist()]
    at = [place for place, (row, against) in enumerate(rows) if row != against][:8]
    if not at:
        return None
    reports = []
    for place in at:
        ratios = [one / max(other, 1) for one, other in zip(*rows[place], strict=True)]
        reports.append(str(ratios.index(max(ratios))))
    text = f"bits {''.join(reports)}" if is_bits else f"reports {', '.join(reports)}"
    output = f"{text} at places {', '.join(map(str, at))}"
    finite = float(ratio) if ratio < 10**300 else None
    return Witness((first + low, second + low), output, 0, finite)


def _of_certain_bit(randomizer: BitVector) -> Witness | None:
    """Two values and a place where one of them never sends a bit that the other may."""
    code, total, low = randomizer.code, randomizer.total, randomizer.domain.low
    if code.ndim != 2 or code.size == 0 or code.min() < 0 or code.max() >= len(randomizer.ones):
        return None
    weights = np.array([min(max(each, 0), total) / total for each in randomizer.ones])[code]
    for bit, never in (("1", weights == 0), ("0", weights == 1)):
        for place in np.flatnonzero(never.any(axis=0) & ~never.all(axis=0)).tolist():
            column = never[:, place]
            inputs = int(column.argmin()) + low, int(column.argmax()) + low
            return Witness(inputs, f"bit {bit} at place {place}", 0, None)
    return None


_SESSION = "enumerated"


def worst_transcript(randomizer: FiniteChannel, rounds: int) -> Fraction:
    """The largest Pr[reports | x] / Pr[reports | x'] over all reports of so many rounds of a
    session, records x and x', and servers.

    A server chooses each question by all earlier reports. So in each round of a transcript it may
    meet any value of x with any of x': the values that the client's own rule (`Speakers`) allows,
    with the whole weights of the channel. Transcripts with the same ratio and the same people
    silent are continued together, so the cost grows with the number of ratios, not with 2^rounds.
    Raises InputError for a randomizer without silence or with coins, RefusedError("unverifiable")
    where a report reveals a record.
    """
    silence = randomizer.silence
    if silence is None or randomizer.uses_coins:
        raise InputError(f"{randomizer.name} takes no part in sessions, or uses a public coin")
    values, channel = randomizer.domain.values(), randomizer.channel().tolist()
    # which of the two answered, as in `Speakers.bits`, and the ratio so far
    states = {(bytes(1), Fraction(1))}
    for _ in range(rounds):
        further = set()
        for (speakers, ratio), pair in product(states, product(values, values)):
            state = Speakers()
            state.restore(_SESSION, speakers)
            answers = state.once_only(_SESSION, silence, np.arange(2), np.array(pair))
            first, second = (channel[place] for place in answers - randomizer.domain.low)
            for one, other in zip(first, second, strict=True):
                if other == 0 < one:
                    raise unverifiable(randomizer, REVEALS)
                if other:
                    further.add((state.bits(_SESSION), ratio * Fraction(one, other)))
        states = further
    return max(ratio for _, ratio in states)
