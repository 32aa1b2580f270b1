"""Whether `respond` follows the declared channel: by every word where words are few, by runs at
full width, or by drawing."""

import math
from dataclasses import dataclass, replace

import numpy as np

from local_dp.arrays import Bools, Floats, Ints, Words
from local_dp.errors import InputError
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.places import BitVector, PerCoin, Places, PlaceVector
from local_dp.randomizers.randomizer import NO_COIN, Randomizer
from local_dp.randomizers.with_coin import WithCoin
from local_dp.verification.bits import check_bits
from local_dp.verification.findings import ALPHA, Finding, Witness, divergence, spread, words_for
from local_dp.verification.worst import worst_of

# of the words that are enumerated: the widest for which the work is small
WIDTHS = (20, 18, 16, 14, 12, 10, 9, 8)
MAX_WORK = 1 << 23  # (value, coin, word) triples enumerated at most
MAX_WALK = 1 << 22  # runs of words walked at most
COINS = 8  # of a whole public coin, that are tried
DRAWN = 1 << 20  # reports drawn, in all
PAIRS = 64  # of value and coin, that reports are drawn for
ENCODED = 4096  # reports of several places behind a coin that are compared

Channel = FiniteChannel | PerCoin


# what a randomizer raises that cannot be built with narrow words
UNFIT = (InputError, ArithmeticError, ValueError)


def check_sampler(randomizer: Randomizer, seed: int = 7, draws: bool = True) -> tuple[Finding, ...]:
    """The exact check where there is one, and the one by drawing; without `draws` only where
    nothing is enumerated."""
    if type(randomizer) is WithCoin:
        return check_own_coin(randomizer, seed), *check_sampler(randomizer.coined, seed, draws)
    unlike = _unlike_inner(randomizer, seed) if isinstance(randomizer, PerCoin) else None
    if unlike is not None:
        return (unlike,)
    if isinstance(randomizer, PlaceVector) or (
        isinstance(randomizer, PerCoin) and _is_inner(randomizer)
    ):
        return check_sampler(randomizer.inner, seed, draws)
    if isinstance(randomizer, BitVector):
        return (check_bits(randomizer, seed),)
    if not isinstance(randomizer, FiniteChannel | PerCoin):
        return ()
    exact = _every_word(randomizer)
    runs, odd = _runs(randomizer) if isinstance(randomizer, FiniteChannel) else (None, None)
    findings = [each for each in (exact, runs) if each is not None]
    some = [odd] if odd is not None else []
    if draws or not findings:
        some.append(pairs_of(randomizer, PAIRS))
    if some:
        drawn_findings = [check_drawn(randomizer, pairs, seed) for pairs in some]
        findings.append(min(drawn_findings, key=lambda each: each.holds))
    return tuple(findings)


def _is_inner(randomizer: PerCoin) -> bool:
    """True if a report is the inner channel's report of the code, so that its sampler is enough: as
    inherited, or of places, which were compared."""
    return isinstance(randomizer.inner, Places) or (
        type(randomizer).respond is PerCoin.respond and not isinstance(randomizer, FiniteChannel)
    )


def check_own_coin(randomizer: WithCoin, seed: int) -> Finding:
    """Whether the coin sent along is that of the words, whatever the value, and the report that of
    the inner randomizer under it."""
    inner, values = randomizer.coined, randomizer.domain.some(PAIRS)
    words = np.repeat(words_for(randomizer, PAIRS, seed), len(values), axis=0)
    inputs, own = np.concatenate([values] * PAIRS), words[:, randomizer.words - inner.words :]
    right = randomizer.coins(words)
    coins, reports = randomizer.parts(randomizer.respond(inputs, words, NO_COIN))
    expected = inner.respond(inputs, own[:, 0] if own.shape[1] == 1 else own, right)
    some = f"of {len(inputs):,} reports"
    if np.array_equal(coins, right) and np.array_equal(reports, expected):
        sentence = (
            f"{some} the coin is that of the words, and the rest what {randomizer.inner} says "
            "under it"
        )
        return Finding("coin", True, False, sentence)
    sentence = f"{some} some are not those of {randomizer.inner} under the coin of their words"
    return Finding("coin", False, False, sentence)


