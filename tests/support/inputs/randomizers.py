"""Every registered randomizer that can be enumerated, at several sizes: a new one is among them by
itself, by its `example`."""

import math
from collections.abc import Callable, Iterator

from local_dp.randomizers.compressed.genprot import GenProt
from local_dp.randomizers.compressed.purified import Purified
from local_dp.randomizers.evidence import PROVEN, exact_ratio
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.base import FiniteOracle, OfSymbols
from local_dp.randomizers.frequencies.hadamard import (
    Hadamard,
    HadamardResponse,
    RecursiveHadamard,
    SignedHadamard,
)
from local_dp.randomizers.frequencies.local_hashing import BLH, OLH, CountMeanSketch, PIRappor
from local_dp.randomizers.frequencies.projective import PGR
from local_dp.randomizers.frequencies.signed import SignedBlocks
from local_dp.randomizers.frequencies.subset_selection import SubsetSelection
from local_dp.randomizers.frequencies.unary import STEPS, THE, best_threshold
from local_dp.randomizers.frequencies.wide_hashing import WideHashing
from local_dp.randomizers.numbers.rounded import OneBitMean, Rounded, RoundedOracle
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.repeated.change_tracking import BitFlip
from local_dp.randomizers.repeated.memoised import LOLOHA, MemoisedGRR, MemoisedRAPPOR
from local_dp.randomizers.sets.padding_sampling import PCKV, PCKVUE, PaddingSampling
from local_dp.randomizers.signs.characters import Characters
from local_dp.randomizers.signs.prefix_signs import SignRows
from local_dp.randomizers.signs.suspects import Suspects
from local_dp.randomizers.table import NumberTable
from local_dp.randomizers.vectors.coordinates import NearestDirection, SampledSigns
from local_dp.randomizers.with_coin import WithCoin

SIZES = (2, 3, 8, 64)
DESIGNS: tuple[Callable[..., FiniteOracle], ...] = (
    OLH,
    BLH,
    PIRappor,
    PGR,
    HadamardResponse,
    RecursiveHadamard,
)
KINDS = {name: RANDOMIZERS[name] for name in RANDOMIZERS.built_in}
ORACLES = [
    name
    for name, kind in KINDS.items()
    if issubclass(kind, FiniteOracle)
    and issubclass(kind, OfSymbols)
    and kind.work == "one question"
]
PROVEN_NAMES = [name for name, kind in KINDS.items() if kind.evidence in PROVEN]


def every(epsilon: float, sizes: tuple[int, ...] = SIZES) -> Iterator[Randomizer]:
    """Each that can be enumerated at each size, and some with other parameters; without the coins
    that clients draw, which `with_coins` has."""
    all_sizes = dict.fromkeys(
        KINDS[name].example(epsilon, k) for name in PROVEN_NAMES for k in sizes
    )
    return iter(each for each in (*all_sizes, *others(epsilon)) if not _is_wide(each))


def _is_wide(randomizer: Randomizer) -> bool:
    """Whether it needs words of two parts that are too wide to be enumerated."""
    two_parts = isinstance(randomizer, MemoisedGRR | MemoisedRAPPOR | LOLOHA | RoundedOracle)
    return two_parts and (
        randomizer.epsilon < 0.5 or (isinstance(randomizer, MemoisedGRR) and randomizer.k > 8)
    )


def others(epsilon: float) -> list[Randomizer]:
    """What examples leave out: other parameters than the defaults."""
    rows = ("2a", "15", "33", "07")
    signs = [
        SignedHadamard(epsilon, k=1),
        SignedBlocks(epsilon, k=3, size=4),
        SignRows(epsilon, k=6, signs=rows),
        Suspects(epsilon, d=3, masks="b5"),
    ]
    sets = [
        PaddingSampling(epsilon, k=4, limit=1),
        PCKV(epsilon, k=3, limit=2, steps=3),
        PCKVUE(epsilon, k=5, limit=2, steps=3),
    ]
    longitudinal = [
        MemoisedRAPPOR(epsilon, k=3, permanent="sue"),
        RoundedOracle(epsilon, steps=4, groups=3, oracle="olh"),
        BitFlip(epsilon, k=64, d=8),
    ]
    short = [
        GenProt(epsilon, inner="hadamard-response", setting=("k=3",), samples=3),
        Characters(epsilon, d=3, masks="a5"),
    ]
    return [*signs, *sets, *longitudinal, *short, RecursiveHadamard(epsilon, k=5, b=2)]


