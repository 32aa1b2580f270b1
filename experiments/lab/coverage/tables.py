"""Which intervals are measured of what people ask of tables: shares among those present, joint shares, quantiles; and of a protocol without cases."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from local_dp.errors import RefusedError
from local_dp.experiments.lab.coverage.repetition import AT_LEAST, Case
from local_dp.experiments.lab.coverage.runs import Placed, Played, Simulated
from local_dp.experiments.lab.coverage.settings import Setting, of_settings
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.protocols.search.quantiles import Located, Quantiles
from local_dp.protocols.surveys.frequency import Crosstab, Frequency, Histogram
from local_dp.protocols.surveys.survey import Survey
from local_dp.protocols.vectors.mean_vector import Mean
from local_dp.records import Records

PRESENT = 0.7  # the share of those who have a value
NUMBERS = np.array([0.0, 1.0, np.nan])


def _present() -> Iterator[Setting]:
    """Quotients of two estimates, where three of ten have nothing to tell."""
    for share in (0.1, 0.5):
        law, told = [PRESENT * (1 - share), PRESENT * share, 1 - PRESENT], f"share {share:g} among those present"
        numbers = partial(Setting, few=(), binomial=False, what=told, shares=law)
        yield numbers("survey", protocol=Survey(question="value > 0", missing="exclude"), kinds=Records({"value": NUMBERS}))
        yield numbers("mean", protocol=Mean(missing="exclude"), kinds=Records({"value": NUMBERS}))
    letters = Records({"letter": np.array(["a", "b", "c", "d", ""])})
    frequency = Frequency(column="letter", labels=("a", "b", "c", "d"), missing="exclude")
    yield Setting("frequency", "four labels among those present", frequency, letters, [0.35, 0.2, 0.1, 0.05, 0.3], few=(), binomial=False)


def _histogram() -> Iterator[Setting]:
    for missing in ("category", "exclude"):
        kinds = Records({"value": np.append(np.arange(-1, 11) / 10 + 0.05, np.nan)})
        law = [0.02, 0.05, 0.1, 0.2, 0.2, 0.15, 0.08, 0.05, 0.03, 0.02, 0.01, 0.01, 0.08]
        yield Setting("histogram", f"a bell, missing {missing}", Histogram(missing=missing), kinds, law, few=(), binomial=False)


def _crosstab() -> Iterator[Setting]:
    kinds = Records({"first": np.repeat(["a", "b"], 3), "second": np.tile(["x", "y", ""], 2)})
    for missing in ("category", "exclude"):
        protocol = Crosstab(columns=("first", "second"), labels=("a|b", "x|y"), missing=missing)
        law = [0.3, 0.1, 0.1, 0.05, 0.35, 0.1]
        yield Setting("crosstab", f"two by two, missing {missing}", protocol, kinds, law, few=(), binomial=False, dear=2)


def _quantiles(epsilon: float) -> Iterator[Case]:
    """Three quantiles of a bell on a grid: the intervals hold every place that no test excludes, and assume no law, so they are wider than they need be."""
    for rounds, dear in (("one", 5), ("several", 50)):
        protocol = Quantiles(low=0.0, high=1.0, bins=126, at=("0.25", "0.5", "0.75"), rounds=rounds)
        population = protocol.synthetic(protocol.clients(epsilon), 0)
        truth = np.searchsorted(protocol.grid.edges, protocol.truth(population), side="right").astype(np.float64)
        draw = Played(protocol, population, epsilon, _placed)
        yield Case("quantiles", f"a bell, rounds {rounds}", epsilon, population.size, truth, draw, binomial=False, band=AT_LEAST, default=True, dear=dear)


def _placed(found: Located) -> tuple[Placed]:
    place, low, high = np.array(found.places, dtype=np.float64).T
    return (Placed(place, np.full(len(place), np.nan), found.n, None, (low, high)),)


def of_itself(kind: type[LocalProtocol[Any]], epsilon: float) -> Iterator[Case]:
    """A protocol of several rounds, or without cases of its own, as it stands: its default parameters, clients and population."""
    protocol = kind()
    population = protocol.synthetic(protocol.clients(epsilon), 0)
    truth = np.atleast_1d(np.asarray(protocol.truth(population), dtype=np.float64))
    case = partial(Case, kind.name, "its synthetic population", epsilon, population.size, truth, binomial=False, default=True)
    drawn = Played(protocol, population, epsilon, lambda result: (getattr(result, "estimate", result),))
    try:
        next(iter(drawn(np.random.default_rng(0), 1)))
    except RefusedError:  # a tally has no closed law: every client is simulated, each time with a record of its own drawn afresh
        size = population.size
        yield case(draw=Simulated(protocol.algorithm(epsilon, size), partial(protocol.synthetic, size), epsilon), dear=100)
    else:
        yield case(draw=drawn, dear=10)


TABLES: dict[str, Callable[[float], Iterator[Case]]] = {
    "present": partial(of_settings, _present),
    "histogram": partial(of_settings, _histogram),
    "crosstab": partial(of_settings, _crosstab),
    "quantiles": _quantiles,
}
