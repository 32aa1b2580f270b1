"""The exact privacy loss of the private Occam learner, by enumeration: every database, every neighbour, every hypothesis, in Fractions."""

import math
from fractions import Fraction
from itertools import product

import numpy as np

from local_dp.curator.exponential import ExponentialMechanism
from local_dp.curator.occam import HypothesisClass
from local_dp.errors import InputError

MAX_DATABASES = 1 << 12


def enumerate_ratio(hypotheses: HypothesisClass, points: int, n: int, mechanism: ExponentialMechanism) -> Fraction:
    """The largest ratio of Pr[h is chosen] between neighbours over all databases of n examples (x, y), x below `points`: e^loss, exactly.

    The learner does not see the order of the examples, so it is the last one that differs. Raises InputError above 4,096 databases.
    """
    examples = list(product(range(points), (0, 1)))
    if len(examples) ** n > MAX_DATABASES:
        raise InputError(f"{len(examples)}^{n} databases are too many to enumerate; give points and n with at most {MAX_DATABASES}")
    worst = Fraction(1)
    for others in product(examples, repeat=n - 1):
        laws = []
        for last in examples:
            x, y = (np.array(column, dtype=np.int64) for column in zip(*others, last, strict=True))
            laws.append(mechanism.law(-hypotheses.errors(x, y)))
        worst = max(worst, *(max(chances) / min(chances) for chances in zip(*laws, strict=True)))
    return worst


def enumerate_epsilon(hypotheses: HypothesisClass, points: int, n: int, mechanism: ExponentialMechanism) -> float:
    """The exact loss in nats."""
    return math.log1p(float(enumerate_ratio(hypotheses, points, n, mechanism) - 1))
