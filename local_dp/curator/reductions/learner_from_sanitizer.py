"""A learner from a sanitizer: the best hypothesis on what is released (Beimel, Nissim, Stemmer 2013, Lemma 5.3)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from local_dp.curator.mechanism import Law, Mechanism
from local_dp.draws import Draws
from local_dp.loss import Loss

D = TypeVar("D")
E = TypeVar("E")
H = TypeVar("H")
L = TypeVar("L", bound=Loss)


@dataclass(frozen=True)
class Processed(Mechanism[D, H, L], Generic[D, E, H, L]):
    """What `after` makes of a release. Privacy: the mechanism's, for `after` sees no record."""

    mechanism: Mechanism[D, E, L]
    after: Callable[[E], H]

    @property
    def loss(self) -> L:
        return self.mechanism.loss

    def release(self, database: D, draws: Draws) -> H:
        return self.after(self.mechanism.release(database, draws))

    def law(self, database: D) -> Law[H]:
        found: dict[H, int] = {}
        for released, weight in self.mechanism.law(database).items():
            outcome = self.after(released)
            found[outcome] = found.get(outcome, 0) + weight
        return found


def learner_from_sanitizer(sanitizer: Mechanism[D, E, L], best: Callable[[E], H]) -> Processed[D, E, H, L]:
    """A proper learner from a sanitizer of the class with labels: `best` gives the hypothesis that errs least on what is released.

    Privacy: the sanitizer's, pure or approximate. Utility: from an (alpha, beta)-sanitizer, error 2 alpha + gamma except with probability 2 beta, given
    (50 VC / gamma^2) ln(1 / (gamma beta)) examples, since the share of wrong labels is a count of the class with labels. Source: Lemma 5.3.
    """
    return Processed(sanitizer, best)
