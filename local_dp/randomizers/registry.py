"""Every randomizer by name: the built-in ones, and those of installed packages."""

from local_dp.randomizers.base import Randomizer
from local_dp.registry import Registry

RANDOMIZERS = Registry(
    "randomizer",
    "local_dp.randomizers",
    Randomizer,
    {
        "binary-rr": "local_dp.randomizers.binary_rr:BinaryRR",
        "grr": "local_dp.randomizers.grr:GRR",
        "hadamard": "local_dp.randomizers.hadamard:Hadamard",
        "signed-hadamard": "local_dp.randomizers.hadamard:SignedHadamard",
        "one-bit-mean": "local_dp.randomizers.one_bit_mean:OneBitMean",
        "rounded-grr": "local_dp.randomizers.rounded:RoundedGRR",
        "rounded-hadamard": "local_dp.randomizers.rounded:RoundedHadamard",
        "discrete-laplace": "local_dp.randomizers.discrete_laplace:DiscreteLaplace",
        "prefix-signs": "local_dp.randomizers.prefix_signs:PrefixSigns",
        "characters": "local_dp.randomizers.characters:Characters",
        "sue": "local_dp.randomizers.unary:SUE",
        "oue": "local_dp.randomizers.unary:OUE",
        "subset-selection": "local_dp.randomizers.subset_selection:SubsetSelection",
    },
)
