"""Whether `respond` is a function of value, word and coin alone, for every value, with reports of
one length; and the calls that it makes."""

import gc
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO, StringIO
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.domains import Vectors
from local_dp.noise import Draw, KeyedNoise
from local_dp.oracles.local.asked import CHUNK
from local_dp.randomizers.randomizer import Randomizer
from local_dp.verification.findings import Finding, Witness, within, words_for

VALUES = 4096  # inputs that are asked one by one, from end to end
ALONE = 1 << 20  # coordinates or words of them
MOST = 1 << 22  # inputs that are asked together
MOST_WORDS = 1 << 24  # of them
REPEATED = 256  # clients whose reports are asked for one by one


def check_behaviour(randomizer: Randomizer) -> tuple[Finding, ...]:
    """Five checks. A failing one ends them, since later ones would fail for the same reason."""
    findings: list[Finding] = []
    for check in (_check_words, _check_answers, _check_calls, _check_repeats, _check_narrow):
        findings.append(check(randomizer))
        if not findings[-1].holds:
            break
    return tuple(findings)


def coins_for(randomizer: Randomizer, n: int, seed: int = 8) -> Words:
    """The used parts of n public coins."""
    return randomizer.cells_of(
        np.random.default_rng(seed).integers(0, 2**64 - 1, n, dtype=np.uint64, endpoint=True)
    )


def _check_words(randomizer: Randomizer) -> Finding:
    """Whether it uses the words of the noise, and all of them: a seed of its own would draw
    others."""
    noise, which = KeyedNoise(3), Draw(1)
    words = Randomizer.draw(randomizer, noise, which, 0, REPEATED)
    if np.array_equal(words, randomizer.draw(noise, which, 0, REPEATED)):
        return Finding("words", True, False, "it draws no randomness of its own")
    sentence = "it draws randomness of its own, which nobody can check"
    return Finding("words", False, True, sentence, _with_own_words(randomizer))


def _with_own_words(randomizer: Randomizer) -> Witness | None:
    """The report that distinguishes the two ends of the domain best, by its own words."""
    n, ends = 4 * REPEATED, randomizer.domain.some(2)[[0, -1]].tolist()
    words = randomizer.draw(KeyedNoise(4), Draw(1), 0, n)
    coins = coins_for(randomizer, 1).repeat(n)
    answers = [np.asarray(randomizer.respond(np.array([end] * n), words, coins)) for end in ends]
    one, other = (Counter(map(bytes, reports)) for reports in answers)
    differences = {report: abs(one[report] - other[report]) for report in one | other}
    report = max(differences, key=differences.__getitem__)
    least, most = sorted((one[report], other[report]))
    low, high = ends if one[report] == most else ends[::-1]
    return Witness((low, high), _text(report), int(coins[0]), most / least if least else None)


def _text(report: bytes) -> str:
    if len(report) == 1:
        return f"report {report[0]}"
    return f"report {report[:8].hex()}{'..' if len(report) > 8 else ''}"


