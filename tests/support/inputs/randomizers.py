"""Every built-in randomizer, at several sizes."""

from collections.abc import Callable
from functools import partial
from typing import Any

from local_dp.randomizers.compressed.genprot import GenProt, SeededRejection
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.base import FiniteOracle
from local_dp.randomizers.frequencies.count_mean_sketch import CountMeanSketch
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard, SignedHadamard
from local_dp.randomizers.frequencies.hadamard_response import HadamardResponse, RecursiveHadamard
from local_dp.randomizers.frequencies.local_hashing import BLH, OLH
from local_dp.randomizers.frequencies.pi_rappor import PIRappor
from local_dp.randomizers.frequencies.projective import PGR
from local_dp.randomizers.frequencies.signed import SignedBlocks
from local_dp.randomizers.frequencies.subset_selection import SubsetSelection
from local_dp.randomizers.frequencies.summed import SHE
from local_dp.randomizers.frequencies.thresholded import THE
from local_dp.randomizers.frequencies.unary import OUE, SUE
from local_dp.randomizers.frequencies.wide_hashing import WideHashing
from local_dp.randomizers.numbers.bounded_laplace import BoundedLaplace
from local_dp.randomizers.numbers.discrete_gaussian import DiscreteGaussian
from local_dp.randomizers.numbers.discrete_laplace import DiscreteLaplace
from local_dp.randomizers.numbers.hybrid import Hybrid
from local_dp.randomizers.numbers.one_bit_mean import OneBitMean
from local_dp.randomizers.numbers.rounded import RoundedGRR, RoundedHadamard
from local_dp.randomizers.numbers.rounded_oracle import RoundedOracle
from local_dp.randomizers.numbers.staircase import Staircase
from local_dp.randomizers.numbers.window import Piecewise, SquareWave
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.repeated.bit_flip import BitFlip
from local_dp.randomizers.repeated.change_tracking import ChangeTracking
from local_dp.randomizers.repeated.loloha import LOLOHA
from local_dp.randomizers.repeated.memoised import MemoisedGRR, MemoisedRAPPOR
from local_dp.randomizers.repeated.one_of_rounds import OneOfRounds
from local_dp.randomizers.sets.padding_sampling import PaddingSampling
from local_dp.randomizers.sets.pckv import PCKV
from local_dp.randomizers.sets.pckv_ue import PCKVUE
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.randomizers.signs.characters import Characters
from local_dp.randomizers.signs.deny import Deny
from local_dp.randomizers.signs.prefix_signs import PrefixSigns
from local_dp.randomizers.signs.sign_rows import SignRows
from local_dp.randomizers.vectors.coordinates import RandomCoordinate, SampledSigns
from local_dp.randomizers.vectors.duchi_vector import DuchiVector
from local_dp.randomizers.vectors.nearest_direction import NearestDirection
from local_dp.randomizers.vectors.privunit import PrivUnit
from local_dp.randomizers.vectors.projunit import ProjUnit
from local_dp.randomizers.with_coin import WithCoin

SIZES = (2, 3, 8, 64)
DESIGNS: tuple[Callable[..., FiniteOracle], ...] = (OLH, BLH, PIRappor, PGR, HadamardResponse, RecursiveHadamard)

ORACLES = (
    "grr",
    "hadamard",
    "olh",
    "blh",
    "pi-rappor",
    "pgr",
    "subset-selection",
    "hadamard-response",
    "recursive-hadamard",
)  # finite channels that estimate shares


