"""The exact privacy loss of the parity learners, by enumeration: every database, every neighbour, every outcome, in Fractions."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

from local_dp.curator.parity import ParityLearner
from local_dp.errors import InputError

MAX_DATABASES = 1 << 16
Example = tuple[int, int]  # (x as a bit mask, y)
Database = tuple[Example, ...]
Law = tuple[Fraction, ...]  # Pr[r] for r = 0 .. 2^d - 1, then Pr[no answer]


def output_law(learner: ParityLearner, d: int, database: Database) -> Law:
    """The law of the learner's outcome on `database`: a sum over all kept sets S. 2^n subsets, 2^d hypotheses each."""
    once = [Fraction(0)] * (1 << d)
    p, n = learner.p, len(database)
    for kept in product((False, True), repeat=n):
        chosen = [example for example, keep in zip(database, kept, strict=True) if keep]
        solutions = [r for r in range(1 << d) if all((x & r).bit_count() % 2 == y for x, y in chosen)]
        for r in solutions:
            once[r] += p ** len(chosen) * (1 - p) ** (n - len(chosen)) / len(solutions)
    answered = (1 - learner.s) * sum(once)
    silent = 1 - answered
    runs = sum(silent**run for run in range(learner.runs))
    return (*((1 - learner.s) * share * runs for share in once), silent**learner.runs)


@dataclass(frozen=True)
class Loss:
    """The worst ratio of Pr[outcome] between neighbours, over hypotheses and for "no answer"; `databases` were enumerated."""

    hypothesis: Fraction
    silence: Fraction
    databases: int

    @property
    def epsilon(self) -> float:
        """The privacy loss in nats."""
        return math.log1p(float(max(self.hypothesis, self.silence) - 1))


def enumerate_loss(learner: ParityLearner, n: int, d: int) -> Loss:
    """The exact loss over ALL pairs of neighbouring databases of n examples over {0,1}^d. Raises InputError above 2^16 databases.

    The learner does not see the order of the examples, so databases are multisets: fix n - 1 examples and compare all pairs of last ones.
    """
    examples = list(product(range(1 << d), (0, 1)))
    if len(examples) ** n > MAX_DATABASES:
        raise InputError(f"{len(examples)}^{n} databases are too many to enumerate; give n and d with at most {MAX_DATABASES}")

    @cache
    def law(database: Database) -> Law:
        return output_law(learner, d, database)

    hypothesis = silence = Fraction(1)
    for others in combinations_with_replacement(examples, n - 1):
        outcomes = list(zip(*(law(tuple(sorted((*others, last)))) for last in examples), strict=True))
        hypothesis = max(hypothesis, *(_ratio(outcome) for outcome in outcomes[:-1]))
        silence = max(silence, _ratio(outcomes[-1]))
    return Loss(hypothesis, silence, len(examples) ** n)


def _ratio(probabilities: tuple[Fraction, ...]) -> Fraction:
    """The largest over the smallest; 1 where the outcome is impossible for all. Raises InputError where it is impossible for some only."""
    low, high = min(probabilities), max(probabilities)
    if low == 0 < high:
        raise InputError("an outcome is possible on one database and impossible on its neighbour: the loss is infinite")
    return high / low if high else Fraction(1)