def _unlike_inner(randomizer: PerCoin, seed: int) -> Finding | None:
    """A drawn report that is not the inner channel's of the code, or None. To differ under most
    coins is no fault, unless reports have several places."""
    if type(randomizer).respond is PerCoin.respond:
        return None
    generator, some = np.random.default_rng(seed), randomizer.domain.some(4 * PAIRS)
    vector = isinstance(randomizer.inner, Places)
    n = ENCODED if vector else DRAWN // some[0].size
    values = generator.choice(some, n)
    coins = generator.integers(0, 2**64 - 1, n, dtype=np.uint64, endpoint=True)
    words = words_for(randomizer, n, seed + 1)
    reports = np.asarray(randomizer.respond(values, words, coins))
    differ = reports != PerCoin.respond(randomizer, values, words, coins)
    wrong = np.flatnonzero(differ.reshape(n, -1).any(axis=1))
    if vector:
        sentence = (
            f"{len(wrong)} of {n:,} reports are not those of the inner vector for the code of the "
            "input"
        )
        return Finding("sampler, compared", False, False, sentence) if len(wrong) else None
    if not 0 < 2 * len(wrong) <= n:
        return None
    inputs = randomizer.domain.some(64)
    pairs = Pairs(inputs, np.repeat(coins[wrong[0]], len(inputs)), False)
    counts = counted(randomizer, pairs, words[: n // 64])
    sentence = (
        f"under {len(wrong)} of {n:,} public coins a report is not its inner channel's; under the "
        "others it is"
    )
    witness = _worst_count(counts, pairs.values, int(coins[wrong[0]]))
    return Finding("sampler, compared", False, True, sentence, witness)


@dataclass(frozen=True)
class Pairs:
    """Pairs of value and public coin, sorted by coin; `whole` is whether they are all there are."""

    values: Ints
    coins: Words
    whole: bool

    def __len__(self) -> int:
        return len(self.values)


def pairs_of(randomizer: Channel, most: int) -> Pairs:
    """All pairs if they are few enough, or else values and coins from end to end."""
    size = randomizer.domain.size
    if isinstance(randomizer, FiniteChannel):
        whole = size * randomizer.cells <= most
        coins = spread(randomizer.cells, randomizer.cells if whole else COINS).astype(np.uint64)
    else:
        whole = size * COINS <= most
        inside = np.random.default_rng(1).integers(0, 2**63, COINS - 2, np.uint64)
        coins = np.concatenate([np.array([0, 2**64 - 1], np.uint64), inside])
    values = randomizer.domain.some(size if whole else max(2, most // len(coins)))
    return Pairs(np.concatenate([values] * len(coins)), np.repeat(coins, len(values)), whole)


def declared(randomizer: Channel, values: Ints, coins: Words) -> Words:
    """The weight of each report for each pair, shape (pairs, alphabet)."""
    if isinstance(randomizer, PerCoin):
        inner = _inner(randomizer)
        codes = inner.domain.clip(randomizer.encode(values, coins))
        return declared(inner, codes, np.zeros(len(codes), dtype=np.uint64))
    reports, cells = np.arange(randomizer.alphabet, dtype=np.int64), coins.astype(np.int64)
    weights = randomizer.weight(reports[None, :], values[:, None], cells[:, None])
    return weights.astype(np.uint64)


def _alphabet(randomizer: Channel) -> int:
    return _inner(randomizer).alphabet if isinstance(randomizer, PerCoin) else randomizer.alphabet


def _inner(randomizer: PerCoin) -> FiniteChannel:
    assert isinstance(randomizer.inner, FiniteChannel)  # bits behind a coin are looked at elsewhere
    return randomizer.inner


def counted(randomizer: Channel, pairs: Pairs, words: Words) -> Ints:
    """How often each report is sent under these words, shape (pairs, alphabet + 1), the last for
    impossible ones; words (n,) for all pairs, or (pairs, n)."""
    n, kinds, times = len(pairs), _alphabet(randomizer) + 1, words.shape[-1]
    block = max(1, (1 << 20) // times)
    counts = np.zeros((n, kinds), dtype=np.int64)
    for first in range(0, n, block):
        part = slice(first, first + block)
        values, coins = pairs.values[part], pairs.coins[part]
        own = np.tile(words, len(values)) if words.ndim == 1 else words[part].ravel()
        reports = randomizer.respond(np.repeat(values, times, axis=0), own, np.repeat(coins, times))
        kind = reports.astype(np.int64)
        kind[(kind < 0) | (kind >= kinds)] = kinds - 1
        kind += np.repeat(np.arange(len(values)) * kinds, times)
        counts[part] = np.bincount(kind, minlength=len(values) * kinds).reshape(-1, kinds)
    return counts


def _narrow(randomizer: Channel) -> tuple[Channel, Pairs] | None:
    """The randomizer on the widest words that can all be enumerated for all pairs; if there are
    none, on the narrowest, for some pairs."""
    last = None
    for bits in WIDTHS:
        try:
            narrow = replace(randomizer, word_bits=bits)
        except UNFIT:
            continue
        if narrow.word_bits != bits:
            return None  # it takes words of one width only
        pairs = pairs_of(narrow, MAX_WORK >> bits)
        if _alphabet(narrow) * len(pairs) > MAX_WORK:
            continue
        last = narrow, pairs
        if pairs.whole:
            break
    return last


def _every_word(randomizer: Channel) -> Finding | None:
    """Over all words of a small width each report occurs exactly as often as its weight says; None
    if no width is small enough."""
    choice = _narrow(randomizer)
    if choice is None:
        return None
    narrow, pairs = choice
    counts = counted(narrow, pairs, np.arange(1 << narrow.word_bits, dtype=np.uint32))
    weights = declared(narrow, pairs.values, pairs.coins).astype(np.int64)
    wrong = (counts[:, :-1] != weights).any(axis=1) | (counts[:, -1] > 0)
    is_finite = isinstance(randomizer, FiniteChannel)
    coins = "public coin" if is_finite else f"one of {COINS} public coins"
    where = (
        f"all words of {narrow.word_bits} bits and {'all' if pairs.whole else len(pairs)} pairs "
        f"of input and {coins}"
    )
    if not wrong.any():
        # for the coins that are not tried
        by_proof = is_finite or type(randomizer).respond is PerCoin.respond
        sentence = f"over {where} each report occurs exactly as often as declared"
        return Finding("sampler, enumerated", True, pairs.whole and by_proof, sentence)
    pair = int(wrong.argmax())
    coin, value = int(pairs.coins[pair]), pairs.values[pair].tolist()
    weight_of = np.append(weights[pair], 0)  # of an impossible report
    odd = (counts[pair] != weight_of).argmax()
    report = len(weight_of) - 1 if counts[pair, -1] else int(odd)
    sentence = (
        f"over {where}, input {value} sends report {report} {counts[pair, report]} times where "
        f"{weight_of[report]} are declared"
    )
    same = pairs.coins == pairs.coins[pair]
    witness = _worst_count(counts[same], pairs.values[same], coin)
    return Finding("sampler, enumerated", False, True, sentence, witness)


def _worst_count(counts: Ints, values: Ints, coin: int) -> Witness | None:
    """The largest ratio of counts within one report, shape (values, reports)."""
    witness = worst_of(counts.astype(np.uint64), 0, coin)
    if witness is None:
        return None
    first, second = witness.inputs
    return replace(witness, inputs=(values[first].tolist(), values[second].tolist()))


def _runs(randomizer: FiniteChannel) -> tuple[Finding | None, Pairs | None]:
    """Whether at full width each report's words are one run of its weight's length; and the pairs
    that differ from most in this, no fault, but drawn."""
    pairs = pairs_of(randomizer, MAX_WALK // randomizer.alphabet)
    odd = np.flatnonzero(_broken_runs(randomizer, pairs))
    if len(odd) == 0:
        inputs = "all" if pairs.whole else len(pairs)
        sentence = (
            f"at {randomizer.word_bits} bits, for {inputs} pairs of input and public coin, each "
            "report changes to the next at the word that is declared"
        )
        return Finding("sampler, boundaries", True, False, sentence), None
    if 2 * len(odd) > len(pairs):
        return None, None
    others = np.setdiff1d(np.arange(len(pairs)), odd)
    # one for each coin, to be compared with
    beside = others[np.unique(pairs.coins[others], return_index=True)[1]]
    beside = beside[np.isin(pairs.coins[beside], pairs.coins[odd])]
    some = np.concatenate([odd[spread(len(odd), PAIRS)], beside[:PAIRS]])
    return None, Pairs(pairs.values[some], pairs.coins[some], False)


def _broken_runs(randomizer: FiniteChannel, pairs: Pairs) -> Bools:
    """The pairs for which a walk from word 0 meets a wrong run: not as long as its weight, at its
    end or midway, or a second run of a report."""
    dtype, last = np.dtype(f"u{randomizer.width // 8}"), np.uint64(randomizer.total - 1)
    n, one = len(pairs), np.uint64(1)
    places, cells = np.arange(n), pairs.coins.astype(np.int64)
    start, odd = np.zeros(n, dtype=np.uint64), np.zeros(n, dtype=np.bool_)
    goes_on, visits = ~odd, np.zeros((n, randomizer.alphabet), dtype=np.bool_)
    values, coins = np.tile(pairs.values, 3), np.tile(pairs.coins, 3)
    report = randomizer.respond(pairs.values, start.astype(dtype), pairs.coins).astype(np.int64)
    while goes_on.any():
        inside = np.clip(report, 0, randomizer.alphabet - 1)
        weight = randomizer.weight(inside, pairs.values, cells).astype(np.uint64)
        end = start + weight - one
        wrong = (report != inside) | visits[places, inside] | (weight == 0)
        wrong |= (end < start) | (end > last)
        probes = np.concatenate([end, start + weight // np.uint64(2), end + one])
        words = np.minimum(probes, last).astype(dtype)
        reports = randomizer.respond(values, words, coins).astype(np.int64)
        at_end, midway, after = reports.reshape(3, -1)
        wrong |= (at_end != report) | (midway != report)
        odd |= goes_on & wrong
        visits[places, inside] = True
        goes_on &= ~wrong & (end < last)
        start, report = end + one, after
    return odd


def check_drawn(randomizer: Channel, pairs: Pairs, seed: int) -> Finding:
    """Whether the share of each report, and of all reports of about the same weight, is the
    declared one at full width.

    By the Chernoff-Hoeffding bound Pr[n KL(seen, p) >= t] <= 2 e^-t for a sum of n independent bits
    of mean probability p, whatever n.
    """
    each = DRAWN // len(pairs)
    words = words_for(randomizer, each * len(pairs), seed).reshape(len(pairs), each)
    counts = counted(randomizer, pairs, words)
    weights = declared(randomizer, pairs.values, pairs.coins).astype(np.float64)
    shares = np.pad(weights / 2.0**randomizer.word_bits, ((0, 0), (0, 1)))
    rates, expected = _pools(counts, shares)
    bar = math.log(2 * (counts.size + len(rates)) / ALPHA)
    far = each * divergence(counts / each, shares)
    together = each * len(pairs) * divergence(rates, expected)
    holds = bool(max(far.max(), together.max()) <= bar)
    sentence = (
        f"of {each * len(pairs):,} reports drawn at full width, {'no' if holds else 'some'} share "
        f"is further from the declared one than chance allows with probability {ALPHA:g}"
    )
    if holds:
        return Finding("sampler, drawn", True, False, sentence)
    pair, report = (int(place) for place in np.unravel_index(int(far.argmax()), far.shape))
    rate, share = counts[pair, report] / each, shares[pair, report]
    sentence += (
        f": input {pairs.values[pair]} sends report {report} with share {rate:.6g} where "
        f"{share:.6g} is declared"
    )
    witness = _seen_witness(pairs, counts[:, report], pair, report)
    return Finding("sampler, drawn", False, False, sentence, witness)


def _seen_witness(pairs: Pairs, counts: Ints, pair: int, report: int) -> Witness | None:
    """That pair's input and the one that sent the report most differently under the same coin, with
    the ratio of the counts."""
    same = np.flatnonzero(pairs.coins == pairs.coins[pair])
    most, least = int(same[counts[same].argmax()]), int(same[counts[same].argmin()])
    is_high = counts[pair] - counts[least] >= counts[most] - counts[pair]
    first, second = (pair, least) if is_high else (most, pair)
    if counts[first] == counts[second]:
        return None
    ratio = None if counts[second] == 0 else float(counts[first] / counts[second])
    inputs = pairs.values[first].tolist(), pairs.values[second].tolist()
    return Witness(inputs, f"report {report}", int(pairs.coins[pair]), ratio)


def _pools(counts: Ints, shares: Floats) -> tuple[Floats, Floats]:
    """Observed and declared share of the reports of about the same weight, over all pairs: a fault
    of every input adds up."""
    with np.errstate(divide="ignore"):
        kinds = np.where(shares > 0, np.rint(4 * np.log2(shares)), -1000)
    groups = [kinds == kind for kind in np.unique(kinds)]
    rates = np.array([counts[group].sum() for group in groups]) / counts.sum()
    return rates, np.array([shares[group].sum() for group in groups]) / len(shares)
