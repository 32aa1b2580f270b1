"""The rows of `local-dp bench`: each a value beside a reference of the same run, judged by their
ratio."""

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from multiprocessing import Process
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from local_dp.accounting.losses import rho_within
from local_dp.accounting.rules import epsilon, losses_of
from local_dp.arrays import Ints, Words
from local_dp.curator.marginals.base import BinaryTable, Marginals
from local_dp.curator.query_release.synthetic import ConcentratedRounds, Mwem
from local_dp.draws import Draws
from local_dp.experiments.bench.commands import RUN, asked_of, bare_of, fastest, table_of
from local_dp.experiments.bench.fleets import beside_bare, local_broker, with_stores
from local_dp.loss import approximate
from local_dp.noise import COINS, Draw, KeyedNoise, philox_words, stream_key
from local_dp.oracles.local.asked import CHUNK, Cohort, LocalQuery, cells_of, fitting
from local_dp.oracles.local.oracles import AskedOf, keep_memory
from local_dp.protocols.surveys.survey import Survey
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.sealing import Party, new_key, public
from local_dp.server.coordinator import Coordinator
from local_dp.server.members import Place, Roster
from local_dp.server.pages import LOOPBACK
from local_dp.server.quorum import Terms
from local_dp.simulation.cluster import Cluster, ClusterOracle, Rounds
from local_dp.text.screen import SCREEN
from local_dp.text.widgets import table
from local_dp.verification.audit import audit
from local_dp.verification.black_box import NUMBERS
from local_dp.wire import SERVER, Hello, Reply, decode, encode, topic

# of each row the most that its value may be, in units of its reference, a fifth over what was
# measured; of rates and gains the least
ASKED = {
    "--help": 2.0,
    "survey, 10^6 clients, population: Enter to result": 6.0,
    "masked parity, default run: Enter to result": 10.0,
    "survey, 10^8 clients, population: beyond start-up": 3.0,
    "survey, 10^8 clients, population: memory": 3.0,
    "survey of 10^7 rows: beyond start-up": 2.0,
    "survey of 10^7 rows, CSV: beyond start-up": 3.5,
    "survey of 10^8 rows: beyond start-up": 3.0,
    "survey of 10^8 rows: memory": 2.0,
    "survey, 10^9 clients, 2 Dask workers: times as fast as one": 0.8,
    "binary-rr, k = 2: clients": 1.5,
    "binary-rr, k = 2: server": 25.0,
    "oue, k = 1024: clients": 1.5,
    "binary-rr: one private report": 0.1,
    "audit of the slowest built-in": 30.0,
    "client processes: ready": 2.0,
    "client processes: one round": 3.5,
    "client processes: memory of one (PSS)": 1.5,
    "client processes: one round with stores": 1.8,
    "10^5 clients in 2 hosts: one round with stores": 2.2,
    "a server: one client's reply": 2.0,
    "a server: a packed report of a host's": 3.0,
    "merging two tallies of 1,024 counts": 3.0,
    "exact price of pure 0.0012345 x 5e5 + gaussian 1000 x 5e5": 30.0,
    "MWEM, 2^17 rows, 80 rounds": 15.0,
}
REPEATS = 3


@dataclass(frozen=True)
class Speed:
    """A measured value and its reference."""

    what: str
    value: float
    unit: str
    reference: float

    @property
    def ratio(self) -> float:
        """The value in units of the reference."""
        return self.value / self.reference

    @property
    def more(self) -> bool:
        """True if the ratio is bounded from below: of rates and gains."""
        return self.unit in ("million/s", "x")

    @property
    def meets(self) -> bool:
        """True if the ratio is within its bound."""
        return self.ratio >= ASKED[self.what] if self.more else self.ratio <= ASKED[self.what]


def all_speeds(processes: int) -> Iterator[Speed]:
    """Every row. Runs come first: a child's peak memory is no less than its parent's at its
    start."""
    for part in (
        run_speeds,
        table_speeds,
        cluster_speeds,
        randomizer_speeds,
        partial(process_speeds, processes),
        message_speeds,
        curator_speeds,
    ):
        SCREEN.working(
            f"measuring {getattr(part, '__name__', 'client processes').replace('_', ' ')}"
        )
        yield from part()


def as_rows(speeds: Iterable[Speed]) -> list[dict[str, Any]]:
    """The figures as plain data."""
    return [
        {**asdict(speed), "ratio": speed.ratio, "asked": ASKED[speed.what], "meets": speed.meets}
        for speed in speeds
    ]


