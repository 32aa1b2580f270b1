"""Every protocol by name."""

from typing import Any

from local_dp.errors import InputError, unknown
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.registry import Registry

PROTOCOLS: Registry[LocalProtocol[Any]] = Registry(
    "protocol",
    "local_dp.protocols",
    LocalProtocol,
    {
        "survey": "local_dp.protocols.surveys.survey:Survey",
        "frequency": "local_dp.protocols.surveys.frequency:Frequency",
        "histogram": "local_dp.protocols.surveys.frequency:Histogram",
        "crosstab": "local_dp.protocols.surveys.crosstab:Crosstab",
        "mean": "local_dp.protocols.vectors.mean:Mean",
        "mean-found": "local_dp.protocols.vectors.mean_found:MeanFound",
        "quantiles": "local_dp.protocols.search.quantiles:Quantiles",
        "sq": "local_dp.protocols.surveys.statistical_queries:StatisticalQueries",
        "prefix-sums": "local_dp.protocols.vectors.workload:PrefixSums",
        "workload": "local_dp.protocols.vectors.workload:Workload",
        "marginals": "local_dp.protocols.vectors.marginals:Marginals",
        "identity": "local_dp.protocols.surveys.identity:Identity",
        "compare": "local_dp.protocols.surveys.survey:Compare",
        "longitudinal": "local_dp.protocols.surveys.longitudinal:Longitudinal",
        "mean-vector": "local_dp.protocols.vectors.mean_vector:MeanVector",
        "heavy-hitters": "local_dp.protocols.search.heavy_hitters:HeavyHitters",
        "heavy-hitters-asked": "local_dp.protocols.search.heavy_hitters:HeavyHittersAsked",
        "masked-parity": "local_dp.masked.protocols:MaskedParityLearner",
        "masked-parity-list": "local_dp.masked.protocols:MaskedParityList",
        "masked-parity-fresh": "local_dp.masked.protocols:MaskedParityFresh",
        "masked-parity-literal": "local_dp.masked.protocols:MaskedParityLiteral",
        "masked-parity-one-round": "local_dp.masked.protocols:MaskedParityOneRound",
        "parity": "local_dp.protocols.parity.parity:ParityHalving",
        "parity-one-round": "local_dp.protocols.parity.parity:ParityOneRound",
        "parity-deny": "local_dp.protocols.parity.parity:ParityDeny",
        "parity-rounds": "local_dp.protocols.parity.parity:ParityRounds",
        "ladder": "local_dp.protocols.parity.ladder:LadderAgain",
        "ladder-in-turn": "local_dp.protocols.parity.ladder:LadderInTurn",
        "ladder-one-round": "local_dp.protocols.parity.ladder:LadderOneRound",
        "learn-conjunctions": "local_dp.protocols.learning.learned:LearnConjunctions",
        "learn-stumps": "local_dp.protocols.learning.learned:LearnStumps",
        "learn-thresholds": "local_dp.protocols.learning.learned:LearnThresholds",
        "learn-naive-bayes": "local_dp.protocols.learning.learned:LearnNaiveBayes",
        "learn-low-degree": "local_dp.protocols.learning.learned:LearnLowDegree",
        "learn-linear-regression": "local_dp.protocols.learning.learned:LearnLinearRegression",
        "learn-decision-lists": "local_dp.protocols.learning.learned:LearnDecisionLists",
        "learn-perceptron": "local_dp.protocols.learning.learned:LearnPerceptron",
        "learn-trees": "local_dp.protocols.learning.learned:LearnTrees",
        "learn-k-means": "local_dp.protocols.learning.learned:LearnKMeans",
        "learn-logistic-regression": "local_dp.protocols.learning.learned:LearnLogisticRegression",
        "learn": "local_dp.protocols.learning.learn:Learn",
        "local-sgd": "local_dp.protocols.learning.sgd:LocalSGD",
    },
)


def find_protocol(name: str) -> type[LocalProtocol[Any]]:
    """The protocol called `name`. Raises InputError."""
    if name not in PROTOCOLS:
        raise InputError(unknown("no protocol named", name, PROTOCOLS))
    return PROTOCOLS[name]
