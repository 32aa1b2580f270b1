"""The local half of the experiment `parity`: verdicts follow the measurements, and wrong protocols
lose them at the quick scale."""

from typing import Any

import pytest

from local_dp.experiments.claims.local.parity import claim
from local_dp.experiments.claims.local.parity.claim import (
    HALVING,
    ONE_ROUND,
    Local,
    formula,
    local_finding,
    local_points,
)
from local_dp.experiments.lab.parts import Check, ClientCount, CrossCheck, Crossing, Curve, Rows
from local_dp.interaction import Nonadaptive
from local_dp.protocols.local_protocol import PROTOCOLS
from local_dp.randomizers import finite

pytestmark = pytest.mark.long
Searches = Rows[Local, ClientCount]
Users = Rows[claim.Users, Crossing]


WITHIN = [Curve("curator", [4, 6, 8], [150, 200, 250])]


def made(halving: str = HALVING, factor: float = 0.95) -> Searches:
    """Searches at every quick point as they should be, or as if halving were another protocol."""
    searches: Searches = []
    for point in local_points("quick"):
        if isinstance(point, Local):
            protocol = halving if point.protocol == HALVING else ONE_ROUND
            n = factor * formula(protocol, point.d)
            searches.append((point, ClientCount(round(n), 0.98 * n, 1.02 * n, 1)))
    return searches


CROSSED: Users = [
    (point, CrossCheck(500, (362, 400), (1440, 1600)))
    for point in local_points("quick")
    if isinstance(point, claim.Users)
]


def lost(searches: Searches, users: Users = CROSSED, within: list[Curve] = WITHIN) -> list[Check]:
    return [check for check in local_finding(searches, users, within)[2] if not check.shown]


def said(checks: list[Check]) -> str:
    return "; ".join(check.statement for check in checks)


def test_checks_follow_the_measurements() -> None:
    """Counts as predicted are shown; halving that needs what one round does, counts 1.25 times too
    many or below their limit are not."""
    assert not lost(made())
    assert said(lost(made(halving=ONE_ROUND))).count("Halving") == 2
    assert "its formula says" in said(lost(made(factor=1.25)))
    assert "lower bounds" in said(lost(made(factor=0.95 / 3)))


def test_separation_needs_exponential_growth() -> None:
    """Counts that grow by a half with each dimension are not shown, nor is a curator's learner with
    nearly as many examples."""
    flat: Searches = [
        (p, ClientCount(n := round(300 * 1.5**p.d), 0.98 * n, 1.02 * n, 1)) for p, _ in made()
    ]
    assert "each dimension" in said(lost(flat))
    assert "each dimension" in said(
        lost(made(), within=[Curve("curator", [4, 6, 8], [150, 200, 2000])])
    )


def quick() -> list[Check]:
    """The checks that are lost where the one-round protocol's quick points at d = 4 are
    measured."""
    searches = [(p, p.measure(1) if (p.protocol, p.d) == (ONE_ROUND, 4) else m) for p, m in made()]
    return lost(searches, [(p, p.measure(1) if p.protocol == ONE_ROUND else m) for p, m in CROSSED])


@pytest.mark.parametrize(
    ("twin", "why"),
    [
        ("right", ""),
        ("decodes to 0", "not measured"),
        ("twice epsilon", "budget"),
        ("one short", "asked"),
        ("leaks", "loss 2.0"),
    ],
)
def test_wrong_protocols_are_not_shown(
    monkeypatch: pytest.MonkeyPatch, twin: str, why: str
) -> None:
    """The shipped protocol is shown; a decoder to 0, twice the epsilon, a client who is never asked
    and a leaking channel are not, and why is said."""
    kind = PROTOCOLS[ONE_ROUND]
    right, weight = kind.algorithm, finite.flip_weight

    def wrong(self: Any, epsilon: float, clients: int) -> Any:
        if twin == "twice epsilon":
            return right(self, 2 * epsilon, clients)
        algorithm: Any = right(self, epsilon, clients - (twin == "one short"))
        return (
            Nonadaptive(algorithm.queries, lambda tallies: 0)
            if twin == "decodes to 0"
            else algorithm
        )

    monkeypatch.setattr(kind, "algorithm", wrong)
    if twin == "leaks":
        monkeypatch.setattr(finite, "flip_weight", lambda nano, bits: weight(2 * nano, bits))
    failures = quick()
    assert bool(failures) == bool(why), failures
    assert not why or any(why in check.evidence for check in failures), failures
