"""The acceptance tests of randomizers: exact losses at every size, samplers as fractions, and no noise in floating point in private."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp, log, prod
from typing import Any, ClassVar

import numpy as np
import pytest

from local_dp.arrays import Ints, Words
from local_dp.clients.journal import MemoryStore
from local_dp.clients.role import ClientRole, Policy
from local_dp.domains import Vectors
from local_dp.errors import InputError
from local_dp.loss import Pure, exp_epsilon
from local_dp.noise import Draw, KeyedNoise, Noise, SystemNoise, public_coins, stream_key
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.tables import Question
from local_dp.randomizers.bit_vector import BitVector
from local_dp.randomizers.evidence import PROVEN, exact_ratio, keeps_loss
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.thresholded import STEPS, THE, best_threshold
from local_dp.randomizers.numbers.discrete_laplace import DiscreteLaplace
from local_dp.randomizers.numbers.rounded_oracle import RoundedOracle
from local_dp.randomizers.per_coin import PerCoin
from local_dp.randomizers.randomizer import Evidence, Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.repeated.loloha import LOLOHA
from local_dp.randomizers.repeated.memoised import MemoisedGRR, MemoisedRAPPOR
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.randomizers.with_coin import WithCoin
from local_dp.wire import Refusal, Reply
from tests.support.adversaries.zoo import OpaqueNoise
from tests.support.figures import figure
from tests.support.inputs.builders import request, yes_records
from tests.support.long import short

EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
SIZES = (2, 3, 8, 64, 256)
SLACK = 1e-6  # nats that rounding may cost; each built-in one's docstring says why it costs no more
OF_SIZE: dict[str, Callable[[int], dict[str, Any]]] = {
    "binary-rr": lambda k: {},
    **dict.fromkeys(("grr", "hadamard", "signed-hadamard", "prefix-signs", "sue", "oue", "subset-selection"), lambda k: {"k": k}),
    **dict.fromkeys(("one-bit-mean", "discrete-laplace"), lambda k: {"steps": k - 1}),
    **dict.fromkeys(("rounded-grr", "rounded-hadamard"), lambda k: {"groups": k, "steps": 3}),
    "rounded-oracle": lambda k: {"groups": k, "steps": 4},
    **dict.fromkeys(("characters", "deny"), lambda k: {"d": (k - 1).bit_length()}),
    "discrete-gaussian": lambda k: {"steps": k - 1, "delta": 0.01},
    "count-mean-sketch": lambda k: {"k": k, "m": 2 if k < 5 else 4},
    "d-bit-flip": lambda k: {"k": k, "d": min(2, k)},
    **dict.fromkeys(("duchi-vector", "random-coordinate", "nearest-direction", "sampled-signs"), lambda k: {"d": k.bit_length() - 1, "steps": 1}),
}
COINS = public_coins(stream_key("coins", 3, 1), 0, 24)  # of randomizers that use all of a coin


def of_size(name: str, epsilon: float, k: int) -> Randomizer:
    """The built-in randomizer of this name for k values, or as many groups, or the bits that number them; by default parameters where it is not known."""
    sized = OF_SIZE[name](k) if name in OF_SIZE else {}
    return RANDOMIZERS.build(name, {"epsilon": epsilon, **sized})


PROVEN_ONES = [name for name in RANDOMIZERS.built_in if RANDOMIZERS[name].evidence in PROVEN]
PURE = [name for name in PROVEN_ONES if isinstance(of_size(name, 1.0, 2).loss, Pure)]


def enumerable(randomizer: Randomizer) -> bool:
    """Whether it is a table or a vector of bits, or one of them behind a coin; other products of channels have tests of their own, and `with-coin` too."""
    inner = randomizer.inner if isinstance(randomizer, PerCoin) else randomizer
    return isinstance(inner, FiniteChannel | BitVector) and not isinstance(randomizer, WithCoin)


ENUMERABLE = [name for name in PROVEN_ONES if enumerable(of_size(name, 1.0, 2))]


def stated_loss(randomizer: Randomizer) -> float:
    """Epsilon; of a memoised answer that of one report, and of thresholded histogram encoding, whose bits keep less than its noise would tell, of its bits,
    by the closed forms that their docstrings state."""
    if isinstance(randomizer, MemoisedGRR | MemoisedRAPPOR | LOLOHA):
        return (randomizer.inner if isinstance(randomizer, LOLOHA) else randomizer).loss_after(1)
    if isinstance(randomizer, RoundedOracle):
        return log(exact_ratio(randomizer.inner))  # the oracle's, in the 32 bits that it has of a word
    if not isinstance(randomizer, THE):
        return randomizer.epsilon
    t = best_threshold(randomizer.nano) / STEPS
    other, missed = exp(-t * randomizer.epsilon / 2) / 2, exp(-(1 - t) * randomizer.epsilon / 2) / 2
    return log((1 - missed) * (1 - other) / (other * missed))


@pytest.mark.parametrize("name", short(PURE, lambda name: name != "rounded-oracle"))
def test_the_exact_loss_is_the_declared_one(name: str) -> None:
    """Reliability 12: at five sizes and eight epsilons the exact ratio is at most e^epsilon, as a fraction, and the loss at least epsilon - 1e-6."""
    for k in SIZES:
        for epsilon in EPSILONS:
            randomizer = of_size(name, epsilon, k)
            ratio = exact_ratio(randomizer)
            assert ratio <= exp_epsilon(randomizer.nano), (k, epsilon)
            assert log(ratio) >= stated_loss(randomizer) - SLACK, (k, epsilon)
    figure(12, f"{len(PURE)} randomizers at {len(SIZES)} sizes and {len(EPSILONS)} epsilons: each exact ratio at most e^epsilon, none lower than is said")


def rows(randomizer: Randomizer, value: int) -> list[dict[int, Fraction]]:
    """Under each coin, the reports that `value` sends over all words, each word as likely."""
    words = np.arange(1 << randomizer.word_bits, dtype=np.uint32)
    told = []
    for coin in coins_of(randomizer):
        sent = randomizer.respond(np.repeat(np.array([value]), len(words), axis=0), words, np.full(len(words), coin)).tolist()
        told.append({report: Fraction(sent.count(report), len(words)) for report in set(sent)})
    return told


def coins_of(randomizer: Randomizer) -> Words:
    """Every cell of a public coin; of a whole coin, some small ones, and some of any size where values are vectors or reports are bits."""
    if not isinstance(randomizer, PerCoin):
        return np.arange(randomizer.cells if isinstance(randomizer, FiniteChannel) else 1, dtype=np.uint64)
    small = np.arange(2 * randomizer.inner.k if hasattr(randomizer.inner, "k") else 64, dtype=np.uint64)
    wide = isinstance(randomizer.domain, Vectors) or isinstance(randomizer.inner, BitVector)
    return randomizer.cells_of(np.concatenate([small, COINS]) if wide else small)


def declared(randomizer: Randomizer, value: int) -> list[dict[int, Fraction]]:
    """The same by the declared weights."""
    if isinstance(randomizer, PerCoin):
        coins = coins_of(randomizer)
        return [declared(randomizer.inner, int(randomizer.encode(np.array([value]), coins[at : at + 1])[0]))[0] for at in range(len(coins))]
    assert isinstance(randomizer, FiniteChannel)
    told = []
    for cell in range(randomizer.cells):
        weights = randomizer.channel(cell)[value - randomizer.domain.low].tolist()
        told.append({report: Fraction(weight, randomizer.total) for report, weight in enumerate(weights) if weight})
    return told


def narrowed(name: str, k: int) -> Randomizer:
    """On the narrowest words that tell its values apart. Raises StopIteration where it takes wide ones only, which no enumeration reaches."""

    def made(bits: int) -> Randomizer | None:
        try:
            return replace(of_size(name, 1.0, k), word_bits=bits)
        except InputError:
            return None

    return next(each for each in map(made, range(4, 17)) if each is not None)


@pytest.mark.parametrize("k", [2, 3, 5, 8])
@pytest.mark.parametrize("name", ENUMERABLE)
def test_the_enumerated_sampler_is_the_declared_matrix(name: str, k: int) -> None:
    """Reliability 13: over all words and coins each value sends each report exactly as often as declared, as fractions."""
    randomizer = narrowed(name, k)
    values = randomizer.domain.values().tolist()
    if isinstance(randomizer, BitVector):
        assert all(bits_over_all_words(randomizer, value) for value in values)
    elif isinstance(randomizer, PerCoin) and isinstance(randomizer.inner, BitVector):
        assert all(bits_over_all_words(randomizer.inner, code) for code in randomizer.inner.domain.values().tolist())
        assert all(sends_its_codes(randomizer, value) for value in values)
    else:
        assert [rows(randomizer, value) for value in values] == [declared(randomizer, value) for value in values]
    assert keeps_loss(randomizer)
    figure(13, f"{len(ENUMERABLE)} randomizers, k in 2, 3, 5, 8: over all words each report comes as often as declared")


def sends_its_codes(randomizer: PerCoin, value: int) -> bool:
    """Whether behind each coin the reports of this value are those of its code, by drawn words."""
    coins, none = np.repeat(coins_of(randomizer), 50), np.zeros(1, dtype=np.uint8)
    values, words = np.full(len(coins), value), randomizer.draw(KeyedNoise(6), Draw(1), 0, len(coins))
    codes = randomizer.encode(values, coins)
    right = np.isin(codes, randomizer.inner.domain.values()).all()
    return bool(right) and np.array_equal(randomizer.respond(values, words, coins), randomizer.inner.respond(codes, words, none))


def bits_over_all_words(randomizer: BitVector, value: int) -> bool:
    """Whether at each place, over all words of its own and some of the others, the bit is 1 as often as declared; for two places, over all words together."""
    total, places = 1 << randomizer.word_bits, randomizer.places
    weights = [randomizer.ones[symbol] for symbol in randomizer.code[value - randomizer.domain.low].tolist()]
    for place, weight in enumerate(weights):
        for other in (0, total // 2, total - 1):
            words = np.full((total, places), other, dtype=np.uint32)
            words[:, place] = np.arange(total)
            if int(sent_bits(randomizer, value, words)[:, place].sum()) != weight:
                return False
    if places > 2:
        return True
    words = np.stack(np.meshgrid(*[np.arange(total, dtype=np.uint32)] * places), axis=-1).reshape(-1, places)
    sent = sent_bits(randomizer, value, words)
    for report in np.ndindex(*[2] * places):
        share = Fraction(int((sent == np.array(report)).all(axis=1).sum()), len(words))
        if share != prod((Fraction(weight if bit else total - weight, total) for bit, weight in zip(report, weights, strict=True)), start=Fraction(1)):
            return False
    return True


def sent_bits(randomizer: BitVector, value: int, words: Words) -> np.ndarray:
    """The bits of reports, shape (reports, places)."""
    sent = randomizer.respond(np.full(len(words), value), words, np.zeros(1, dtype=np.uint8))
    return np.unpackbits(sent, axis=1, count=randomizer.places, bitorder="little")


@dataclass(frozen=True, kw_only=True)
class OffByOne(BinaryRR):
    """Flips for one word too few."""

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return super().respond(values, words + words.dtype.type(1), cells)


def test_a_sampler_off_by_one_word_is_not_the_declared_matrix() -> None:
    """The wrong twin of the enumeration above."""
    twin = OffByOne(1.0, word_bits=6)
    assert rows(twin, 1) != declared(twin, 1)


# --- floating point in private ---------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class FloatLaplace(OpaqueNoise):
    """Textbook Laplace noise on a bit, proved from its density."""

    name: ClassVar[str] = "float-laplace"
    evidence: ClassVar[Evidence] = "density"
    k: int = 2


@dataclass(frozen=True, kw_only=True)
class AuditedLaplace(FloatLaplace):
    """The same, which says that it was audited."""

    name: ClassVar[str] = "audited-laplace"
    evidence: ClassVar[Evidence] = "audited"


@pytest.mark.parametrize("kind", [FloatLaplace, AuditedLaplace])
def test_floating_point_laplace_is_refused_in_private(kind: type[Randomizer], monkeypatch: pytest.MonkeyPatch) -> None:
    """Reliability 15: whatever evidence a client's policy accepts, in private it does not answer by noise in floats; a simulation may."""
    monkeypatch.setitem(RANDOMIZERS._loaded, kind.name, kind)
    asked = request(LocalQuery(Question("yes == 1"), kind(1.0), Cohort(0, 3)))

    def answer(noise: Noise, *evidence: Evidence) -> Reply | Refusal:
        accepted = Policy(None, PROVEN | frozenset(evidence))
        return ClientRole("host-0", 0, yes_records(3), noise, MemoryStore(1.0), accepted).handle(asked)[0]

    private = answer(SystemNoise(), "density", "audited")
    assert isinstance(private, Refusal)
    assert private.code == "evidence"
    assert isinstance(answer(KeyedNoise(1), "density", "audited"), Reply)
    assert isinstance(answer(KeyedNoise(1)), Refusal), "by default no density and no audit is accepted"
    figure(15, f"in private {kind.name} is refused, whatever a client accepts")


