"""Frequency oracles of other libraries, where they are installed: their reports, their estimates,
and how far off they are beside ours."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.noise import Draw, KeyedNoise, public_coins, stream_key
from local_dp.randomizers.registry import RANDOMIZERS

LIBRARIES = {
    "pure-ldp": "pure_ldp",
    "multi-freq-ldpy": "multi_freq_ldpy",
    "opendp": "opendp",
    "diffprivlib": "diffprivlib",
}


@dataclass(frozen=True)
class Task:
    """A frequency oracle asked for: its name here, epsilon in nats, k symbols."""

    oracle: str
    epsilon: float
    k: int


@dataclass(frozen=True)
class Peer:
    """One library's oracle for a task.

    `respond` gives a report for each value, in the library's own form. `estimate` is the library's
    estimate of the k shares from such reports, shape (k,). `singles` are each report's unbiased
    estimates of the k shares, by the odds of that library's channel, shape (n, k). Their mean is
    `estimate`, unless the library is `normalises`: then it clips at 0 and divides by the sum.
    """

    library: str
    respond: Callable[[Ints], list[Any]]
    estimate: Callable[[list[Any]], Floats]
    singles: Callable[[list[Any]], Floats]
    normalises: bool = False

    def errors(self, reports: list[Any], law: Floats) -> Floats:
        """The standard error of `estimate` at each symbol, from these reports; where it is
        normalised, to first order about the law."""
        singles = self.singles(reports)
        if self.normalises:
            singles = singles - law * singles.sum(axis=1, keepdims=True)
        errors: Floats = singles.std(axis=0) / np.sqrt(len(reports))
        return errors


def installed(library: str) -> bool:
    """True if a peer can be imported."""
    return find_spec(LIBRARIES[library]) is not None


def peers(task: Task) -> list[Peer]:
    """The oracles of the installed libraries that have one for it."""
    return [
        makers[task.oracle](task)
        for library, makers in ORACLES.items()
        if task.oracle in makers and installed(library)
    ]


def _by_odds(support: Floats, p: float, q: float) -> Floats:
    """Each report's unbiased estimates from which symbols it supports, shape (n, k): the true
    one with probability p, any other with q."""
    singles: Floats = (support - q) / (p - q)
    return singles


def _direct_odds(task: Task) -> tuple[float, float]:
    """k-ary randomized response: Pr[true symbol], Pr[another symbol]."""
    p = math.exp(task.epsilon) / (math.exp(task.epsilon) + task.k - 1)
    return p, (1 - p) / (task.k - 1)


def _hashed(reports: list[Any], k: int, g: int) -> Floats:
    """Which symbols have the reported hash under the reported seed, shape (n, k)."""
    digest = import_module("xxhash").xxh32_intdigest
    return np.array(
        [
            [digest(str(symbol), int(seed)) % g == answer for symbol in range(k)]
            for answer, seed in reports
        ],
        dtype=np.float64,
    )


def _each(privatise: Callable[[Any], Any], values: Ints) -> list[Any]:
    return [privatise(value) for value in values.tolist()]


def _pure_ldp(
    task: Task, kind: str, singles: Callable[[Any, list[Any]], Floats], **settings: bool
) -> Peer:
    """The client and server of pure-ldp called `kind`; `singles` reads the reports by the client's
    odds."""
    home = import_module("pure_ldp.frequency_oracles")
    client, server = (
        getattr(home, kind + end)(
            task.epsilon, task.k, index_mapper=lambda symbol: symbol, **settings
        )
        for end in ("Client", "Server")
    )
    return Peer(
        "pure-ldp",
        partial(_each, client.privatise),
        partial(_estimate, server),
        partial(singles, client),
    )


def _estimate(server: Any, reports: list[Any]) -> Floats:
    server.reset()
    server.aggregate_all(reports)
    shares: Floats = np.asarray(server.estimate_all(range(server.d), suppress_warnings=True)) / len(
        reports
    )
    return shares


def _pure_unary(task: Task, best: bool) -> Peer:
    return _pure_ldp(
        task,
        "UE",
        lambda client, reports: _by_odds(np.array(reports, dtype=np.float64), client.p, client.q),
        use_oue=best,
    )


def _pure_histogram(task: Task, threshold: bool) -> Peer:
    """Its server adds up noisy histograms, or what exceeds a threshold, where it writes that into
    the reports."""
    home, settings = (
        import_module("pure_ldp.frequency_oracles"),
        {"index_mapper": lambda symbol: symbol},
    )
    client = home.HEClient(task.epsilon, task.k, **settings)
    server = home.HEServer(task.epsilon, task.k, use_the=threshold, **settings)

    def singles(reports: list[Any]) -> Floats:
        noisy = np.array(reports)
        return _by_odds(noisy > server.theta, server.p, server.q) if threshold else noisy

    return Peer("pure-ldp", partial(_each, client.privatise), partial(_estimate, server), singles)


def _pure_hashing(task: Task, best: bool) -> Peer:
    return _pure_ldp(
        task,
        "LH",
        lambda client, reports: _by_odds(
            _hashed(reports, task.k, client.g), client.p, 1 / client.g
        ),
        use_olh=best,
    )


def _pure_hadamard(task: Task) -> Peer:
    """Its estimate is linear in the histogram of reports: that of each report alone, by the
    server's own decoder."""
    home, settings = (
        import_module("pure_ldp.frequency_oracles"),
        {"index_mapper": lambda symbol: symbol},
    )
    server = home.HadamardResponseServer(task.epsilon, task.k, **settings)
    client = home.HadamardResponseClient(task.epsilon, task.k, server.get_hash_funcs(), **settings)

    def singles(reports: list[Any]) -> Floats:
        decode = partial(server.hr.decode_string, iffast=int(task.k > 128), normalization=-1)
        table = {report: np.asarray(decode([report])) for report in set(reports)}
        return np.array([table[report] for report in reports])

    return Peer("pure-ldp", partial(_each, client.privatise), partial(_estimate, server), singles)


