"""`local-dp bench --peers`: the same work by this library and by every installed peer, in one
run."""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from local_dp.curator.inversion import discrete_laplaces
from local_dp.curator.marginals.base import BinaryTable
from local_dp.curator.marginals.baselines import OneMarginal
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.experiments.bench.cases import end_work
from local_dp.experiments.lab.figures import save
from local_dp.experiments.lab.shapes import Curve, Figure
from local_dp.experiments.peers.oracles import (
    LIBRARIES,
    Peer,
    Task,
    Variance,
    installed,
    peers,
    prelude,
    variances,
)
from local_dp.experiments.peers.privacy import Claim, claims
from local_dp.noise import KeyedNoise
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.text.screen import SCREEN
from local_dp.text.widgets import table

MILLION = 1e6
LEAST = 0.3  # seconds that each is timed for
# of the histogram: rows, and binary columns of which it counts the 2^10 cells
ROWS, CELLS = (1_000_000, 10)
ASKED = (
    ("binary-rr", "grr", 2),
    ("grr", "grr", 1024),
    ("oue", "oue", 128),
    ("oue", "oue", 1024),
    ("olh", "olh", 128),
    ("olh", "olh", 1024),
    ("subset-selection", "subset-selection", 128),
    ("hadamard", "hadamard-response", 1024),
    ("wide-hashing", "hadamard-response", 1 << 16),
)


@dataclass(frozen=True)
class Row:
    """Work done by ours and by each peer, in millions a second of processor time."""

    work: str
    ours: float
    theirs: dict[str, float]

    @property
    def best(self) -> str:
        """The fastest peer, if any does this."""
        return max(self.theirs, key=lambda library: self.theirs[library], default="")

    @property
    def ratio(self) -> float | None:
        """Our speed in units of the fastest peer's."""
        return self.ours / self.theirs[self.best] if self.theirs else None


def peer_rows(one_call: Callable[..., Any], figure: Path | None = None) -> list[Row]:
    """Reports a second of clients and of servers at epsilon 1, noise and a histogram, also as a
    figure. `one_call` is `ldp.randomizer`. Raises InputError without any peer."""
    if not any(map(installed, LIBRARIES)):
        raise InputError("no peer is installed; pip install 'local-dp[peers]'")
    rows = [
        *(row for case in ASKED for row in _both_ends(one_call, *case)),
        _labels(one_call),
        _one_bit(),
        _noise(),
        _histogram(),
    ]
    if figure is not None:
        save(speed_figure(rows), figure)
    return rows


def _both_ends(one_call: Callable[..., Any], ours: str, theirs: str, k: int) -> list[Row]:
    what = f"{ours}, k = {k}"
    SCREEN.working(f"measuring {what}, beside its peers")
    sizes = {"binary-rr": {}, "wide-hashing": {"length": k.bit_length() - 1}}.get(ours, {"k": k})
    own = one_call(ours, epsilon=1.0, **sizes)
    client, server = end_work(own.randomizer)
    single = _rate(partial(_calls, partial(own.privatize, 1)))
    speeds = {peer.library: _ends(peer, k) for peer in peers(Task(theirs, 1.0, k))}
    rate = _batches(*client)
    clients = {library: ends[0] for library, ends in speeds.items()}
    servers = {library: ends[1] for library, ends in speeds.items() if library != "opendp"}
    return [
        Row(
            f"{what}: clients",
            rate,
            clients,
        ),
        Row(f"{what}: one value a call", single, clients),
        # it has no estimator
        Row(
            f"{what}: server",
            _batches(*server),
            servers,
        ),
    ]


