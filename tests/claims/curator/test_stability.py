"""`stability` is shown as it stands; wrong choices in its place are not."""

from dataclasses import replace

import pytest

from local_dp.curator.selection.stable import UNIT, Lead, StableChoice, best_acceptance
from local_dp.experiments.claims.curator import stability
from local_dp.experiments.claims.curator.stability import EXPERIMENT, Privacy, Records
from local_dp.loss import Approximate
from tests.support.runs.quick import Quick, Twin

QUICK, RELEASE = Quick(EXPERIMENT), StableChoice.release
ONE = Quick(
    EXPERIMENT, [point for point in QUICK.points if (point.epsilon, point.delta) == (1.0, 1e-3)]
)


def in_steps_of_one(loss: Approximate) -> tuple[int, ...]:
    """The best law in steps of 1 instead of 2: private if the lead had sensitivity 1."""
    chances = best_acceptance(loss)
    return (chances[0], *chances[2::2])


STEPS = {"local_dp.curator.selection.stable.best_acceptance": in_steps_of_one}
SELDOM = {
    "release": lambda choice, lead, draws: RELEASE(
        replace(choice, delta=choice.delta * 0.8), lead, draws
    )
}
TWINS = [
    Twin(
        "a choice that answers at any lead",
        StableChoice,
        {"answered": lambda choice, gap: UNIT},
        (Privacy,),
        "enumerated in whole numbers",
    ),
    Twin("a lead that moves by one", None, STEPS, (Privacy,), "best test has its delta"),
    Twin("runs at four fifths of the delta", StableChoice, SELDOM, (Records,), "runs name a point"),
]


_, test_wrong_twins_are_not_shown = ONE.tests(TWINS)


@pytest.mark.long
def test_shown() -> None:
    QUICK.shows()
    leasts = next(table for table in QUICK.found().tables if table.title.startswith("records"))
    assert [row[2:4] for row in leasts.rows] == [(268, 218), (209, 192), (363, 345), (1621, 1124)]


def test_the_lead_is_counted_twice_over() -> None:
    """The mechanism's lead and the enumeration's, by separate code, agree."""
    for records in (((0,), (0,), (2,)), ((1,), (2,), (2,), (1,)), ((2,),)):
        best, gap = stability._lead(records)
        assert stability.lead_of(stability._multiset(records)) == Lead(best, gap)