def describe_speeds(speeds: Iterable[Speed], width: int) -> str:
    """The figures as a table."""
    rows = []
    for speed in speeds:
        figures = (speed.value, speed.reference, speed.ratio, ASKED[speed.what])
        value, reference, ratio, limit = (f"{each:.3g}" for each in figures)
        bound, verdict = (
            f"at {'least' if speed.more else 'most'} {limit}",
            "meets" if speed.meets else "misses",
        )
        rows.append((speed.what, value, speed.unit, reference, ratio, bound, verdict))
    return table(("what", "value", "unit", "reference", "ratio", "asked", "verdict"), rows, width)


def once(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best_of(work: Callable[[], object]) -> float:
    """The shortest of a few calls, in seconds: other programs disturb the others."""
    return min(once(work) for _ in range(REPEATS))


def run_speeds() -> Iterator[Speed]:
    """Whole commands. References: an interpreter that imports numpy; for what a population takes
    beyond a run of two clients, bare words."""
    bare, bare_memory = fastest(["-c", "import numpy"])
    start, _ = fastest([*RUN, "survey", "--clients", "2", "--tier", "population"])
    yield Speed("--help", fastest(["-m", "local_dp", "--help"])[0], "s", bare)
    yield Speed(
        "survey, 10^6 clients, population: Enter to result",
        fastest([*RUN, "survey", "--clients", "1000000"])[0],
        "s",
        bare,
    )
    yield Speed(
        "masked parity, default run: Enter to result",
        fastest([*RUN, "masked-parity"])[0],
        "s",
        bare,
    )
    seconds, memory = fastest([*RUN, "survey", "--clients", "100000000", "--tier", "population"])
    yield Speed(
        "survey, 10^8 clients, population: beyond start-up", seconds - start, "s", bare_words(10**8)
    )
    yield Speed("survey, 10^8 clients, population: memory", memory, "MiB", bare_memory)


def bare_words(clients: int) -> float:
    """Seconds of numpy to draw two bytes for each client, its record and its noise, and to compare
    them, by a thread for each core."""
    keep_memory()
    cores, chunks = os.cpu_count() or 1, -(-2 * clients // CHUNK)

    def draw(first: int) -> None:
        generator = np.random.Philox(first)
        for _ in range(first, chunks, cores):
            np.count_nonzero(generator.random_raw(CHUNK // 8).view(np.uint8) < 77)

    def draw_all() -> None:
        with ThreadPoolExecutor(cores) as pool:
            list(pool.map(draw, range(cores)))

    return best_of(draw_all)


def table_speeds() -> Iterator[Speed]:
    """Whole commands, without the time that they take for ten rows. References: bare Polars, once
    it is imported; the memory for a million rows."""
    with table_of(10) as few, table_of(10**6) as part:
        start, memory = asked_of(few)[0], asked_of(part)[1]
    for rows, what, suffix in (
        (10**7, "10^7 rows", ".parquet"),
        (10**7, "10^7 rows, CSV", ".csv"),
        (10**8, "10^8 rows", ".parquet"),
    ):
        with table_of(rows, suffix) as folder:
            # in turn: no machine is always as fast
            runs = [(asked_of(folder), bare_of(folder)) for _ in range(REPEATS)]
        seconds, mebibytes = min(ours for ours, _ in runs)
        yield Speed(
            f"survey of {what}: beyond start-up",
            seconds - start,
            "s",
            min(bare for _, bare in runs),
        )
    yield Speed("survey of 10^8 rows: memory", mebibytes, "MiB", memory)


# the median of so many pairs counts: on a machine that others use too, five gave 1.35 to 1.64
_PAIRS, _DRAWS = (15, 4000)


def cluster_speeds() -> Iterator[Speed]:
    """The gain of two workers over one on a survey, beside that of two processes that only draw
    words. Needs the extra `cluster`."""
    if find_spec("distributed") is None:
        return
    which, population = Draw(1), Survey().synthetic(10**9, 0)
    query = LocalQuery(Survey().query, BinaryRR(1.0), Cohort(0, population.size))
    request = AskedOf(
        population,
        KeyedNoise(0),
        query,
        which,
        which.key(COINS, 0),
    )

    def gather(cluster: Cluster) -> None:
        with tempfile.TemporaryDirectory() as folder:
            ClusterOracle(
                cluster, population, 0, 1.0, lambda ask, tally: None, Rounds(Path(folder))
            ).gather(request)

    with _cluster(1) as one, _cluster(2) as two:
        pairs = [
            (_gain(partial(gather, one), partial(gather, two)), _gain(_words, _words_twice))
            for _ in range(_PAIRS)
        ]
    gain, bare = (median(gains) for gains in zip(*pairs, strict=True))
    yield Speed("survey, 10^9 clients, 2 Dask workers: times as fast as one", gain, "x", bare)


@contextmanager
def _cluster(workers: int) -> Iterator[Cluster]:
    """Workers of one thread on this machine."""
    from dask.config import set as configured
    from distributed import LocalCluster

    near = {
        "host": LOOPBACK,
        "dashboard_address": f"{LOOPBACK}:0",
        "worker_dashboard_address": f"{LOOPBACK}:0",
    }
    with (
        configured({"distributed.worker.profile.enabled": False}),  # a profile that nobody reads
        LocalCluster(n_workers=workers, threads_per_worker=1, silence_logs=50, **near) as local,
        Cluster(local.scheduler_address) as cluster,
    ):
        yield cluster


def _gain(alone: Callable[[], object], by_two: Callable[[], object]) -> float:
    """The speed of two in units of one."""
    return once(alone) / once(by_two)


def _words(count: int = _DRAWS) -> None:
    noise = np.random.Philox(0)
    for _ in range(count):
        noise.random_raw(CHUNK // 8)


def _words_twice() -> None:
    both = [Process(target=_words, args=(_DRAWS // 2,)) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join()


_BATCHES, _SINGLE = 32, 4096  # batches timed at once, and reports made one by one


def randomizer_speeds() -> Iterator[Speed]:
    """Clients and servers at epsilon 1, as in the population tier or one alone; and the slowest
    audit."""
    keep_memory()
    for randomizer in (BinaryRR(1.0), RANDOMIZERS.build("oue", {"epsilon": 1.0, "k": 1024})):
        (answer, batch), (tally, chunk) = end_work(randomizer)
        bare = partial(_compare, batch * randomizer.words, randomizer.width)
        yield _rate(
            f"{randomizer.name}, k = {randomizer.domain.size}: clients", answer, bare, batch
        )
        if randomizer.domain.size == 2:
            yield _rate(
                "binary-rr, k = 2: server",
                tally,
                partial(np.bincount, _reports(randomizer).ravel()),
                chunk,
            )
    yield _rate(
        "binary-rr: one private report",
        partial(BinaryRR(1.0).private_report, 1),
        partial(os.urandom, 4),
        1,
        _SINGLE,
    )
    seconds = max(once(partial(audit, RANDOMIZERS[name](1.0))) for name in RANDOMIZERS.built_in)
    words = partial(philox_words, stream_key("bench", 0), 0, NUMBERS, 64)
    yield Speed("audit of the slowest built-in", seconds, "s", best_of(words))


def _rate(
    what: str,
    work: Callable[[], object],
    bare: Callable[[], object],
    reports: int,
    times: int = _BATCHES,
) -> Speed:
    """Millions of reports a second."""

    def duration(each: Callable[[], object]) -> float:
        each()  # compiles, and fills caches
        return best_of(lambda: [each() for _ in range(times)])

    rate = reports * times / duration(work) / 1e6
    return Speed(
        what,
        rate,
        "million/s",
        reports * times / duration(bare) / 1e6,
    )


def _compare(words: int, width: int) -> object:
    return philox_words(stream_key("bench", 0), 0, words, width) < 1 << 20


def end_work(
    randomizer: Randomizer,
) -> tuple[tuple[Callable[[], object], int], tuple[Callable[[], object], int]]:
    """The work of a batch of clients, and of a server that adds up a chunk; each with its number of
    reports."""
    batch = fitting(randomizer)
    reports, cells = (
        _reports(randomizer),
        cells_of(randomizer, stream_key("bench coins", 0), 0, CHUNK),
    )
    clients = partial(_answers, randomizer, _values(randomizer, batch), 0)
    return (clients, batch), (partial(randomizer.tally, reports, cells), CHUNK)


def _values(randomizer: Randomizer, count: int) -> Ints:
    values: Ints = randomizer.domain.low + np.arange(count, dtype=np.int32) % randomizer.domain.size
    return values.astype(np.uint8) if randomizer.domain.size == 2 else values


def _reports(randomizer: Randomizer) -> Words:
    """A chunk of reports."""
    batch = fitting(randomizer)
    batches = [
        _answers(randomizer, _values(randomizer, batch), start) for start in range(0, CHUNK, batch)
    ]
    return np.concatenate(batches)[:CHUNK]


def _answers(randomizer: Randomizer, values: Ints, start: int) -> Words:
    cells = cells_of(randomizer, stream_key("bench coins", 0), start, start + len(values))
    return randomizer.simulated(KeyedNoise(0), Draw(1), start, values, cells)


def process_speeds(processes: int) -> Iterator[Speed]:
    """Client processes beside bare ones, and rounds with stores beside rounds without: by Mosquitto
    where it is installed."""
    with local_broker() as broker:
        if processes:
            ours, bare = beside_bare(processes, broker)
            yield Speed("client processes: ready", ours.ready, "s", bare.ready)
            yield Speed("client processes: one round", ours.round, "s", bare.round)
            yield Speed("client processes: memory of one (PSS)", ours.memory, "MiB", bare.memory)
            yield Speed(
                "client processes: one round with stores",
                *with_stores(min(processes, 300), "processes", broker),
            )
        yield Speed(
            "10^5 clients in 2 hosts: one round with stores", *with_stores(100_000, "hosts", broker)
        )


_RUN, _GROUP = "bench", "g0"
_MESSAGES = 500


def message_speeds() -> Iterator[Speed]:
    """For one-bit reports, beside the verification of the signature alone, and beside bare
    additions."""
    verification, one = _per_message(1, _MESSAGES)
    yield Speed("a server: one client's reply", 1e6 * one, "us", 1e6 * verification)
    whole, batch = _per_message(CHUNK, 4)
    yield Speed(
        "a server: a packed report of a host's", 1e9 * batch / CHUNK, "ns", 1e9 * whole / CHUNK
    )
    empty, counts = Hadamard(1.0, k=1024).empty(), np.zeros(1024)
    merge, addition = (
        best_of(lambda each=each: [each + each for _ in range(_MESSAGES)]) / _MESSAGES  # type: ignore[misc]
        for each in (empty, counts)
    )
    yield Speed("merging two tallies of 1,024 counts", 1e6 * merge, "us", 1e6 * addition)


def _per_message(reports: int, messages: int) -> tuple[float, float]:
    """Seconds for each message of so many reports: for verifying its signature, and for all other
    work of a server."""
    name, keys = "host-0", (new_key(), new_key())
    roster = Roster([Place(name, _GROUP, 0, reports * messages, public(keys[1]))])
    server = Party.server(_RUN, keys[0], roster.speaker)
    member = Party.member(_RUN, public(keys[0]), keys[1])
    where = topic(_RUN, "rep", _GROUP, name)
    body = np.zeros(reports, dtype=np.uint8).tobytes()
    starts = range(0, reports * messages, reports)
    envelopes = [
        member.seal(
            where,
            encode(
                Reply(run=_RUN, round=1, member=name, ask=0, start=start, width=1, reports=body)
            ),
        )
        for start in starts
    ]

    def hear(times: int) -> None:
        coordinator = Coordinator(_RUN, reports * messages, 0, 1.0, Terms(), roster)
        hello = Hello(run=_RUN, member=name, start=0, stop=reports * messages, private=False)
        coordinator.receive(
            topic(_RUN, "hello", _GROUP, name),
            hello,
            0.0,
        )
        coordinator.open(
            (LocalQuery(Survey().query, BinaryRR(1.0), Cohort(0, reports * messages)),), 0.0
        )
        for envelope in envelopes[:times]:
            coordinator.receive(where, decode(server.open(where, envelope), SERVER), 0.0)
        assert coordinator.counts.answered == reports * times

    verification = best_of(lambda: [server.open(where, envelope) for envelope in envelopes])
    # without the work of a round
    delivery = best_of(partial(hear, messages)) - best_of(partial(hear, 0))
    return verification / messages, max(0.0, delivery) / messages


def curator_speeds() -> Iterator[Speed]:
    """An exact price beside sorting a million words, and MWEM beside the passes over its
    weights."""
    generator, terms = np.random.default_rng(0), "pure 0.0012345 x 5e5 + gaussian 1000 x 5e5"
    sort = partial(np.sort, generator.integers(0, 1 << 64, 10**6, dtype=np.uint64))
    yield Speed(
        f"exact price of {terms}",
        best_of(partial(epsilon, losses_of(terms), 1e-6)),
        "s",
        best_of(sort),
    )
    columns, rounds = 17, 80
    few = BinaryTable(columns, generator.integers(0, 1 << columns, 6366).astype(np.uint64))
    mwem = Mwem(
        Marginals.ways(columns, 3),
        ConcentratedRounds.within(rho_within(approximate(1.0, 1e-6)), rounds),
    )
    weights = np.ones(1 << columns)
    moves = mwem.rounds.replays(len(few.rows)) * rounds * (rounds + 1) // 2

    def passes() -> None:
        for _ in range(moves):
            weights.sum()
            np.multiply(weights, 1.0, out=weights)

    yield Speed(
        "MWEM, 2^17 rows, 80 rounds",
        best_of(partial(mwem.release, few, Draws(KeyedNoise(0)))),
        "s",
        best_of(passes),
    )
