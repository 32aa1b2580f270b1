"""Every protocol by name."""

from typing import Any

from local_dp.errors import InputError, unknown
from local_dp.protocols.local_protocol import Protocol
from local_dp.registry import Registry

PROTOCOLS: Registry[Protocol[Any]] = Registry(
    "protocol",
    "local_dp.protocols",
    Protocol,
    {
        "survey": "local_dp.protocols.survey:Survey",
        "frequency": "local_dp.protocols.frequency:Frequency",
        "histogram": "local_dp.protocols.histogram:Histogram",
        "crosstab": "local_dp.protocols.crosstab:Crosstab",
        "mean": "local_dp.protocols.mean:Mean",
        "mean-found": "local_dp.protocols.mean_found:MeanFound",
        "quantiles": "local_dp.protocols.quantiles:Quantiles",
        "sq": "local_dp.protocols.statistical_queries:StatisticalQueries",
        "prefix-sums": "local_dp.protocols.prefix_sums:PrefixSums",
        "workload": "local_dp.protocols.workload:Workload",
        "marginals": "local_dp.protocols.marginals:Marginals",
        "identity": "local_dp.protocols.identity:Identity",
        "compare": "local_dp.protocols.compare:Compare",
        "longitudinal": "local_dp.protocols.longitudinal:Longitudinal",
        "mean-vector": "local_dp.protocols.mean_vector:MeanVector",
        "heavy-hitters": "local_dp.protocols.heavy_hitters:HeavyHitters",
        "heavy-hitters-asked": "local_dp.protocols.heavy_hitters_asked:HeavyHittersAsked",
        "masked-parity": "local_dp.masked.two_rounds:MaskedParityLearner",
        "masked-parity-list": "local_dp.masked.listed:MaskedParityList",
        "masked-parity-fresh": "local_dp.masked.fresh:MaskedParityFresh",
        "masked-parity-literal": "local_dp.masked.literal:MaskedParityLiteral",
        "masked-parity-one-round": "local_dp.masked.one_round:MaskedParityOneRound",
        "parity": "local_dp.protocols.parity:ParityHalving",
        "parity-one-round": "local_dp.protocols.parity:ParityOneRound",
        "parity-deny": "local_dp.protocols.parity_deny:ParityDeny",
        "parity-rounds": "local_dp.protocols.parity_rounds:ParityRounds",
        "ladder": "local_dp.protocols.ladder:LadderAgain",
        "ladder-in-turn": "local_dp.protocols.ladder:LadderInTurn",
        "ladder-one-round": "local_dp.protocols.ladder:LadderOneRound",
        "learn-conjunctions": "local_dp.protocols.learned:LearnConjunctions",
        "learn-stumps": "local_dp.protocols.learned:LearnStumps",
        "learn-thresholds": "local_dp.protocols.learned:LearnThresholds",
        "learn-naive-bayes": "local_dp.protocols.learned:LearnNaiveBayes",
        "learn-low-degree": "local_dp.protocols.learned:LearnLowDegree",
        "learn-linear-regression": "local_dp.protocols.learned:LearnLinearRegression",
        "learn-decision-lists": "local_dp.protocols.learned:LearnDecisionLists",
        "learn-perceptron": "local_dp.protocols.learned:LearnPerceptron",
        "learn-trees": "local_dp.protocols.learned:LearnTrees",
        "learn-k-means": "local_dp.protocols.learned:LearnKMeans",
        "learn-logistic-regression": "local_dp.protocols.learned:LearnLogisticRegression",
        "learn": "local_dp.protocols.learn:Learn",
        "local-sgd": "local_dp.protocols.sgd:LocalSGD",
    },
)


def find_protocol(name: str) -> type[Protocol[Any]]:
    """The protocol called `name`. Raises InputError."""
    if name not in PROTOCOLS:
        raise InputError(unknown("no protocol named", name, PROTOCOLS))
    return PROTOCOLS[name]
