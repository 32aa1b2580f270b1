"""`what-delta-buys` is shown as it stands; too few people, a wider clip, a louder curator and other
tables are not."""

from local_dp.bounds import common
from local_dp.bounds.common import common_hashing_clients, published_parity_clients
from local_dp.curator.selection import common as naming
from local_dp.experiments.claims.curator.what_delta_buys import (
    EXPERIMENT,
    Clipped,
    Curator,
    Hashing,
    Published,
    Same,
)
from local_dp.randomizers.compressed import purified
from tests.support.runs.quick import Quick, Twin

QUICK = Quick(EXPERIMENT)
CLIPPED = purified.clipped


TWINS = [
    Twin(
        "clipped at twice the growth",
        purified,
        {"clipped": lambda rows, growth: CLIPPED(rows, 2 * growth)},
        (Clipped,),
        "approximate channel",
    ),
    Twin(
        "four fifths of the people",
        common,
        {"common_hashing_clients": lambda *at: 4 * common_hashing_clients(*at) // 5},
        (Hashing,),
        "one-bit protocol",
    ),
    Twin(
        "two thirds of them",
        common,
        {"published_parity_clients": lambda *at: 2 * published_parity_clients(*at) // 3},
        (Published,),
        "find a parity",
    ),
    Twin(
        "a delta that reveals a twentieth more",
        common,
        {"approximate_capacity": lambda *at: 0.13 if at[1] else 0.1233},
        (Same,),
        "saves less than",
    ),
    Twin(
        "other chances than stated",
        naming.CommonRecord,
        {"release": lambda mechanism, records, draws: 7 * (draws.below(20) > 2)},
        (Curator,),
        "releases",
    ),
]
test_shown, test_wrong_twins_are_not_shown = QUICK.tests(TWINS)
