"""What an oracle's type promises: checked by mypy, not run.

Each `type: ignore` marks a claim that must NOT type-check: mypy reports it as unused if it ever does.
"""

from typing import assert_type

from local_dp.curator.mechanism import Mechanism
from local_dp.curator.oracle_efficient.branching import BranchAndBound, FullSearch
from local_dp.curator.oracle_efficient.perturbed import Attempt, Perturbation, PerturbedMinimum
from local_dp.curator.oracle_efficient.robust import RobustRelease, Terms
from local_dp.curator.oracle_efficient.separated import Certifying, Conjunctions, Exhaustive, Perfect, Plain
from local_dp.curator.selection.exponential import Labelled
from local_dp.loss import Approximate, Pure


def a_perfect_oracle_certifies(exhaustive: Exhaustive) -> Certifying:
    """An oracle that never fails may be used where failures are expected."""
    perfect: Perfect = exhaustive
    return perfect


def a_perfect_oracle_is_pure(queries: Conjunctions, searched: FullSearch) -> Mechanism[Labelled, int, Pure]:
    """RSPM."""
    return PerturbedMinimum(Perturbation(queries, 1.0), searched)


def a_failing_oracle_is_approximate(queries: Conjunctions, branching: BranchAndBound) -> Mechanism[Labelled, int | None, Approximate]:
    """PRSMA: the price of failures is a delta, and an answer that may be withheld."""
    release = RobustRelease(Attempt(Perturbation(queries, 0.01), branching), 100, Terms(0.25, 0.02))
    assert_type(release.loss, Approximate)
    return release


def not_claimed(queries: Conjunctions, branching: BranchAndBound, plain: Plain) -> tuple[object, ...]:
    """Failures and claims are not private, and an attempt is no mechanism."""
    failing = PerturbedMinimum(Perturbation(queries, 1.0), branching)  # type: ignore[arg-type]
    claiming = PerturbedMinimum(Perturbation(queries, 1.0), plain)  # type: ignore[arg-type]
    trusted: Certifying = plain  # type: ignore[assignment]
    alone: Mechanism[Labelled, int, Pure] = Attempt(Perturbation(queries, 1.0), branching)  # type: ignore[assignment]
    return failing, claiming, trusted, alone