def _most(randomizer: Randomizer) -> int:
    most = VALUES if isinstance(randomizer.domain, Vectors) else MOST
    return max(2, min(most, MOST_WORDS // randomizer.words))


def _batches(randomizer: Randomizer) -> Iterator[Ints]:
    """All inputs, or as many as MOST and MOST_WORDS allow, from end to end, in batches; then some
    one by one."""
    values, size = randomizer.domain.some(_most(randomizer)), max(1, CHUNK // randomizer.words)
    yield from (values[first : first + size] for first in range(0, len(values), size))
    yield from (each[None] for each in randomizer.domain.some(within(randomizer, VALUES, ALONE)))


def _check_answers(randomizer: Randomizer) -> Finding:
    """Every input gets a report of the declared type and length; else the first fault, with an
    input that shows it."""
    dtype, most = randomizer.report_dtype, max(1, CHUNK // randomizer.words)
    if dtype.hasobject:
        sentence = f"its reports are of type {dtype}, which has no fixed length"
        return Finding("length", False, True, sentence)
    words, coins = words_for(randomizer, most), coins_for(randomizer, most)

    def fault(values: Ints) -> tuple[str, str] | None:
        """The check that fails, and how."""
        n = len(values)
        try:
            answers = randomizer.respond(values.copy(), words[:n].copy(), coins[:n])
            reports = np.asarray(answers)
        # the code is somebody else's, and may raise anything
        except (Exception, SystemExit) as error:  # noqa: BLE001
            kind = type(error).__name__
            return "answers", f"fails with {kind}, so that who does not answer tells its value"
        if reports.dtype == dtype.base and reports.shape == (n, *dtype.shape):
            return None
        form = f"{reports.dtype} and shape {list(reports.shape)}"
        return "length", f"gives reports of {form}, where {n} of {dtype} are declared"

    for values in _batches(randomizer):
        if fault(values):
            some = _culprit(fault, values)
            check, sentence = fault(some) or ("answers", "is answered at times and at times not")
            value, ends = some[0].tolist(), randomizer.domain.some(2).tolist()
            other = ends[0] if value != ends[0] else ends[-1]
            which = f"input {value}" if len(some) == 1 else f"a batch of {len(some)} inputs"
            output = f"no report, or one of another form ({check})"
            witness = Witness((value, other), output, 0, None)
            return Finding(check, False, True, f"{which} {sentence}", witness)
    count = min(randomizer.domain.size, _most(randomizer))
    sentence = (
        f"{count} of {randomizer.domain.size} inputs are answered, by reports of {dtype.itemsize} "
        "bytes"
    )
    return Finding("answers", True, count == randomizer.domain.size, sentence)


def _culprit(fault: Callable[[Ints], object], values: Ints) -> Ints:
    """One of these inputs with a fault, by halves; several where no half shows it."""
    while len(values) > 1:
        halves = values[: len(values) // 2], values[len(values) // 2 :]
        some = next((half for half in halves if fault(half)), None)
        if some is None:
            break
        values = some
    return values


def some_clients(randomizer: Randomizer, n: int) -> tuple[Ints, Words, Words]:
    """Inputs, words and coins of n clients."""
    values = np.random.default_rng(9).choice(randomizer.domain.some(VALUES), n)
    return values, words_for(randomizer, n), coins_for(randomizer, n)


def _check_calls(randomizer: Randomizer) -> Finding:
    """While it answers it calls nothing with input or output of its own."""
    values, words, coins = some_clients(randomizer, max(1, min(VALUES, CHUNK // randomizer.words)))
    singles = [slice(place, place + 1) for place in range(min(REPEATED, len(values)))]
    randomizer.respond(values, words, coins)  # what is imported when it is first used is not meant
    for part in (*singles, slice(0, len(values))):
        with watched() as calls:
            randomizer.cells_of(coins[part].astype(np.uint64))
            randomizer.respond(values[part], words[part], coins[part])
        if calls:
            sentence = (
                f"answering, it calls {', '.join(sorted(set(calls)))}: a report may say no more "
                "than its value, its words and its coin do"
            )
            value, coin = values[part][0].tolist(), int(coins[part][0])
            witness = Witness((value, value), f"a call of {calls[0]}", coin, None)
            return Finding("outside", False, True, sentence, witness)
    sentence = "answering, it calls no clock, no entropy, no file and no screen"
    return Finding("outside", True, False, sentence)


def _check_repeats(randomizer: Randomizer) -> Finding:
    """The same words and coins give the same reports: again, in other order, in batches of other
    sizes, and one client by itself."""
    n = max(REPEATED, within(randomizer, CHUNK // randomizer.words))
    values, words, coins = inputs = some_clients(randomizer, n)
    originals = [each.copy() for each in inputs]

    def respond(*parts: Ints) -> Words:
        reports = [randomizer.respond(values[part], words[part], coins[part]) for part in parts]
        return np.ascontiguousarray(np.concatenate(reports))

    order = np.arange(n)
    first = np.ascontiguousarray(randomizer.respond(values, words, coins))
    if not all(map(np.array_equal, inputs, originals)):
        sentence = "it writes into the values, words or coins that it is given"
        witness = _twice(originals[0], 0, "its input", "another one")
        return Finding("repeats", False, True, sentence, witness)
    cuts = sorted({1, REPEATED - 1, n // 3, n - 1})
    batches = (part for part in np.split(order, cuts) if len(part))
    others = {
        "asked again": respond(order),
        "in other order": respond(order[::-1])[::-1],
        "in batches of other sizes": respond(*batches),
        "one by one": respond(*order[:REPEATED, None]),
    }
    for manner, reports in others.items():
        part = first[:REPEATED] if manner == "one by one" else first
        if part.shape != reports.shape or part.tobytes() != reports.tobytes():
            sentence = (
                f"the same inputs, words and coins give other reports {manner}: it keeps a state, "
                "or has a randomness of its own that nobody can check"
            )
            difference = differing(originals[0], part, np.ascontiguousarray(reports))
            return Finding("repeats", False, True, sentence, difference)
    sentence = (
        f"{n} reports are the same when asked again, in other order, in batches of other sizes, "
        f"and {REPEATED} one by one"
    )
    return Finding("repeats", True, False, sentence)


def differing(values: Ints, first: Words, second: Words) -> Witness | None:
    """The first client with two reports."""
    if first.shape != second.shape:
        return None
    one, other = (
        np.ascontiguousarray(each).view(np.uint8).reshape(len(each), -1) for each in (first, second)
    )
    place = int((one != other).any(axis=1).argmax())
    return _twice(values, place, _text(one[place].tobytes()), _text(other[place].tobytes()))


def _twice(values: Ints, place: int, first: str, second: str) -> Witness:
    """One input with two reports for the same word and coin."""
    value = values[place].tolist()
    return Witness((value, value), f"{first}, then {second} by the same word", 0, None)


def _check_narrow(randomizer: Randomizer) -> Finding:
    """Values in narrower types, as queries give them, are the same values."""
    values, words, coins = some_clients(randomizer, REPEATED)
    wide = np.asarray(randomizer.respond(values, words, coins))
    for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32):
        span = np.iinfo(dtype)
        if span.min <= randomizer.domain.low and randomizer.domain.high <= span.max:
            short = np.asarray(randomizer.respond(values.astype(dtype), words, coins))
            if short.shape != wide.shape or short.tobytes() != wide.tobytes():
                kind = np.dtype(dtype)
                sentence = f"values that are {kind} give other reports than the same as int64"
                witness = differing(values, wide, short)
                return Finding("narrow values", False, True, sentence, witness)
    return Finding("narrow values", True, False, "values of fewer bits give the same reports")


OUTSIDE = frozenset(
    {
        "time",
        "posix",
        "nt",
        "random",
        "datetime",
        "io",
        "_io",
        "socket",
        "_socket",
        "signal",
        "resource",
        "select",
        "ctypes",
        "_warnings",
    }
)
_NAMES = frozenset(
    [
        "builtins.print",
        "builtins.input",
        "sys._getframe",
        "sys.getprofile",
        "sys.gettrace",
        "_thread.start_new_thread",
    ]
)


@contextmanager
def watched() -> Iterator[list[str]]:
    """The calls, within the block and in this thread, of compiled functions with input or output of
    their own, by whatever name they were imported."""
    calls: list[str] = []

    def look(frame: FrameType, event: str, function: Any) -> None:
        place = frame.f_globals.get("__name__")
        if event == "call" and place == "os":
            calls.append(f"os.{frame.f_code.co_name}")
        if event == "c_call" and place != __name__:
            home = _home(function)
            name = f"{home}.{function.__name__}"
            if home in OUTSIDE or name in _NAMES:
                calls.append(name)

    before: Callable[..., Any] | None = sys.getprofile()
    collecting = gc.isenabled()
    # a package that times the collector (distributed) would be taken for the randomizer
    gc.disable()
    sys.setprofile(look)
    try:
        yield calls
    finally:
        sys.setprofile(before)
        if collecting:
            gc.enable()


def _home(function: Any) -> str:
    """The module of a compiled function, or of the class whose method it is."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, ModuleType):
        return owner.__name__
    if owner is None or isinstance(owner, StringIO | BytesIO):
        return str(getattr(function, "__module__", None) or "")
    return str(owner.__module__ if isinstance(owner, type) else type(owner).__module__)
