"""An (eps, delta)-local algorithm becomes (2 eps, 0)-local, history
by history (limits 12.6)."""

from dataclasses import replace
from typing import overload

from local_dp.interaction import R, translate
from local_dp.loss import Pure
from local_dp.oracles.local.asked import Local, LocalAlgorithm, LocalQuery, LocalRounds
from local_dp.randomizers.compressed.purified import purify


@overload
def pure_from_approximate(algorithm: Local[R]) -> Local[R]: ...
@overload
def pure_from_approximate(algorithm: LocalRounds[R]) -> LocalRounds[R]: ...
def pure_from_approximate(algorithm: LocalAlgorithm[R]) -> LocalAlgorithm[R]:
    """The same algorithm with every approximate randomizer made pure by `purify`: for the same
    clients, in the same rounds. Its type keeps the adaptivity.

    Privacy: twice the epsilon of each randomizer, and no delta. Utility: whatever the histories
    before, no report's law moves by more than delta, so the result's law moves by at most n delta
    for n reports. Raises InputError for a randomizer that is no small table. Source: limits 12.6;
    with 10 eps, in one round: Bun, Nelson, Stemmer 2018.
    """

    def ask(
        queries: tuple[LocalQuery, ...], before: tuple[LocalQuery, ...]
    ) -> tuple[LocalQuery, ...]:
        return tuple(
            each
            if isinstance(each.randomizer.loss, Pure)
            else replace(each, randomizer=purify(each.randomizer))
            for each in queries
        )

    return translate(algorithm, ask, lambda queries, translation, tallies: tallies)
