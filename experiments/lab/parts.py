"""Everything that a claim is made of, in one import."""

from local_dp.experiments.lab.chapters import (
    CURATOR_AND_ATTACKS,
    FRONTIER,
    HEURISTICS,
    LOCAL_MODEL,
    PURE_AND_APPROXIMATE,
    Chapter,
)
from local_dp.experiments.lab.checks import (
    Claimed,
    crossing,
    drawn,
    every,
    holds,
    log_choose,
    measured,
    within,
)
from local_dp.experiments.lab.claim import (
    Deltas,
    Experiment,
    Points,
    Row,
    Rows,
    Sheet,
    grid,
    reached_check,
    seeded,
)
from local_dp.experiments.lab.cross_check import (
    CrossCheck,
    Crossing,
    Refusal,
    Trial,
    cross_check,
    cross_check_shown,
    exact_trial,
)
from local_dp.experiments.lab.intervals import (
    about,
    about_log,
    quantile,
    relative_error,
    slope,
    wilson,
)
from local_dp.experiments.lab.minimal_clients import (
    ClientCount,
    Successes,
    exact_recovery,
    measured_clients,
    no_count,
    own_seed,
)
from local_dp.experiments.lab.shapes import (
    Check,
    Curve,
    Figure,
    Finding,
    LogFigure,
    LogLogFigure,
    Region,
    Regions,
    Scale,
    Table,
    curve,
    curve_of,
    table_of,
    tabulate,
)
from local_dp.experiments.lab.statistics import (
    NO_FACTOR,
    NOTHING,
    Normal,
    Positive,
    Rate,
    geometric_mean,
    least_count,
    mean,
    positive_mean,
    ratio,
)
