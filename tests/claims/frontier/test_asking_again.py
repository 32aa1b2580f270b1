"""`asking-again` is shown as it stands; with wrong constants it is not."""

from local_dp.bounds import channels
from local_dp.bounds.channels import two_laws_clients
from local_dp.bounds.posterior import posterior_budget
from local_dp.experiments.claims.frontier.asking_again import EXPERIMENT, Laws
from tests.support.runs.quick import Quick, Twin

QUICK = Quick(EXPERIMENT)


TWINS = [
    Twin(
        "a bound of twice as much",
        channels,
        {"posterior_budget": lambda *point: 2 * posterior_budget(*point)},
        (),
        "than yes",
    ),
    Twin(
        "a tenth of the people too few",
        channels,
        {"two_laws_clients": lambda *point: int(0.9 * two_laws_clients(*point))},
        (Laws,),
        "likelier law",
    ),
]
test_shown, test_wrong_twins_are_not_shown = QUICK.tests(TWINS)