def _labels(one_call: Callable[..., Any]) -> Row:
    """The shares of a million labels from reports of as many clients, the median of three runs;
    beside the peers' oracle whose server is fast enough for so many labels."""
    SCREEN.working("measuring a million labels, beside its peers")

    def rate(estimate: Callable[[Any], object], reports: Any) -> float:
        return ROWS / MILLION / median(_seconds(partial(estimate, reports)) for _ in range(3))

    labels, own = np.arange(ROWS), one_call("wide-hashing", epsilon=1.0, length=20)
    theirs = {
        peer.library: rate(peer.estimate, peer.respond(labels))
        for peer in peers(Task("hadamard-response", 1.0, ROWS))
    }
    return Row("10^6 labels: server", rate(own.estimate, own.privatize(labels, seed=1)), theirs)


def _ends(peer: Peer, k: int) -> tuple[float, float]:
    """The speeds of a peer's client, and of its server, which adds up and estimates."""
    peer.respond(np.zeros(2, dtype=np.int64))  # compiles before the clock starts
    reports = peer.respond(np.arange(1024) % k)
    client = _rate(lambda n: partial(peer.respond, np.arange(n) % k))
    return client, _rate(lambda n: partial(peer.estimate, (reports * (n // 1024 + 1))[:n]))


def _batches(work: Callable[[], object], size: int) -> float:
    """Millions a second of work on `size` things at a time."""
    return size * _rate(partial(_calls, work))


def _calls(call: Callable[[], object], n: int) -> Callable[[], object]:
    def many() -> None:
        for _ in range(n):
            call()

    return many


def _rate(work: Callable[[int], Callable[[], object]]) -> float:
    """Millions a second of work on n things that takes LEAST seconds of processor time: the best of
    three. `work` prepares before the clock starts."""
    n, seconds = 1, 0.0
    while (seconds := _seconds(work(n))) < LEAST:
        n = int(n * min(16.0, 1 + 1.2 * LEAST / max(seconds, 1e-6)))
    return n / min(seconds, *(_seconds(work(n)) for _ in range(2))) / MILLION


def _seconds(task: Callable[[], object]) -> float:
    start = time.process_time()
    task()
    return time.process_time() - start


def _one_bit() -> Row:
    """One bit, by the libraries with a mechanism for it; both take one value a call."""
    SCREEN.working("measuring one bit")
    theirs: dict[str, float] = {}
    if installed("opendp"):
        truth = math.exp(1) / (1 + math.exp(1))
        theirs["opendp"] = _rate(
            partial(
                _calls,
                partial(prelude().m.make_randomized_response_bool(truth), True),
            )
        )
    if installed("diffprivlib"):
        binary = import_module("diffprivlib.mechanisms").Binary(epsilon=1.0, value0="0", value1="1")
        theirs["diffprivlib"] = _rate(partial(_calls, partial(binary.randomise, "0")))
    client, _ = end_work(RANDOMIZERS.build("binary-rr", {"epsilon": 1.0}))
    return Row("binary-rr by their mechanism of one bit: clients", _batches(*client), theirs)


def _noise() -> Row:
    """Discrete Laplace noise of ratio e^-1: OpenDP takes a vector, diffprivlib one value a call."""
    SCREEN.working("measuring discrete Laplace noise")
    draws, theirs = Draws(KeyedNoise(0)), {}
    if installed("opendp"):
        home = prelude()
        measurement = home.m.make_laplace(
            home.vector_domain(home.atom_domain(T="i32")), home.l1_distance(T="i32"), scale=1.0
        )
        theirs["opendp"] = _rate(lambda n: partial(measurement, np.zeros(n, dtype=np.int32)))
    if installed("diffprivlib"):
        geometric = import_module("diffprivlib.mechanisms").Geometric(epsilon=1.0, sensitivity=1)
        theirs["diffprivlib"] = _rate(partial(_calls, partial(geometric.randomise, 0)))
    return Row(
        "discrete Laplace noise",
        _batches(lambda: discrete_laplaces(draws, Fraction(1), ROWS), ROWS),
        theirs,
    )


def _histogram() -> Row:
    """A curator's histogram of a million rows in 2^10 cells at epsilon 1 for a replaced row, rows
    counted and noise added."""
    SCREEN.working("measuring a noisy histogram")
    rows = np.random.default_rng(0).integers(0, 1 << CELLS, ROWS)
    table, draws, theirs = BinaryTable(CELLS, rows.astype(np.uint64)), Draws(KeyedNoise(0)), {}
    mechanism = OneMarginal(CELLS, (1 << CELLS) - 1, 1.0)
    if installed("opendp"):
        home = prelude()
        space = home.vector_domain(home.atom_domain(T="i32")), home.symmetric_distance()
        categories = list(range(1 << CELLS))
        query = home.t.make_count_by_categories(
            *space,
            categories=categories,
            MO=home.L1Distance["i32"],
            TOA="i32",
            null_category=False,
        )
        theirs["opendp"] = _batches(
            partial(query >> home.m.then_laplace(scale=2.0), rows.astype(np.int32)), ROWS
        )
    if installed("diffprivlib"):
        histogram = import_module("diffprivlib.tools").histogram
        release = partial(
            histogram, rows, epsilon=0.5, bins=1 << CELLS, range=(0, (1 << CELLS) - 1)
        )
        theirs["diffprivlib"] = _batches(
            release,
            ROWS,
        )
    return Row(
        f"noisy histogram of 10^6 rows in 2^{CELLS} cells",
        _batches(lambda: mechanism.release(table, draws), ROWS),
        theirs,
    )


def speed_figure(rows: list[Row]) -> Figure:
    """Every library at every work, on one logarithmic axis."""
    curves = [Curve("ours", list(range(len(rows))), [row.ours for row in rows])]
    for library in LIBRARIES:
        places = [place for place, row in enumerate(rows) if library in row.theirs]
        if places:
            curves.append(Curve(library, places, [rows[place].theirs[library] for place in places]))
    shorter = (
        row.work.replace("subset-selection", "subsets")
        .replace("k = ", "")
        .replace("binary-rr by their mechanism of ", "")
        for row in rows
    )
    names = tuple(work.split(" of ")[0] for work in shorter)  # they fit under an axis
    return Figure(
        "peers",
        "The same work in one run",
        "",
        "millions a second of processor time",
        curves,
        log_y=True,
        x_ticks=names,
    )


def describe(rows: list[Row], width: int) -> str:
    """The speeds, the variances and the exact losses, as three tables."""
    best = [
        (f"{row.theirs[row.best]:.2g}", row.best, f"{row.ratio:.2g}")
        if row.ratio is not None
        else ("", "", "")
        for row in rows
    ]
    pairs = zip(rows, best, strict=True)
    speeds = [(row.work, f"{row.ours:.3g}", *theirs) for row, theirs in pairs]
    spreads = [_spread(each) for each in variances()]
    losses = [_loss(claim) for claim in claims()]
    speed_table = table(("work", "ours", "best peer", "which", "ratio"), speeds, width)
    return "\n\n".join(
        [
            speed_table,
            table(
                ("n E||error||^2, k = 16, epsilon 1", "closed form", "ours", "peers"),
                spreads,
                width,
            ),
            table(
                ("library", "mechanism", "epsilon asked", "epsilon exact"),
                losses,
                width,
            ),
        ]
    )


def _spread(variance: Variance) -> tuple[str, ...]:
    theirs = ", ".join(f"{library} {value:.3g}" for library, value in variance.theirs.items())
    return variance.oracle, f"{variance.closed:.3g}", f"{variance.ours:.3g}", theirs


def _loss(claim: Claim) -> tuple[str, ...]:
    return (
        f"{claim.library} {claim.version}",
        claim.mechanism,
        f"{claim.epsilon:g}",
        f"{claim.exact():.4g}",
    )


def as_data(rows: list[Row]) -> dict[str, Any]:
    """The same as plain data."""
    speeds = [{**asdict(row), "best": row.best, "ratio": row.ratio} for row in rows]
    return {
        "speeds": speeds,
        "variances": [asdict(each) for each in variances()],
        "losses": [_loss(claim) for claim in claims()],  # as words: one may be infinite
    }
