"""Every randomizer by name: the built-in ones, and those of installed packages."""

from local_dp.randomizers.base import Randomizer
from local_dp.registry import Registry

RANDOMIZERS = Registry(
    "randomizer",
    "local_dp.randomizers",
    Randomizer,
    {
        "binary-rr": "local_dp.randomizers.signs.binary_rr:BinaryRR",
        "grr": "local_dp.randomizers.frequencies.grr:GRR",
        "hadamard": "local_dp.randomizers.frequencies.hadamard:Hadamard",
        "signed-hadamard": "local_dp.randomizers.frequencies.hadamard:SignedHadamard",
        "signed-blocks": "local_dp.randomizers.frequencies.signed:SignedBlocks",
        "one-bit-mean": "local_dp.randomizers.numbers.one_bit_mean:OneBitMean",
        "rounded-grr": "local_dp.randomizers.numbers.rounded:RoundedGRR",
        "rounded-hadamard": "local_dp.randomizers.numbers.rounded:RoundedHadamard",
        "discrete-laplace": "local_dp.randomizers.numbers.discrete_laplace:DiscreteLaplace",
        "bounded-laplace": "local_dp.randomizers.numbers.bounded_laplace:BoundedLaplace",
        "discrete-gaussian": "local_dp.randomizers.numbers.discrete_gaussian:DiscreteGaussian",
        "staircase": "local_dp.randomizers.numbers.staircase:Staircase",
        "piecewise": "local_dp.randomizers.numbers.piecewise:Piecewise",
        "hybrid": "local_dp.randomizers.numbers.hybrid:Hybrid",
        "square-wave": "local_dp.randomizers.numbers.square_wave:SquareWave",
        "duchi-vector": "local_dp.randomizers.vectors.duchi_vector:DuchiVector",
        "random-coordinate": "local_dp.randomizers.vectors.random_coordinate:RandomCoordinate",
        "nearest-direction": "local_dp.randomizers.vectors.nearest_direction:NearestDirection",
        "privunit": "local_dp.randomizers.vectors.privunit:PrivUnit",
        "prefix-signs": "local_dp.randomizers.signs.prefix_signs:PrefixSigns",
        "characters": "local_dp.randomizers.signs.characters:Characters",
        "sue": "local_dp.randomizers.frequencies.unary:SUE",
        "oue": "local_dp.randomizers.frequencies.unary:OUE",
        "subset-selection": "local_dp.randomizers.frequencies.subset_selection:SubsetSelection",
        "the": "local_dp.randomizers.frequencies.thresholded:THE",
        "count-mean-sketch": "local_dp.randomizers.frequencies.count_mean_sketch:CountMeanSketch",
        "olh": "local_dp.randomizers.frequencies.local_hashing:OLH",
        "blh": "local_dp.randomizers.frequencies.local_hashing:BLH",
        "pi-rappor": "local_dp.randomizers.frequencies.pi_rappor:PIRappor",
        "pgr": "local_dp.randomizers.frequencies.projective:PGR",
        "hadamard-response": "local_dp.randomizers.frequencies.hadamard_response:HadamardResponse",
        "recursive-hadamard": "local_dp.randomizers.frequencies.hadamard_response:RecursiveHadamard",
    },
)