def exclusive(randomizer: Randomizer, first: int, second: int, n: int = 100_000) -> int:
    """How many of n reports of `first` are of a kind that `second` does not send in n; both answer from the system's entropy."""
    noise = SystemNoise()
    words = [randomizer.draw(noise, Draw(1), 0, n) for _ in range(2)]
    one, other = (randomizer.respond(np.full(n, value), each, np.zeros(1, dtype=np.uint8)) for value, each in zip((first, second), words, strict=True))
    kinds, counts = np.unique(one, return_counts=True)
    often = counts >= 100  # at epsilon 1 the other sends 36 of these on average, and none with probability 1e-15
    return int(counts[(often | (len(kinds) > 1000)) & ~np.isin(kinds, other)].sum())


def test_lattice_laplace_has_no_support_of_its_own() -> None:
    """Reliability 15: in 100,000 reports each way no lattice report is one that the other end never sends; of textbook Laplace nearly all are."""
    lattice = DiscreteLaplace(1.0)
    assert exclusive(lattice, 0, lattice.steps) == exclusive(lattice, lattice.steps, 0) == 0
    floats = exclusive(FloatLaplace(1.0), 0, 1)
    assert floats > 90_000
    figure(15, f"of 100,000 reports each way 0 of the lattice, {floats:,} of textbook Laplace show the input")
