"""The cost of durable stores: rounds of signed runs on one broker, alternately without stores and with them."""

import asyncio
import shutil
import tempfile
from collections.abc import Generator
from contextlib import nullcontext
from statistics import median

from local_dp.experiments.bench.runs import local_mosquitto
from local_dp.experiments.bench.speeds import Speed
from local_dp.experiments.text.screen import SCREEN
from local_dp.experiments.tiers.over_bus import over_bus
from local_dp.experiments.tiers.settings import EMBEDDED, Randomness, Settings, Tier
from local_dp.interaction import Adaptive
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.protocols.surveys.survey import Survey
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.server.quorum import Terms
from local_dp.tallies import Estimate, Tally

_TURNS, _ROUNDS, _EPSILON = 3, 6, 6.0
_AT_MOST: dict[Tier, float] = {"processes": 1.5 / 1.09, "hosts": 1.5 / 1.15}  # 1.5 for signatures and stores, of which signatures take 9 and 15 %


def store_speeds(processes: int) -> list[Speed]:
    """For client processes, and for 10^5 clients in two hosts: the median round with stores, beside the median round without."""
    with local_mosquitto() if shutil.which("mosquitto") else nullcontext(EMBEDDED) as broker:
        name = "embedded broker" if broker == EMBEDDED else "Mosquitto"
        speeds = [_beside(f"10^5 clients in 2 hosts, {name}", 100_000, "hosts", broker)]
        if processes:
            speeds.insert(0, _beside(f"{processes} client processes, {name}", processes, "processes", broker))
    return speeds


def _beside(what: str, clients: int, tier: Tier, broker: str) -> Speed:
    SCREEN.working(f"measuring {what}, with stores and without")
    pairs = [(_seconds(clients, tier, broker, stores=False), _seconds(clients, tier, broker, stores=True)) for _ in range(_TURNS)]
    without, kept = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
    return Speed(f"{what}: one round with stores", kept, "s", without, _AT_MOST[tier])


def _seconds(clients: int, tier: Tier, broker: str, stores: bool) -> float:
    """The median round of a run."""
    protocol = Survey()
    query = LocalQuery(protocol.query, BinaryRR(_EPSILON / _ROUNDS), Cohort(0, clients))

    def play() -> Generator[tuple[LocalQuery, ...], tuple[Tally, ...], Estimate]:
        for _ in range(_ROUNDS - 1):
            yield (query,)
        (tally,) = yield (query,)
        return query.randomizer.estimate(tally)

    folder = tempfile.mkdtemp(prefix="ldp-stores-") if stores else ""
    terms = Terms(deadline=120.0, quorum=1.0)
    settings = Settings(
        protocol=protocol,
        population=protocol.synthetic(clients, 0),
        epsilon=_EPSILON,
        randomness=Randomness(0, False),
        tier=tier,
        broker=broker,
        terms=terms,
        stores=folder,
        played=Adaptive(play),
    )
    try:
        return median(asyncio.run(over_bus(settings, lambda progress: None)).seconds)
    finally:
        if folder:
            shutil.rmtree(folder)
