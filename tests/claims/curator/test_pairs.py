"""`pairs` is shown as it stands; wrong noise and wrong projections in its place are not."""

from dataclasses import replace

import pytest

from local_dp.curator.inversion import rounded_normals
from local_dp.curator.marginals import pairs as release
from local_dp.curator.marginals.pairs import PairGaussian, onto_elliptope
from local_dp.experiments.claims.curator import pairs
from local_dp.experiments.claims.curator.pairs import EXPERIMENT, Releases
from tests.support.runs.quick import Quick, Twin, lost

pytestmark = pytest.mark.long
QUICK = Quick(EXPERIMENT, [replace(point, runs=4) if isinstance(point, Releases) and not point.hull else point for point in EXPERIMENT.points("quick")])
SMALLEST = tuple(point for point in QUICK.points if point.d <= 50)
TWINS = [
    Twin("the price of an added record", PairGaussian, {"square": property(lambda release: release.d * (release.d - 1) // 2)}, SMALLEST, ("pays for",)),
    Twin("half the stated variance", release, {"rounded_normals": lambda draws, v, count: rounded_normals(draws, v // 2, count)}, SMALLEST, ("variance",)),
    Twin("half as far again elsewhere", pairs, {"onto_elliptope": lambda means: 1.5 * means - 0.5 * onto_elliptope(means)}, SMALLEST, ("farther",)),
    Twin("a projection that stays", pairs, {"onto_elliptope": lambda means: means}, SMALLEST, ("projected beats raw",)),
]


def test_the_checks_that_do_not_depend_on_the_number_of_runs_are_shown() -> None:
    """The price, the noise, the promises for every run, the figure; and a point measured twice is identical."""
    fallen = lost(QUICK.found())
    assert not any(part in fallen for part in ("pays for", "variance", "farther", "draws what"))
    assert QUICK.measure(0) == QUICK.right(0)


@pytest.mark.parametrize("twin", TWINS, ids=str)
def test_wrong_twins_are_not_shown(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    QUICK.loses(twin, monkeypatch)
