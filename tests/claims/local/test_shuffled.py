"""`shuffled` is shown as it stands; wrong accounts and wrong histograms in their place are not."""

from typing import Any

from local_dp.experiments.claims.local import shuffled
from local_dp.experiments.claims.local.shuffled import EXPERIMENT
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.shuffle import accountant
from local_dp.shuffle.histogram import BlanketHistogram
from local_dp.shuffle.pair import Pair
from tests.support.runs.quick import Quick, Twin

QUICK, LEAST, ESTIMATE = Quick(EXPERIMENT), Pair.epsilon_at_least, BlanketHistogram.estimate


def forgets(histogram: BlanketHistogram, tally: Any) -> Any:
    """An estimate that forgets what the blanket adds is biased."""
    estimate = ESTIMATE(histogram, tally)
    return type(estimate)(
        estimate.value + histogram.tries * histogram.share, estimate.standard_error, estimate.n
    )


CLONES = {"variation_ratio": lambda local: accountant.cloned(local, 1.0)}
FIFTH = {
    "epsilon_at_least": lambda pair, groups, delta, most: LEAST(pair, groups, 0.8 * delta, most)
}
ALONE = {"single_message": lambda name, k, target: GRR(target.epsilon, k=k)}
TWINS = [
    Twin(
        "every other client a clone",
        accountant,
        CLONES,
        (shuffled.Enumerated,),
        "no upper bound is too low",
    ),
    Twin(
        "a pair whose delta is a fifth larger",
        Pair,
        FIFTH,
        (shuffled.Enumerated,),
        "no lower one too high",
    ),
    Twin(
        "too small a blanket",
        BlanketHistogram,
        {"estimate": forgets},
        (shuffled.MANY,),
        "as its closed form says",
    ),
    Twin(
        "one report at the epsilon of all", shuffled, ALONE, (shuffled.ONE,), "a curator errs least"
    ),
]
test_shown, test_wrong_twins_are_not_shown = QUICK.tests(TWINS, shuffled.Errors)