def _multi_freq(task: Task, kind: str, singles: Callable[[list[Any]], Floats], *best: bool) -> Peer:
    """The client and aggregator of multi-freq-ldpy called `kind`; its estimates are clipped and
    normalised."""
    home, epsilon, k = (
        import_module(f"multi_freq_ldpy.pure_frequency_oracles.{kind}"),
        task.epsilon,
        task.k,
    )
    client, aggregate = getattr(home, f"{kind}_Client"), getattr(home, f"{kind}_Aggregator_MI")
    sizes = () if kind == "UE" else (k,)  # the length of a vector says how many symbols there are
    respond = partial(_each, lambda value: client(value, k, epsilon, *best))
    return Peer(
        "multi-freq-ldpy",
        respond,
        lambda reports: aggregate(reports, *sizes, epsilon, *best),
        singles,
        normalises=True,
    )


def _multi_unary(task: Task, best: bool) -> Peer:
    root = math.exp(task.epsilon / 2)
    p, q = root / (root + 1), 1 / (root + 1)
    if best:
        p, q = 0.5, 1 / (math.exp(task.epsilon) + 1)
    return _multi_freq(task, "UE", lambda reports: _by_odds(np.array(reports), p, q), best)


def _multi_hashing(task: Task) -> Peer:
    g = round(math.exp(task.epsilon)) + 1
    truth = math.exp(task.epsilon) / (math.exp(task.epsilon) + g - 1)
    return _multi_freq(
        task,
        "LH",
        lambda reports: _by_odds(
            _hashed(reports, task.k, g),
            truth,
            1 / g,
        ),
    )


def _multi_subsets(task: Task) -> Peer:
    growth, k = math.exp(task.epsilon), task.k
    w = max(1, round(k / (growth + 1)))
    p = w * growth / (w * growth + k - w)

    def singles(reports: list[Any]) -> Floats:
        support = np.zeros((len(reports), k))
        np.put_along_axis(support, np.array(reports), 1.0, axis=1)
        return _by_odds(support, p, (w - p) / (k - 1))

    return _multi_freq(task, "SS", singles)


def prelude() -> Any:
    """OpenDP, with what it asks to be allowed expressly."""
    home = import_module("opendp.prelude")
    home.enable_features("contrib")
    return home


def _opendp_direct(task: Task) -> Peer:
    """OpenDP has no estimator for a category, so ours is its odds'."""
    measurement = prelude().m.make_randomized_response(list(range(task.k)), _direct_odds(task)[0])

    def singles(reports: list[Any]) -> Floats:
        return _by_odds(np.eye(task.k)[reports], *_direct_odds(task))

    return Peer(
        "opendp",
        partial(_each, measurement),
        lambda reports: singles(reports).mean(axis=0),
        singles,
    )


