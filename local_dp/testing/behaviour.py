"""Whether `respond` is the function that it has to be: of value, word and coin alone, for every value, of one length."""

from functools import partial

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.noise import Draw, KeyedNoise
from local_dp.randomizers.base import Randomizer
from local_dp.randomizers.bit_vector import BitVector
from local_dp.testing.drawing import words_for
from local_dp.testing.findings import Finding, Witness

VALUES = 4096  # inputs that are asked one by one, from end to end
REPEATED = 256  # clients whose reports are asked for again


def behaviour_found(randomizer: Randomizer) -> tuple[Finding, ...]:
    """Four checks; one that fails leaves out those behind it, which would fail for the same reason."""
    found: list[Finding] = []
    for check in (_words, _answers, _length, _repeats):
        found.append(check(randomizer))
        if not found[-1].holds:
            break
    return tuple(found)


def _inputs(randomizer: Randomizer, most: int) -> Ints:
    """Inputs from end to end."""
    return randomizer.domain.some(most)


def coins_for(randomizer: Randomizer, n: int, seed: int = 8) -> Words:
    """What the randomizer uses of n public coins."""
    return randomizer.cells_of(np.random.default_rng(seed).integers(0, 2**64 - 1, n, dtype=np.uint64, endpoint=True))


def _words(randomizer: Randomizer) -> Finding:
    """It uses the words that it is given, and all of them: a constant seed of its own would draw others."""
    noise, which = KeyedNoise(3), Draw(1)
    honest = partial(BitVector.draw, randomizer) if isinstance(randomizer, BitVector) else partial(Randomizer.draw, randomizer)
    given, own = (draw(noise, which, 0, REPEATED) for draw in (honest, randomizer.draw))
    if not np.array_equal(given, own):
        return Finding("words", False, True, "its words are not those that it is given: it has a randomness of its own that nobody can check")
    return Finding("words", True, False, "its words are those that it is given")


def _against(values: Ints, place: int, output: str) -> Witness | None:
    """The first input at which something happens, against the one before it."""
    return None if place == 0 else Witness((values[place].tolist(), values[place - 1].tolist()), output, 0, None)


def _answers(randomizer: Randomizer) -> Finding:
    """Every input is answered."""
    values = _inputs(randomizer, VALUES)
    words, coins = words_for(randomizer, len(values)), coins_for(randomizer, len(values))
    for place, value in enumerate(values.tolist()):
        try:
            randomizer.respond(values[place : place + 1], words[place : place + 1], coins[place : place + 1])
        except Exception as error:  # noqa: BLE001 - the code is somebody else's, and may raise anything
            return Finding(
                "answers",
                False,
                True,
                f"input {value} makes it fail with {type(error).__name__}, so that who does not answer tells its value",
                _against(values, place, "no report"),
            )
    return Finding("answers", True, len(values) == randomizer.domain.size, f"{len(values)} of {randomizer.domain.size} inputs are answered")


def _length(randomizer: Randomizer) -> Finding:
    """Every report is of the declared type and length."""
    dtype = randomizer.report_dtype
    values = _inputs(randomizer, VALUES)
    words, coins = words_for(randomizer, len(values)), coins_for(randomizer, len(values))
    if dtype.hasobject:
        return Finding("length", False, True, f"its reports are of type {dtype}, which has no fixed length")
    for place, value in enumerate(values.tolist()):
        sent = np.asarray(randomizer.respond(values[place : place + 1], words[place : place + 1], coins[place : place + 1]))
        if sent.shape != (1, *dtype.shape) or sent.dtype.hasobject or not np.array_equal(sent, sent.astype(dtype.base)):
            return Finding(
                "length",
                False,
                True,
                f"input {value} gives a report of {sent.dtype}{list(sent.shape[1:])}, which {dtype} does not hold",
                _against(values, place, "a report of another form"),
            )
    return Finding("length", True, len(values) == randomizer.domain.size, f"every report is {dtype.itemsize} bytes long")


def _repeats(randomizer: Randomizer) -> Finding:
    """The same words and coins give the same reports: again, in other order, and one client by itself."""
    values = np.random.default_rng(9).choice(_inputs(randomizer, VALUES), REPEATED)
    words, coins = words_for(randomizer, REPEATED), coins_for(randomizer, REPEATED)

    def sent(order: Ints) -> Words:
        return np.asarray(randomizer.respond(values[order], words[order], coins[order]))

    order = np.arange(REPEATED)
    first = sent(order)
    alone = np.concatenate([sent(order[place : place + 1]) for place in order.tolist()])
    for told, reports in (("asked again", sent(order)), ("in other order", sent(order[::-1])[::-1]), ("one by one", alone)):
        if first.shape != reports.shape or first.tobytes() != np.ascontiguousarray(reports).tobytes():
            said = f"the same inputs, words and coins give other reports {told}: it keeps a state, or has a randomness of its own that nobody can check"
            return Finding("repeats", False, True, said)
    return Finding("repeats", True, False, f"{REPEATED} reports are the same when asked again, in other order and one by one")