def built_in(epsilon: float) -> list[FiniteChannel]:
    """Every built-in finite channel at every size."""
    sized: list[Callable[[int], FiniteChannel]] = [
        lambda k: GRR(epsilon, k=k),
        lambda k: Hadamard(epsilon, k=k),
        lambda k: SignedHadamard(epsilon, k=k),
        lambda k: SignedBlocks(epsilon, k=k, size=1 if k < 8 else k // 4),
        lambda k: DiscreteLaplace(epsilon, steps=k - 1),
        *(partial(_on_lattice, kind, epsilon) for kind in (BoundedLaplace, Staircase, Piecewise, Hybrid, SquareWave, OneBitMean)),
        lambda k: RoundedGRR(epsilon, steps=k - 1),
        lambda k: RoundedHadamard(epsilon, steps=k - 1),
    ]
    grouped = [kind(epsilon, steps=3, groups=groups) for kind in (RoundedGRR, RoundedHadamard) for groups in (2, 3, 8)]
    return [
        BinaryRR(epsilon),
        SignedHadamard(epsilon, k=1),
        SignedBlocks(epsilon, k=3, size=4),
        OneBitMean(epsilon),
        *grouped,
        *(make(k) for make in sized for k in SIZES),
    ]


def _on_lattice(kind: Any, epsilon: float, k: int) -> FiniteChannel:
    """Of numbers on a lattice of k points."""
    made: FiniteChannel = kind(epsilon, steps=k - 1)
    return made


def approximate(epsilon: float) -> list[FiniteChannel]:
    """Those whose loss has a delta: one that narrow words can keep."""
    return [DiscreteGaussian(epsilon, delta=0.01, steps=steps) for steps in (1, 2, 7)]


def of_other_estimates(epsilon: float) -> list[FiniteChannel]:
    """Those whose estimates are neither averages nor shares: parities, prefix sums, sign rows and one of rounds, exact in tests of their own."""
    signs = [SignRows(epsilon, k=5), SignRows(epsilon, k=6, signs=("2a", "15", "33", "07"))]
    prefixes = [PrefixSigns(epsilon, k=2), PrefixSigns(epsilon, k=13)]
    return [Characters(epsilon, d=3), Characters(epsilon, d=3, masks="a5"), OneOfRounds(epsilon), *prefixes, *signs, *of_items(epsilon)]


def of_named_parities(epsilon: float) -> list[FiniteChannel]:
    """Those whose estimates are of parities too, and whose words of one report are no run."""
    return [Deny(epsilon, d=d) for d in (1, 3)]


def of_items(epsilon: float) -> list[FiniteChannel]:
    """Those of a set of items, alone or with numbers."""
    return [PaddingSampling(epsilon), PaddingSampling(epsilon, k=4, limit=1), PCKV(epsilon), PCKV(epsilon, k=3, limit=2, steps=3)]


def of_places(epsilon: float) -> list[Randomizer]:
    """Those whose report is a small one for each of some places."""
    return [*(SHE(epsilon, k=k) for k in SIZES), PCKVUE(epsilon), PCKVUE(epsilon, k=5, limit=2, steps=3)]


def of_vectors(epsilon: float) -> list[Randomizer]:
    """Those of a vector, in few dimensions."""
    kinds: list[Any] = [DuchiVector, RandomCoordinate, SampledSigns, NearestDirection]
    return [kind(epsilon, d=d) for kind in kinds for d in (1, 2, 5)]


def of_densities(epsilon: float) -> list[Randomizer]:
    """Those whose loss is proved on paper only."""
    return [*(PrivUnit(epsilon, d=d) for d in (2, 5)), *(ProjUnit(epsilon, d=d) for d in (2, 5, 40))]


def of_changes(epsilon: float) -> list[Randomizer]:
    """Those of the time of a change, or of some of many buckets, of few and of more."""
    flips = [BitFlip(epsilon, k=k, d=d) for k, d in ((2, 1), (2, 2), (7, 3), (64, 8))]
    return [*(ChangeTracking(epsilon, intervals=intervals) for intervals in (1, 2, 7)), *flips]


def of_sets(epsilon: float) -> list[Randomizer]:
    """Those whose report is a set of symbols, at every size."""
    sized = (kind(epsilon, k=k) for kind in (SUE, OUE, SubsetSelection) for k in SIZES)
    return [*sized, *(CountMeanSketch(epsilon, k=k, m=4) for k in SIZES), *(WideHashing(epsilon, length=length) for length in (1, 3, 6))]


def of_designs(epsilon: float) -> list[FiniteOracle]:
    """The finite frequency oracles by hashes, designs and blocks, at every size."""
    return [kind(epsilon, k=k) for kind in DESIGNS for k in SIZES]


def of_compressed(epsilon: float) -> list[FiniteChannel]:
    """Those that name one of a few public samples of another channel."""
    return [SeededRejection(epsilon), GenProt(epsilon), GenProt(epsilon, inner="hadamard-response", setting=("k=3",), samples=3)]


def of_repeated(epsilon: float) -> list[Randomizer]:
    """Those whose one report keeps less than their epsilon, which is for life, in words of two parts, at sizes that 16-bit words are enough for."""
    few = [MemoisedGRR(epsilon, k=k) for k in SIZES[:3] if epsilon >= 0.5 or (k == 2 and epsilon >= 0.1)]
    hashed = [LOLOHA(epsilon, k=k) for k in SIZES if epsilon >= 1]
    unary = [MemoisedRAPPOR(epsilon, k=k, permanent=kind) for k in SIZES for kind in ("oue", "sue") if epsilon >= 0.5]
    return [*few, *hashed, *unary]


def of_rounded(epsilon: float) -> list[RoundedOracle]:
    """Those that round a number within its group for an oracle, at sizes that narrow words are enough for."""
    return [RoundedOracle(epsilon, steps=4, groups=groups, oracle=oracle) for groups in (2, 3, 8) for oracle in ("olh", "subset-selection") if epsilon >= 0.5]


def of_coins_sent_along(epsilon: float) -> list[WithCoin]:
    """Randomizers with a public coin of every kind, whose clients draw it: bits, codes, sets, places, signs."""
    kinds: list[Randomizer] = [Hadamard(epsilon, k=5), OLH(epsilon, k=8), SubsetSelection(epsilon, k=8), SignedBlocks(epsilon, k=3, size=4)]
    held = (*kinds, CountMeanSketch(epsilon, k=8, m=4), WideHashing(epsilon, length=3), Characters(epsilon, d=3))
    return [WithCoin(epsilon), *(WithCoin.of(each) for each in held if each.uses_coins)]


def of_more_private(epsilon: float) -> list[Randomizer]:
    """Those whose reports keep less than the epsilon that they are charged for, at every size."""
    return [THE(epsilon, k=k) for k in SIZES]