def _opendp_bits(task: Task) -> Peer:
    home, flip = prelude(), 1 / (1 + math.exp(task.epsilon / 2))
    measurement = home.m.make_randomized_response_bitvec(
        home.bitvector_domain(max_weight=1), home.discrete_distance(), f=2 * flip
    )
    bits = np.packbits(np.eye(task.k, dtype=np.uint8), axis=1, bitorder="little")

    def estimate(reports: list[Any]) -> Floats:
        return np.asarray(home.m.debias_randomized_response_bitvec(reports, 2 * flip))[
            : task.k
        ] / len(reports)

    def singles(reports: list[Any]) -> Floats:
        octets = np.array([np.frombuffer(report, dtype=np.uint8) for report in reports])
        return _by_odds(
            np.unpackbits(octets, axis=1, count=task.k, bitorder="little").astype(np.float64),
            1 - flip,
            flip,
        )

    return Peer(
        "opendp",
        partial(_each, lambda value: measurement(bits[value].tobytes())),
        estimate,
        singles,
    )


ORACLES: dict[str, dict[str, Callable[[Task], Peer]]] = {
    "pure-ldp": {
        "grr": lambda task: _pure_ldp(
            task,
            "DE",
            lambda client, reports: _by_odds(np.eye(task.k)[reports], client.p, client.q),
        ),
        "sue": partial(_pure_unary, best=False),
        "oue": partial(_pure_unary, best=True),
        "olh": partial(_pure_hashing, best=True),
        "blh": partial(_pure_hashing, best=False),
        "the": partial(_pure_histogram, threshold=True),
        "she": partial(_pure_histogram, threshold=False),
        "hadamard-response": _pure_hadamard,
    },
    "multi-freq-ldpy": {
        "grr": lambda task: _multi_freq(
            task, "GRR", lambda reports: _by_odds(np.eye(task.k)[reports], *_direct_odds(task))
        ),
        "sue": partial(_multi_unary, best=False),
        "oue": partial(_multi_unary, best=True),
        "olh": _multi_hashing,
        "subset-selection": _multi_subsets,
    },
    "opendp": {"grr": _opendp_direct, "sue": _opendp_bits},
}
# on two symbols every direct oracle is the same
for _makers in ORACLES.values():
    _makers["binary-rr"] = _makers["grr"]


EPSILON, K = 1.0, 16
SURVEYS, CLIENTS = 2000, 1000  # of ours: the squared error of so many surveys of so many clients
REPORTS = 40_000  # of a peer's clients: the variance of what each report says
PAIRS = {
    "grr": "grr",
    "sue": "sue",
    "oue": "oue",
    "olh": "olh",
    "subset-selection": "subset-selection",
    "hadamard": "hadamard-response",
}


@dataclass(frozen=True)
class Variance:
    """n E||f^ - f||^2 at the uniform law of K symbols: the closed form of ours, what was measured
    of ours, and of each library's channel."""

    oracle: str
    closed: float
    ours: float
    theirs: dict[str, float]


def variances() -> list[Variance]:
    """Of each oracle, at epsilon 1 and 16 symbols; the chi-square of 15 degrees leaves ours an
    error of .8 % (a standard deviation)."""
    values = np.random.default_rng(3).integers(0, K, REPORTS)
    figures = []
    for ours, theirs in PAIRS.items():
        reports = {
            peer.library: peer.singles(peer.respond(values))
            for peer in peers(Task(theirs, EPSILON, K))
        }
        spreads = {
            library: float(singles.var(axis=0).sum()) for library, singles in reports.items()
        }
        figures.append(
            Variance(
                ours,
                closed_form(ours),
                _of_ours(RANDOMIZERS.build(ours, {"epsilon": EPSILON, "k": K})),
                spreads,
            )
        )
    return figures


def closed_form(oracle: str) -> float:
    """n times the sum of the variances of all shares at the uniform law (limits 2)."""
    ours = RANDOMIZERS.build(oracle, {"epsilon": EPSILON, "k": K})
    return float(ours.variance(ours.domain.values(), np.full(K, 1 / K)).sum())


def _of_ours(randomizer: Any) -> float:
    """The squared error of whole surveys, averaged, times the clients of one."""
    total, n = 0.0, SURVEYS * CLIENTS
    values = np.random.default_rng(4).integers(0, K, n)
    key = stream_key("coins", 9, 1)
    coins = (
        randomizer.cells_of(public_coins(key, 0, n))
        if randomizer.uses_coins
        else np.zeros(n, dtype=np.uint8)
    )
    for start in range(0, n, CLIENTS):
        stop = start + CLIENTS
        draws = randomizer.draw(KeyedNoise(9), Draw(1), start, stop)
        reports = randomizer.respond(
            values[start:stop],
            draws,
            coins[start:stop],
        )
        tally = randomizer.tally(reports, coins[start:stop])
        total += math.fsum((randomizer.estimate(tally).value - 1 / K) ** 2)
    return CLIENTS * total / SURVEYS
