"""`one-round-parity` is shown as it stands; wrong bounds, servers and randomizers in its place are
not."""

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

from local_dp.bounds import channels, parity
from local_dp.bounds.parity import parity_one_round_bound
from local_dp.bounds.response import response_gain
from local_dp.experiments.claims.frontier import one_round_parity as claim
from local_dp.experiments.claims.frontier.one_round_parity import (
    DENY,
    EXPERIMENT,
    AtBound,
    Channels,
    Count,
    Cross,
    Successes,
)
from local_dp.experiments.lab.parts import ClientCount, CrossCheck, Finding
from local_dp.interaction import Nonadaptive
from local_dp.oracles.local.asked import LocalQuery
from local_dp.protocols.parity.parity import ParityDeny
from local_dp.randomizers import finite
from local_dp.randomizers.finite import flip_weight
from local_dp.randomizers.signs import characters
from local_dp.tallies import Tally
from tests.support.runs.quick import lost


def invented(point: Any) -> Any:
    if isinstance(point, AtBound):
        n = math.ceil(parity_one_round_bound(point.d, claim.EPSILON, claim.TARGET))
        return Successes(n, round(0.95 * point.trials), 0.95)
    if isinstance(point, Cross):
        return CrossCheck(500, (362, 400), (1440, 1600))
    assert isinstance(point, Count)
    count = claim.guess(point.kind, point.d) * (0.95 if point.kind == claim.MASKS else 1.0)
    return ClientCount(round(count), 0.98 * count, 1.02 * count, 1)


FIELDS = {Channels: "", Count: "kind", AtBound: "several", Cross: "of"}


def found(*kinds: type, changes: Mapping[tuple[type, str], Any] = {}) -> Finding:
    """The finding of invented measurements; points of `kinds` with naming suspects at d up to 4 are
    measured, and those in `changes` are given."""
    rows: list[tuple[Any, Any]] = []
    for place, point in enumerate(EXPERIMENT.points("quick")):
        name = getattr(point, FIELDS[type(point)], "")
        if isinstance(point, kinds) and getattr(point, "d", 0) <= 4 and name in ("", DENY):
            rows.append((point, EXPERIMENT.measure(point, 100 + place)))
        elif not isinstance(point, Channels):
            rows.append((point, changes.get((type(point), name)) or invented(point)))
    return EXPERIMENT.conclude(rows, "quick")


@cache
def lost_by_the_right_ones() -> str:
    return lost(found())


@pytest.mark.long
def test_shown() -> None:
    """With channels and naming suspects at d = 4 measured, and the rest as known; a point measured
    twice is identical."""
    finding = found(Channels, Count, Cross)
    assert finding.verdict == "shown", lost(finding)
    assert EXPERIMENT.measure(Count(DENY, 4, 500), 7) == EXPERIMENT.measure(Count(DENY, 4, 500), 7)


@pytest.mark.long
@pytest.mark.parametrize(("kind", "name", "measurement", "falls"), [
    (Count, claim.MASKS, ClientCount(1, 0.9, 1.1, 1), "as many clients as random masks"),
    (Count, DENY, ClientCount(10**6, 0.99e6, 1.01e6, 1), "are as computed"),
    (Count, claim.HALVING, ClientCount(5, 4.9, 5.1, 1), "times the bound"),
    (AtBound, claim.TWO, Successes(1, 1020, 0.94), "several rounds succeed"),
    (AtBound, claim.TWO, Successes(1, 1074, 0.895), "several rounds succeed"),
])  # fmt: skip
def test_wrong_counts_are_not_shown(kind: type, name: str, measurement: Any, falls: str) -> None:
    """Masks that need no more, suspects that need too many, a count below its bound, two successes
    at the bound, a search that failed."""
    assert falls not in lost_by_the_right_ones()
    assert falls in lost(found(changes={(kind, name): measurement}))


def at_plus(epsilon: float) -> float:
    """kappa at +1/C."""
    most = 1 / response_gain(epsilon)
    return float(((1 + most) * math.log1p(most) - most) / most**2)


@pytest.mark.long
@pytest.mark.parametrize(
    ("target", "name", "wrong"),
    [(parity, "report_curvature", at_plus), (channels, "LN3", math.inf)],
)
def test_smaller_bounds_are_not_shown(
    target: Any, name: str, wrong: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With kappa at +1/C the best of all channels at d = 3 reveals more than the bound; so at
    epsilon 3 with G = 1/C^2 at every epsilon."""
    monkeypatch.setattr(target, name, wrong)
    assert "no report reveals more" in lost(found(Channels))


@pytest.mark.long
def test_a_server_that_takes_the_most_named_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """It never succeeds, and the search says so."""
    right = ParityDeny.algorithm

    def wrong(
        self: ParityDeny, epsilon: float, clients: int
    ) -> Nonadaptive[LocalQuery, Tally, int]:
        def most(tallies: tuple[Tally, ...]) -> int:
            return int(np.argmax(tallies[0].counts[0]))

        return Nonadaptive(right(self, epsilon, clients).queries, most)

    monkeypatch.setattr(ParityDeny, "algorithm", wrong)
    assert "Every search" in lost(found(Count))


def agrees(label: Any, name: Any, right: Any = characters.ruled_out) -> Any:
    """Clients name a parity that agrees."""
    return right(label, name) ^ np.uint8(1)


@pytest.mark.long
@pytest.mark.parametrize(("target", "name", "wrong"), [
    (characters, "ruled_out", agrees),
    (finite, "flip_weight", lambda nano, bits: flip_weight(2 * nano, bits)),
], ids=["agrees", "leaks"])  # fmt: skip
def test_a_wrong_randomizer_is_not_shown(
    target: Any, name: str, wrong: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients who name what agrees do not follow the law; thresholds of twice the epsilon lose more
    than is charged."""
    monkeypatch.setattr(target, name, wrong)
    assert "client by client" in lost(found(Cross))
