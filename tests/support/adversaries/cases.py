"""The zoo: randomizers that an audit has to find fault with, each with the check that must find it,
and randomizers with which there is nothing wrong."""

from typing import NamedTuple

from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.signs.binary_rr import BinaryRR
from tests.support.adversaries import hostile, zoo
from tests.support.adversaries.zoo import Delta, Opaque, OpaqueNoise
from tests.support.plugin_package.frequency_oracles import GreedyUnary, LocalHash, OptimisedUnary


class Case(NamedTuple):
    """A broken randomizer, and the check that must find it."""

    randomizer: Randomizer
    check: str


_BROKEN: dict[str, tuple[Randomizer, ...]] = {
    "repeats": (
        zoo.Stateful(1.0), zoo.ConstantSeed(1.0, k=8), zoo.Neighbour(1.0, k=4),
        hostile.LargeBatch(1.0, k=3),
        hostile.SortedBatch(1.0, k=3), hostile.AfterMany(1.0), hostile.Overwrites(1.0),
    ),
    "words": (zoo.ConstantWords(1.0, k=8),),
    "outside": (zoo.OwnEntropy(1.0, k=8), hostile.Prints(1.0, k=3), hostile.Clock(1.0),
    hostile.Urandom(1.0), hostile.Threads(1.0), hostile.Environment(1.0)),
    "memory": (hostile.Contrary(1.0),),
    "sampler, enumerated": (
        zoo.LastElement(1.0, k=8), zoo.Leak(1.0, k=8),
        hostile.Understated(1.0, k=3), hostile.BareEntry(1.0, k=8), hostile.OddBit(1.0, k=2048),
    ),
    "sampler, drawn": (zoo.LastElement(1.0, k=4096), zoo.OneLevel(1.0), zoo.SharedWord(1.0, k=5)),
    "answers": (hostile.OneLevelFails(1.0), hostile.OneLevelExits(1.0)),
    "length": (zoo.LastIsLong(1.0, k=300), hostile.OtherType(1.0, k=3)),
    "loss": (
        zoo.Greedy(1.0), zoo.FloatGRR(24.0, k=4, word_bits=32), zoo.Unsummed(1.0, k=3),
        GreedyUnary(1.0, k=5),
        hostile.Cheap(1.0), hostile.Modest(1.0),
    ),
    "sampler, compared": (zoo.BareHash(1.0, k=6), hostile.RareCoin(1.0, length=4)),
    "black box": (zoo.Opaque(1.0, real=1.1), zoo.OpaqueLeak(1.0), zoo.OpaqueNoise(1.0, real=2.0),
                  hostile.Keeps(1.0)),
    "narrow values": (hostile.NarrowValues(1.0, k=3),),
    "claims": (hostile.CheaperAndCheaper(1.0), hostile.Afterwards(1.0), hostile.Mutable(1.0)),
    "estimate": (
        hostile.OtherVariance(1.0), hostile.Shifted(1.0, k=3), hostile.SmallError(1.0, k=3),
        hostile.OtherError(1.0, steps=7),
        hostile.OtherError(1.0, steps=7, part=1.6),
        hostile.OtherError(1.0, steps=7, part=1.0, off=0.1),
    ),
    "tally": (hostile.Forgets(1.0, k=3), hostile.Swaps(1.0, k=3), hostile.Rejects(1.0, k=3)),
    "law": (hostile.OtherLaw(1.0),),
}  # fmt: skip
BROKEN = tuple(
    Case(randomizer, check) for check, randomizers in _BROKEN.items() for randomizer in randomizers
)
CORRECT = (
    *(GRR(epsilon, k=k) for epsilon, k in ((0.01, 3), (1.0, 8), (20.0, 64))),
    *(BinaryRR(epsilon) for epsilon in (0.1, 1.0, 24.0)),
    *(OptimisedUnary(epsilon, k=5) for epsilon in (0.5, 2.0, 8.0)),
    *(LocalHash(epsilon, k=6) for epsilon in (0.5, 2.0, 8.0)),
    *(Opaque(epsilon) for epsilon in (0.1, 1.0, 4.0)),
    *(OpaqueNoise(epsilon, k=2) for epsilon in (0.5, 2.0)),
    Delta(1.0),
    hostile.Permuted(1.0, k=5),
    hostile.Tabled(2.0, k=7),
    hostile.OwnBits(1.0, k=6),
    hostile.Lazy(1.0),
    hostile.OwnCoins(1.0, length=4),
    hostile.HalfTally(1.0, steps=7),
    hostile.WideWords(1.0, k=300, word_bits=64),
)
