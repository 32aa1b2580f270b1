"""Checked by mypy, not run: each learner's model is in its type, and the simulation by local clients preserves it."""

from typing import assert_type

from local_dp.learners.fourier import LowDegree, Polynomial
from local_dp.learners.halfspaces import Halfspace, LogisticRegression, MarginDescent, Perceptron
from local_dp.learners.moments import AtLeast, BayesRule, Centres, KMeans, LinearModel, LinearRegression, NaiveBayes, Thresholds
from local_dp.learners.rules import AllOf, Conjunctions, DecisionLists, RuleList, Stump, Stumps, Tree, Trees
from local_dp.oracles.local.asked import Local, LocalRounds
from local_dp.oracles.statistical.oracles import Statistical, StatisticalRounds
from local_dp.protocols.learning.sgd import LocalSGD
from local_dp.theorems.local_from_sq import enough_clients, local_from_sq


def nonadaptive() -> None:
    """NASQ learners."""
    assert_type(Conjunctions().algorithm(), Statistical[AllOf])
    assert_type(Stumps().algorithm(), Statistical[Stump])
    assert_type(Thresholds().algorithm(), Statistical[AtLeast])
    assert_type(NaiveBayes().algorithm(), Statistical[BayesRule])
    assert_type(LowDegree().algorithm(), Statistical[Polynomial])
    assert_type(LinearRegression().algorithm(), Statistical[LinearModel])


def adaptive() -> None:
    """SQ learners, and the one that is local only."""
    assert_type(DecisionLists().algorithm(), StatisticalRounds[RuleList])
    assert_type(Perceptron().algorithm(), StatisticalRounds[Halfspace])
    assert_type(Trees().algorithm(), StatisticalRounds[Tree])
    assert_type(KMeans().algorithm(), StatisticalRounds[Centres])
    assert_type(LogisticRegression().algorithm(), StatisticalRounds[Halfspace])
    assert_type(MarginDescent().algorithm(), StatisticalRounds[Halfspace])
    assert_type(LocalSGD().algorithm(1.0, 1000), LocalRounds[Halfspace])


def run_by_clients() -> None:
    """A non-adaptive learner becomes non-interactive, an adaptive one interactive."""
    clients = enough_clients(1.0, 0.01)
    assert_type(local_from_sq(Stumps().algorithm(), 1.0, clients), Local[Stump])
    assert_type(local_from_sq(DecisionLists().algorithm(), 1.0, clients), LocalRounds[RuleList])
