"""`many-answers` is shown as it stands; wrong noise, wrong moves and wrong claims in its place are not."""

from dataclasses import replace

import pytest

from local_dp.curator.intervals import Level
from local_dp.curator.marginals.base import Weights
from local_dp.curator.query_release import counting, pmw
from local_dp.curator.query_release.counting import SmallDatabase
from local_dp.curator.query_release.pmw import Answered, FirstFar, Stream, Terms, moved
from local_dp.curator.query_release.synthetic import ConcentratedRounds
from local_dp.curator.selection.exponential import ExponentialChoice
from local_dp.experiments.claims.curator.many_answers import runs
from local_dp.experiments.claims.curator.many_answers.claim import EXPERIMENT
from local_dp.experiments.claims.curator.many_answers.runs import BUDGET, CONCENTRATED, FOURIER, NEAREST, PRODUCT, RECORDS, AllMarginals, Privacy, Queries
from tests.support.runs.quick import Quick, Twin, lost

pytestmark = pytest.mark.long
QUICK, WITHIN = Quick(EXPERIMENT), ConcentratedRounds.within
AWAY = {"moved": lambda weights, counted, share, step: moved(weights, counted, 1.0 - (share > weights[counted].sum()), step)}
BOLD = {"_terms": lambda k, share: Terms.for_stream(Stream(RECORDS, 256, k), BUDGET, share=share / 100)}
STAYING = tuple(f"in rho beats {name}" for name in ("histogram", "Gaussian", "product"))
QUERIES, MARGINALS = Queries(1000, 12), AllMarginals(5000, 12, 12)  # of the points, those to be measured again
TWINS = [
    Twin("tests with half the noise", FirstFar, {"_nano": 2 * 10**9}, (Privacy,), ("whole transcripts",)),
    Twin("marginals with a third", Level, {"noise": property(lambda level: 3 * level.loss.nano)}, (Privacy,), ("whole transcripts",)),
    Twin("small databases", SmallDatabase, {"choice": property(lambda small: ExponentialChoice(small.epsilon))}, (Privacy,), ("whole transcripts",)),
    Twin("a hypothesis that moves away", pmw, AWAY, (QUERIES,), ("alpha to 1.1 alpha",)),
    Twin("a halted run that claims all", Answered, {"answered": 1.0}, (QUERIES,), ("halts, says so",)),
    Twin("noise of one answer on all", counting, {"moved": lambda queries: 1}, (Queries(2000, 12),), ("grow as sqrt(k)",)),
    Twin("MWEM that learns nothing", Weights, {"move": lambda weights, columns, shares: None}, (MARGINALS,), STAYING),
    Twin(
        "a hundredth of the budget",
        ConcentratedRounds,
        {"within": lambda rho, rounds: WITHIN(type(rho)(rho.atto_rho // 100), rounds)},
        (MARGINALS,),
        ("in rho beats MWEM, pure",),
    ),
    Twin("terms that are too bold", runs, BOLD, (QUERIES,), ("alpha to 1.1 alpha",)),
]
test_shown, test_wrong_twins_are_not_shown = QUICK.tests(TWINS, next(place for place, point in enumerate(QUICK.points) if isinstance(point, Queries)))


@pytest.mark.parametrize("twin", [FOURIER, CONCENTRATED, PRODUCT])
def test_a_table_that_is_not_the_nearest_is_not_shown(twin: str) -> None:
    """The characters as they are, MWEM's table, independent columns: each in its place."""
    measured = [(point, QUICK.right(place)) for place, point in enumerate(QUICK.points)]
    swapped = [(point, replace(m, means={**m.means, NEAREST: m.means[twin]}) if isinstance(point, AllMarginals) else m) for point, m in measured]
    assert "the table nearest" in lost(EXPERIMENT.conclude(swapped, "quick"))
