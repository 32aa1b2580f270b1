"""The conformance suites of randomizers, queries and protocols: `conform(MyRandomizer(1.0))` in the tests of a package.

Each check raises AssertionError with a sentence that says what is wrong.
"""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np

from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Nonadaptive, Repeated, Watched, run
from local_dp.loss import NANO
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.queries.query import QUERIES, Query
from local_dp.randomizers.evidence import PROVEN
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.records import Records
from local_dp.verification.audit import audit
from local_dp.verification.findings import MAX_VALUES

__all__ = ["conform", "conform_protocol", "conform_query"]
SLACK = 1e-6  # nats by which the exact loss may stay below the declared one, unless the caller states another proven slack
_MODELS = {"LNI": Nonadaptive, "LI": Adaptive, "FI": Repeated}


def conform(randomizer: Randomizer, slack: float = SLACK) -> None:
    """All checks of one randomizer whose loss can be enumerated: those of the audit, and these.

    The exact loss is at most the declared one, and at least that less `slack`. Each report's words are enumerated or walked. Parameters rebuild it.
    """
    assert randomizer.evidence in PROVEN, f"{randomizer.name} is {randomizer.evidence}: its loss cannot be enumerated, so it cannot conform"
    audited = audit(randomizer, drawn=False)
    for each in audited.findings:
        assert each.holds, f"{randomizer.name}: {each.check}: {each.said}" + (f": {each.witness}" if each.witness else "")
    assert any(each.check in ("sampler, enumerated", "sampler, boundaries") for each in audited.findings), f"{randomizer.name}: no word width can be enumerated"
    if audited.loss is not None:
        least = randomizer.nano / NANO - slack
        assert audited.loss >= least, f"{randomizer.name}: exact epsilon {audited.loss} is not within {slack} of {randomizer.epsilon}"
    if isinstance(randomizer, FiniteChannel):
        _check_log_probability(randomizer)
    _check_parameters(randomizer)


def _check_log_probability(randomizer: FiniteChannel) -> None:
    """log_probability is the logarithm of weight over 2^word_bits."""
    values, reports = randomizer.domain.some(MAX_VALUES)[:, None], np.arange(randomizer.alphabet)[None, :]
    for cell in {0, randomizer.cells // 2, randomizer.cells - 1}:
        declared = np.exp(randomizer.log_probability(reports, values, np.array([[cell]])))
        exact = randomizer.weight(reports, values, np.array([[cell]])).astype(np.float64) / randomizer.total
        np.testing.assert_allclose(declared, exact, rtol=1e-12, atol=0, err_msg=f"{randomizer.name}: log_probability and weight disagree")


def _check_parameters(randomizer: Randomizer) -> None:
    """params() rebuilds an equal randomizer; parameters outside their domain raise InputError."""
    _check_rebuilt(randomizer, type(randomizer)(**randomizer.params()))  # type: ignore[arg-type]
    assert randomizer.nano <= randomizer.epsilon * NANO + 1e-3, f"{randomizer.name}: charges {randomizer.nano} nano-nats"
    for epsilon in (0, -1.0, math.nan, math.inf, -math.inf, 1e-10, 5e-324, 25.0, 2**63, 10**400, True, "1", None, [1.0]):
        _refuses(randomizer, epsilon=epsilon)
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
        made = replace(randomizer, **wrong)
    except InputError:
        return
    raise AssertionError(f"{randomizer.name} accepts {wrong} and becomes {made}")


def conform_query(query: Query, records: Records) -> None:
    """All checks of a query on some records: values of its domain, each of its own record alone, the same again; and it travels as its parameters."""
    values, n = query.values(records), len(records)
    assert values.shape == query.domain.shape(n), f"{query.name}: {n} records gave values of shape {values.shape}"
    assert values.dtype.kind in "iu", f"{query.name}: values are {values.dtype}; give whole numbers"
    with np.errstate(all="ignore"):
        written = np.asarray(query(records))  # before it is clipped
    outside = [*np.nonzero(query.domain.clip(written) != written)[0], n][0]
    assert outside == n, f"{query.name}: the value of record {outside} is {written[outside]}, which is not in {query.domain}"
    assert np.array_equal(query.values(records), values), f"{query.name}: asked again, it answers otherwise"
    for row in range(min(n, MAX_VALUES)):
        assert np.array_equal(query.values(records.take(slice(row, row + 1)))[0], values[row]), f"{query.name}: the value of record {row} depends on others"
    assert query.values(records.take(slice(0, 0))).shape == query.domain.shape(0), f"{query.name}: it cannot answer for no records"
    _check_rebuilt(query, type(query)(**query.params()))


def conform_protocol(protocol: LocalProtocol[Any], epsilon: float = 1.0, clients: int = 0) -> None:
    """All checks of a protocol, by a run on its synthetic population of `clients`, or of as many as it asks for: model, budget, plain data, error."""
    name, model, clients = protocol.name, type(protocol).model(), clients or protocol.clients(epsilon)
    algorithm = protocol.algorithm(epsilon, clients)
    assert type(algorithm) is _MODELS[model], f"{name}: its algorithm is {type(algorithm).__name__}, and its annotation says {model}"
    population = protocol.synthetic(clients, 1)
    oracle = PopulationOracle(population, KeyedNoise(1), 1, epsilon)

    def known(queries: tuple[LocalQuery, ...]) -> None:
        for asked in queries:
            assert asked.cohort.stop <= clients, f"{name}: it asks client {asked.cohort.stop - 1}, and its {clients} clients are 0 to {clients - 1}"
            for registry, made in ((QUERIES, asked.query.name), (RANDOMIZERS, asked.randomizer.name)):
                assert made in registry, f"{name}: clients know no {registry.noun} {made!r}; install it with an entry point under {registry.group}"

    result = run(algorithm, Watched(oracle, known))
    assert oracle.ledger.max_spent <= epsilon, f"{name}: a client spends {oracle.ledger.max_spent}, and its budget is {epsilon}"
    assert oracle.rounds, f"{name}: it asks nobody"
    error = protocol.true_error(result, population)
    assert 0 <= error < math.inf, f"{name}: its error is {error}"
    described = protocol.describe(result)
    json.dumps(described)  # plain data, or a TypeError that names what is none
    needed = {"estimate", "interval", "n"} | ({"labels"} if isinstance(described.get("estimate"), list) else set())
    ways = "describe a hypothesis, or an estimate with its interval, n and, of several numbers, labels"
    assert "hypothesis" in described or needed <= described.keys(), f"{name}: its result has {', '.join(described)}; {ways}"
    assert ("hypothesis" in described) == bool(protocol.figureless), f"{name}: a protocol whose result is a hypothesis names it in `figureless`, and no other"
    assert type(protocol)() == type(protocol)(), f"{name}: its parameters have no defaults"
