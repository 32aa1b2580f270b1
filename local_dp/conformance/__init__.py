"""The conformance suites of randomizers, queries and protocols: `conform(MyRandomizer(1.0))` in the
tests of a package.

Each check raises AssertionError with a sentence that says what is wrong.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from local_dp.arrays import Counts
from local_dp.bounds.tails import CountLaw
from local_dp.curator.mechanism import Mechanism, SmallDatabases, probabilities
from local_dp.draws import Draws
from local_dp.errors import InputError, RefusedError
from local_dp.interaction import Adaptive, Nonadaptive, Repeated, Watched, run
from local_dp.loss import ATTO, NANO, Loss
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import LocalAlgorithm, LocalQuery
from local_dp.oracles.local.oracles import AggregateOracle, PopulationOracle
from local_dp.populations.finite import Population
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.queries.query import QUERIES, Query, fault_of
from local_dp.randomizers.evidence import PROVEN
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.records import Records
from local_dp.verification.audit import audit
from local_dp.verification.findings import MAX_VALUES

__all__ = [
    "conform",
    "conform_intervals",
    "conform_mechanism",
    "conform_protocol",
    "conform_query",
]
# nats by which the exact loss may stay below the declared one, unless the caller states another
# proven slack
SLACK = 1e-6
COVERED = (
    0.94  # a 95 % interval must contain the truth in this share of runs: reports are whole numbers
)
ROUNDING = 1e-9  # of an interval without width, such as that of a share that is known to be 1
_MODELS = {"LNI": Nonadaptive, "LI": Adaptive, "FI": Repeated}


def conform(randomizer: Randomizer, slack: float = SLACK) -> None:
    """All checks of one randomizer whose loss can be enumerated: those of the audit, and these.

    The exact loss is at most the declared one, and at least that less `slack`. Each report's words
    are enumerated or walked. Parameters rebuild it.
    """
    assert randomizer.evidence in PROVEN, (
        f"{randomizer.name} is {randomizer.evidence}: its loss cannot be enumerated, so it cannot "
        "conform"
    )
    report = audit(randomizer, draws=False)
    for each in report.findings:
        witness = f": {each.witness}" if each.witness else ""
        assert each.holds, f"{randomizer.name}: {each.check}: {each.said}{witness}"
    checks = {each.check for each in report.findings}
    assert checks & {"sampler, enumerated", "sampler, boundaries"}, (
        f"{randomizer.name}: no word width can be enumerated"
    )
    if report.loss is not None:
        least = randomizer.nano / NANO - slack
        assert report.loss >= least, (
            f"{randomizer.name}: exact epsilon {report.loss} is not within {slack} of "
            f"{randomizer.epsilon}"
        )
    if isinstance(randomizer, FiniteChannel):
        _check_log_probability(randomizer)
    _check_parameters(randomizer)


def _check_log_probability(randomizer: FiniteChannel) -> None:
    """log_probability is the logarithm of weight over 2^word_bits."""
    values = randomizer.domain.some(MAX_VALUES)[:, None]
    reports = np.arange(randomizer.alphabet)[None, :]
    fault = f"{randomizer.name}: log_probability and weight disagree"
    for cell in {0, randomizer.cells // 2, randomizer.cells - 1}:
        entries = reports, values, np.array([[cell]])
        shares = randomizer.weight(*entries).astype(np.float64) / randomizer.total
        probabilities = np.exp(randomizer.log_probability(*entries))
        np.testing.assert_allclose(probabilities, shares, rtol=1e-12, atol=0, err_msg=fault)


def _check_parameters(randomizer: Randomizer) -> None:
    """params() rebuilds an equal randomizer; parameters outside their domain raise InputError."""
    _check_rebuilt(randomizer, type(randomizer)(**randomizer.params()))  # type: ignore[arg-type]
    assert randomizer.nano <= randomizer.epsilon * NANO + 1e-3, (
        f"{randomizer.name}: charges {randomizer.nano} nano-nats"
    )
    for epsilon in (0, -1.0, math.nan, math.inf, -math.inf, 1e-10, 5e-324, 25.0, 2**63, 10**400):
        _refuses(randomizer, epsilon=epsilon)
    for number in (True, "1", None, [1.0]):
        _refuses(randomizer, epsilon=number)
    for bits in (-1, 33, 63, 65, 8.0, True, "8"):
        _refuses(randomizer, word_bits=bits)
    for field in ("k", "steps", "d"):
        if field in randomizer.params():
            for wrong in (0, -1, 1 << 21, 2.0, True, "2", None):
                _refuses(randomizer, **{field: wrong})


def _check_rebuilt(first: Randomizer | Query, again: Randomizer | Query) -> None:
    assert again == first, f"{first.name}: params() does not rebuild it"
    assert hash(again) == hash(first), f"{first.name}: equal objects hash apart"


def _refuses(randomizer: Randomizer, **wrong: Any) -> None:
    try:
        other = replace(randomizer, **wrong)
    except InputError:
        return
    raise AssertionError(f"{randomizer.name} accepts {wrong} and becomes {other}")


def conform_query(query: Query, records: Records) -> None:
    """All checks of a query on some records: values of its domain, each of its own record alone,
    the same again; and it travels as its parameters."""
    fault = fault_of(query, records)
    assert not fault, f"{query.name}: {fault}"
    _check_rebuilt(query, type(query)(**query.params()))


def conform_protocol(
    protocol: LocalProtocol[Any],
    epsilon: float = 1.0,
    clients: int = 0,
    runs: int = 100,
    failure: float = 1e-6,
) -> None:
    """All checks of a protocol, by a run on its synthetic population of `clients`, or of as many as
    it asks for: model, budget, plain data, error.

    `runs` more measure the intervals of its estimate, unless `uncovered` gives a reason. A right
    protocol fails these with probability `failure` at most.
    """
    name, clients = protocol.name, clients or protocol.clients(epsilon)
    algorithm, model = protocol.algorithm(epsilon, clients), type(protocol).model()
    assert type(algorithm) is _MODELS[model], (
        f"{name}: its algorithm is {type(algorithm).__name__}, and its annotation says {model}"
    )
    population = protocol.synthetic(clients, 1)
    oracle = PopulationOracle(population, KeyedNoise(1), 1, epsilon)
    result = run(algorithm, Watched(oracle, partial(_check_queries, name, clients)))
    assert oracle.ledger.max_spent <= epsilon, (
        f"{name}: a client spends {oracle.ledger.max_spent}, and its budget is {epsilon}"
    )
    assert oracle.rounds, f"{name}: it asks nobody"
    error = protocol.true_error(result, population)
    assert 0 <= error < math.inf, f"{name}: its error is {error}"
    description = protocol.describe(result)
    _check_description(protocol, description)
    assert type(protocol)() == type(protocol)(), f"{name}: its parameters have no defaults"
    if "estimate" in description and not protocol.uncovered and runs:
        conform_intervals(protocol, epsilon, clients, runs, failure)


def _check_queries(name: str, clients: int, queries: tuple[LocalQuery, ...]) -> None:
    """They ask clients that there are, by names that clients know."""
    for asked_query in queries:
        last = asked_query.cohort.stop - 1
        assert last < clients, (
            f"{name}: it asks client {last}, and its {clients} clients are 0 to {clients - 1}"
        )
        names = (QUERIES, asked_query.query.name), (RANDOMIZERS, asked_query.randomizer.name)
        for registry, entry in names:
            assert entry in registry, (
                f"{name}: clients know no {registry.noun} {entry!r}; install it with an entry "
                f"point under {registry.group}"
            )


def _check_description(protocol: LocalProtocol[Any], description: dict[str, Any]) -> None:
    name, is_hypothesis = protocol.name, "hypothesis" in description
    json.dumps(description)  # plain data, or a TypeError that names the other value
    fields = {"estimate", "interval", "n"}
    if isinstance(description.get("estimate"), list):
        fields.add("labels")
    assert is_hypothesis or fields <= description.keys(), (
        f"{name}: its result has {', '.join(description)}; describe a hypothesis, or an estimate "
        "with its interval, n and, of several numbers, labels"
    )
    assert is_hypothesis == bool(protocol.figureless), (
        f"{name}: a protocol whose result is a hypothesis names it in `figureless`, and no other"
    )


def conform_mechanism(
    mechanism: Mechanism[Any, Any, Loss],
    databases: SmallDatabases[Any, Any],
    draws: int = 2000,
    failure: float = 1e-6,
) -> None:
    """All checks of a curator's mechanism on small databases: by enumeration, the law on each pair
    of neighbours loses at most its `loss`, pure or approximate; and `release` draws from the law.

    A right mechanism fails the latter with probability `failure` at most.
    """
    name, loss = type(mechanism).__name__, mechanism.loss
    worst = databases.worst_delta(mechanism)
    assert worst <= Fraction(loss.atto, ATTO), (
        f"{name}: on two neighbours it needs a delta of {float(worst):.3g} beside its epsilon, and "
        f"its loss is {loss}"
    )
    database = databases.build(next(iter(databases.pairs(mechanism.neighbours)))[0])
    law, noise = probabilities(mechanism.law(database)), Draws(KeyedNoise(1))
    releases = Counter(mechanism.release(database, noise) for _ in range(draws))
    assert releases.keys() <= law.keys(), f"{name}: it releases what its law does not list"
    for outcome, share in law.items():
        count = releases[outcome]
        if 0 < share < 1:
            counts = CountLaw.binomial(draws, float(share))
            sides = counts.sizes <= count, counts.sizes >= count
            tail = min(counts.shares[side].sum() for side in sides)
            assert tail >= failure / (2 * len(law)), (
                f"{name}: of {draws} releases {count} are {outcome!r:.40}, where its law has "
                f"{float(share):.3g}"
            )


def conform_intervals(
    protocol: LocalProtocol[Any],
    epsilon: float = 1.0,
    clients: int = 0,
    runs: int = 100,
    failure: float = 1e-6,
    people: Callable[[int], Population] | None = None,
    seed: int = 1,
) -> Counts:
    """Each stated 95 % interval contains its truth in at least 94 % of `runs` runs, up to chance;
    gives in how many runs each did.

    `people` makes a population from a seed; by default the synthetic one. An interval that covers
    94 % fails with probability `failure` at most, all coordinates together. Where the number of
    intervals differs between runs, a list that the run chose, all must hold at once.
    """
    clients = clients or protocol.clients(epsilon)
    population_of, inside = people or partial(protocol.synthetic, clients), []
    algorithm = protocol.algorithm(epsilon, clients)
    oracles = _oracles(algorithm, population_of, epsilon, np.random.default_rng(seed))
    for oracle in islice(oracles, runs):
        result = run(algorithm, oracle)
        interval = np.array(protocol.describe(result)["interval"], dtype=np.float64)
        low, high = interval.reshape(-1, 2).T
        truth = np.array(protocol.truth_of(result, oracle.population), dtype=np.float64, ndmin=1)
        assert truth.shape == low.shape, (
            f"{protocol.name}: it states {low.size} intervals, and `truth_of` gives {truth.size} "
            "truths"
        )
        # an end that is no number is open
        inside.append(~((truth < low - ROUNDING) | (high + ROUNDING < truth)))
    if len({len(each) for each in inside}) > 1:
        inside = [np.all(each, keepdims=True) for each in inside]
    counts: Counts = np.sum(inside, axis=0)
    law = CountLaw.binomial(runs, COVERED)
    chance = failure / max(1, counts.size)
    least = int(law.sizes[np.searchsorted(np.cumsum(law.shares), chance, side="right")])
    worst = int(counts.min(initial=runs))
    assert worst >= least, (
        f"{protocol.name}: an interval of 95 % contains the truth in {worst} of {runs} runs; by "
        f"chance it would in {least} or more"
    )
    return counts


def _oracles(
    algorithm: LocalAlgorithm[Any],
    people: Callable[[int], Population],
    epsilon: float,
    generator: np.random.Generator,
) -> Iterator[Any]:
    """One for each run: it draws tallies from their law; where they have none, it simulates every
    client, with fresh records."""
    fixed = people(0)
    try:
        run(algorithm, AggregateOracle(fixed, generator, epsilon))
    except RefusedError:
        while True:
            seed, noise, coins = generator.integers(1 << 53, size=3).tolist()
            yield PopulationOracle(people(seed), KeyedNoise(noise), coins, epsilon)
    while True:
        yield AggregateOracle(fixed, generator, epsilon)
