"""The zoo: randomizers that an audit has to find fault with, each with the check that must find it, and randomizers with which there is nothing wrong."""

from dataclasses import dataclass

from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.signs.binary_rr import BinaryRR
from tests.support.adversaries import hostile, zoo
from tests.support.adversaries.zoo import Delta, Hash, Opaque, OpaqueNoise, Unary


@dataclass(frozen=True)
class Case:
    """A broken randomizer, and the check that must find it."""

    randomizer: Randomizer
    check: str


BROKEN = (
    Case(zoo.Stateful(1.0), "repeats"),
    Case(zoo.ConstantSeed(1.0, k=8), "repeats"),
    Case(zoo.ConstantWords(1.0, k=8), "words"),
    Case(zoo.OwnEntropy(1.0, k=8), "outside"),
    Case(zoo.LastElement(1.0, k=8), "sampler, enumerated"),
    Case(zoo.LastElement(1.0, k=4096), "sampler, drawn"),
    Case(zoo.OneLevel(1.0), "sampler, drawn"),
    Case(zoo.LastFails(1.0, k=300), "answers"),
    Case(zoo.LastIsLong(1.0, k=300), "length"),
    Case(zoo.Leak(1.0, k=8), "sampler, enumerated"),
    Case(zoo.NoNoise(1.0, k=2), "sampler, enumerated"),
    Case(zoo.Swapped(1.0, k=4), "sampler, enumerated"),
    Case(zoo.Neighbour(1.0, k=4), "repeats"),
    Case(zoo.Greedy(1.0), "loss"),
    Case(zoo.FloatGRR(24.0, k=4, word_bits=32), "loss"),
    Case(zoo.Unsummed(1.0, k=3), "loss"),
    Case(zoo.WholeUnary(1.0), "loss"),
    Case(zoo.SharedWord(1.0), "sampler, drawn"),
    Case(zoo.BareHash(1.0), "sampler, compared"),
    Case(zoo.Opaque(1.0, real=1.1), "black box"),
    Case(zoo.OpaqueLeak(1.0), "black box"),
    Case(zoo.OpaqueNoise(1.0, real=2.0), "black box"),
    Case(hostile.Prints(1.0, k=3), "outside"),
    Case(hostile.Clock(1.0), "outside"),
    Case(hostile.Urandom(1.0), "outside"),
    Case(hostile.LargeBatch(1.0, k=3), "repeats"),
    Case(hostile.SortedBatch(1.0, k=3), "repeats"),
    Case(hostile.AfterMany(1.0), "repeats"),
    Case(hostile.Overwrites(1.0), "repeats"),
    Case(hostile.NarrowValues(1.0, k=3), "narrow values"),
    Case(hostile.OtherType(1.0, k=3), "length"),
    Case(hostile.OneLevelFails(1.0), "answers"),
    Case(hostile.OneLevelExits(1.0), "answers"),
    Case(hostile.DoubleGRR(40.0), "loss"),
    Case(hostile.Cheap(1.0), "loss"),
    Case(hostile.Modest(1.0), "loss"),
    Case(hostile.CheaperAndCheaper(1.0), "claims"),
    Case(hostile.Afterwards(1.0), "claims"),
    Case(hostile.Mutable(1.0), "claims"),
    Case(hostile.Understated(1.0, k=3), "sampler, enumerated"),
    Case(hostile.BareEntry(1.0, k=8), "sampler, enumerated"),
    Case(hostile.OddBit(1.0, k=2048), "sampler, enumerated"),
    Case(hostile.RareCoin(1.0, length=4), "sampler, compared"),
    Case(hostile.Shifted(1.0, k=3), "estimate"),
    Case(hostile.Forgets(1.0, k=3), "tally"),
    Case(hostile.Swaps(1.0, k=3), "tally"),
    Case(hostile.Rejects(1.0, k=3), "tally"),
    Case(hostile.OtherLaw(1.0), "law"),
)
CORRECT = (
    *(GRR(epsilon, k=k) for epsilon, k in ((0.01, 3), (1.0, 8), (20.0, 64))),
    *(BinaryRR(epsilon) for epsilon in (0.1, 1.0, 24.0)),
    *(Unary(epsilon) for epsilon in (0.5, 2.0, 8.0)),
    *(Hash(epsilon) for epsilon in (0.5, 2.0, 8.0)),
    *(Opaque(epsilon) for epsilon in (0.1, 1.0, 4.0)),
    *(OpaqueNoise(epsilon, k=2) for epsilon in (0.5, 2.0)),
    Delta(1.0),
    hostile.Permuted(1.0, k=5),
    hostile.Tabled(2.0, k=7),
    hostile.OwnBits(1.0, k=6),
    hostile.Lazy(1.0),
    hostile.OwnCoins(1.0, length=4),
    hostile.HalfTally(1.0, steps=7),
)