def examples(epsilon: float) -> list[Randomizer]:
    """The example of each, some with other parameters, and larger ones, in which hashes collide and
    vectors lie inside the body."""
    kinds = (OLH, BLH, PIRappor, PGR, HadamardResponse, SubsetSelection)
    larger = [
        SampledSigns(epsilon, d=4, signs=2),
        NearestDirection(epsilon, d=4),
        CountMeanSketch(epsilon, k=6, m=3),
        *(kind(epsilon, k=13) for kind in kinds),
    ]
    return [*(kind.example(epsilon) for kind in KINDS.values()), *others(epsilon), *larger]


def with_coins(epsilon: float) -> list[Randomizer]:
    """Randomizers with a public coin of every kind, whose clients draw it: bits, codes, sets,
    places, signs."""
    kinds: list[Randomizer] = [
        Hadamard(epsilon, k=5),
        OLH(epsilon, k=8),
        SubsetSelection(epsilon, k=8),
        SignedBlocks(epsilon, k=3, size=4),
    ]
    pairs = (
        *kinds,
        CountMeanSketch(epsilon, k=8, m=4),
        WideHashing(epsilon, length=3),
        Characters(epsilon, d=3),
    )
    return [WithCoin(epsilon), *(WithCoin.of(each) for each in pairs if each.uses_coins)]


def stated_loss(randomizer: Randomizer) -> float:
    """The loss of one report that the class states: epsilon, or less where its docstring gives a
    closed form."""
    if isinstance(randomizer, MemoisedGRR | MemoisedRAPPOR | LOLOHA):
        return (randomizer.inner if isinstance(randomizer, LOLOHA) else randomizer).loss_after(1)
    if isinstance(randomizer, RoundedOracle):
        # the loss of the oracle in the 32 bits that it has of a word
        return math.log(exact_ratio(randomizer.inner))
    if isinstance(randomizer, Purified):
        # of a pure inner one, which stays as it is
        return math.log(exact_ratio(randomizer._channel))
    if not isinstance(randomizer, THE):
        return randomizer.epsilon
    t = best_threshold(randomizer.nano) / STEPS
    other, losses = (
        math.exp(-t * randomizer.epsilon / 2) / 2,
        math.exp(-(1 - t) * randomizer.epsilon / 2) / 2,
    )
    return math.log((1 - losses) * (1 - other) / (other * losses))


def built_in(epsilon: float) -> list[FiniteChannel]:
    """The finite channels that estimate averages or shares of few numbers, at every size."""
    simple = ("binary-rr", "grr", "hadamard", "signed-hadamard", "signed-blocks")
    kinds = [
        kind
        for name, kind in KINDS.items()
        if name in simple or issubclass(kind, NumberTable | OneBitMean | Rounded)
    ]
    all_sizes = dict.fromkeys(
        kind.example(epsilon, k)
        for kind in kinds
        if kind.name not in ("discrete-gaussian", "rounded-oracle")
        for k in SIZES
    )
    return [each for each in all_sizes if isinstance(each, FiniteChannel)]


def of_sets(epsilon: float) -> list[Randomizer]:
    """Those whose report stands for a set of symbols, at every size."""
    return [
        KINDS[name].example(epsilon, k)
        for name in ("sue", "oue", "subset-selection", "count-mean-sketch", "wide-hashing")
        for k in SIZES
    ]
