"""`asking-again` is shown as it stands; answers that do not factor, and wrong constants, are
not."""

from local_dp.arrays import Counts, Floats
from local_dp.bounds import channels
from local_dp.bounds.channels import parity_interactive_bound, pasting_constant, two_laws_clients
from local_dp.experiments.claims.frontier import asking_again
from local_dp.experiments.claims.frontier.asking_again import EXPERIMENT, Drawn, Halving, Laws
from local_dp.hardness.transcripts import Turn, transcript_laws
from tests.support.runs.quick import Quick, Twin

QUICK = Quick(EXPERIMENT)


def of_a_curator(protocol: Turn, inputs: Counts) -> Floats:
    """The laws of answers that see all inputs at once."""
    return transcript_laws(protocol, inputs * inputs.all(axis=1, keepdims=True))


CHEAP = {"EPSILON": 0.5, "parity_halving_clients": lambda d, epsilon, beta: 442}
TWINS = [
    Twin(
        "a curator in the protocol",
        asking_again,
        {"transcript_laws": of_a_curator},
        (Drawn,),
        "drawn at random",
    ),
    Twin(
        "nine tenths of the constant",
        asking_again,
        {"pasting_constant": lambda clients=None: 0.9 * pasting_constant(clients)},
        (),
        "search",
    ),
    Twin(
        "c at +1/C in place of -1/C",
        channels,
        {"affinity_curvature": lambda epsilon: 0.09},
        (),
        "one person",
    ),
    Twin(
        "halving at half the epsilon with the formula's clients at all of it",
        asking_again,
        CHEAP,
        (Halving,),
        "halving finds",
    ),
    Twin(
        "0.85 of the bound",
        asking_again,
        {"parity_interactive_bound": lambda *point: 0.85 * parity_interactive_bound(*point)},
        (),
        "from d = 8 on",
    ),
    Twin(
        "a tenth of the people too few",
        channels,
        {"two_laws_clients": lambda *point: int(0.9 * two_laws_clients(*point))},
        (Laws,),
        "likelier law",
    ),
]
test_shown, test_wrong_twins_are_not_shown = QUICK.tests(
    TWINS,
    slow=(
        "halving at half the epsilon with the formula's clients at all of it",
        "a curator in the protocol",
    ),
)
