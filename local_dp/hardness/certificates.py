"""Certificates that a learner cannot have won, checked by sums over the domain without the
shortcuts of their authors (limits 5.1, 12.4).

Four kinds, all JSON. "survivors": queries, exact rational answers and concepts of a named class for
which all answers are legal. "hidden-set": for masked parity, the queries of a non-adaptive learner
and the set of r for which no query distinguishes a = 0 and a = 1. "margin": for a class of blocks,
a law in whole weights under which no embedding has a large margin. "posterior": a table that bounds
what replies of a limited budget tell of two hypotheses.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from local_dp.arrays import Bools, Counts, Floats
from local_dp.bounds.interaction import margin_clients
from local_dp.errors import InputError, RefusedError
from local_dp.hardness.supersolution import Supersolution
from local_dp.oracles.statistical.oracles import StatisticalQuery
from local_dp.populations.concepts import BlockClass, ConceptClass, Signs, build_class
from local_dp.queries.query import QUERIES
from local_dp.records import Records

FORMAT = "local-dp certificate 1"
MAX_D = 16
MAX_WORK = 1 << 33  # queries x domain: some minutes
MAX_LABELS = 1 << 28  # survivors x points
MAX_SURVIVORS = 1 << 12
MAX_WEIGHT = 1 << 60
SUCCESSES = (0.6, 0.75, 0.9, 0.95)
_FRACTION = re.compile(r"-?[0-9]{1,80}(/[0-9]{1,80})?")


@dataclass(frozen=True)
class Verdict:
    """Whether a certificate is valid; what it proves, or why it is not; and the computed
    figures."""

    valid: bool
    statement: str
    figures: dict[str, Any] = field(default_factory=dict)


def load_certificate(text: str) -> dict[str, Any]:
    """A certificate from JSON text. Raises InputError if it is not one of ours."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"the certificate is not JSON: {error}; give a file that local-dp wrote"
        ) from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(
            f"not a certificate: it has no format {FORMAT!r}; give a file that local-dp wrote"
        )
    return data


def verify_certificate(data: Mapping[str, Any]) -> Verdict:
    """Recomputes everything a certificate states, exactly. Raises InputError if it is malformed; a
    well-formed wrong one gets an invalid verdict.

    Cost: queries x domain x survivors for "survivors"; queries x d 2^d plus 2^(3d/2 + 1) a query
    for "hidden-set"; t 2^t for "margin".
    """
    try:
        if data["kind"] in VERIFIERS:
            return VERIFIERS[data["kind"]](data)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(
            f"the certificate is malformed: {type(error).__name__} {error}; give a file that "
            "local-dp wrote"
        ) from None
    except RefusedError as error:
        raise InputError(f"the certificate has a bad query: {error}") from None
    raise InputError(f"no certificate of kind {data['kind']!r}; there are {', '.join(VERIFIERS)}")


def _queries(data: Mapping[str, Any]) -> list[StatisticalQuery]:
    queries = []
    for entry in data["queries"]:
        params = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in entry["params"].items()
        }
        queries.append(
            StatisticalQuery(QUERIES.build(entry["name"], params), float(entry["tolerance"]))
        )
    if not queries:
        raise InputError("the certificate has no queries; there is nothing to check")
    return queries


def _fraction(value: Any) -> Fraction:
    """A number as it is written, so that 0.1 is 1/10, or the text of a fraction of whole numbers;
    no exponents in a text, which could stand for numbers of any size."""
    if isinstance(value, str) and not _FRACTION.fullmatch(value):
        raise ValueError(f"{value[:40]!r} is no fraction")
    return Fraction(str(value))


def _tolerances(queries: Sequence[StatisticalQuery]) -> str:
    least, *_, most = sorted(query.tolerance for query in (*queries, queries[0]))
    return f"tolerance {least}" if least == most else f"tolerances from {least} to {most}"


def _verify_survivors(data: Mapping[str, Any]) -> Verdict:
    queries = _queries(data)
    answers = [_fraction(answer) for answer in data["answers"]]
    concepts = build_class(data["class"]["name"], data["class"]["params"])
    alpha = _fraction(data["alpha"])
    survivors = list(data["survivors"])
    if not 0 < alpha < 1:
        raise InputError(
            f"the certificate is about error below {alpha}; give an error strictly between 0 and 1"
        )
    if len(answers) != len(queries):
        return Verdict(False, f"{len(queries)} queries have {len(answers)} answers")
    whole = all(type(index) is int and 0 <= index < concepts.size for index in survivors)
    if not whole or not 2 <= len(set(survivors)) == len(survivors):
        return Verdict(
            False, f"the survivors are not two or more different concepts of {concepts.name}"
        )
    labels = len(survivors) * len(concepts.points)
    work = (len(queries) + len(survivors)) * labels
    if work > MAX_WORK or labels > MAX_LABELS or len(survivors) > MAX_SURVIVORS:
        raise InputError(
            f"{len(queries)} queries, {len(survivors)} survivors and {len(concepts.points)} "
            "points are too many to check"
        )
    rows = [concepts.row(index) for index in survivors]
    for place, (query, answer) in enumerate(zip(queries, answers, strict=True)):
        for index, row in zip(survivors, rows, strict=True):
            # the definition, in whole numbers
            values = query.numerators(Records({**concepts.points.columns, "y": row}))
            expectation = Fraction(
                int((concepts.weights * values).sum()), concepts.total * query.span
            )
            if abs(expectation - answer) > _fraction(query.tolerance):
                return Verdict(
                    False,
                    f"answer {place} is {float(answer):.9g}, illegal for concept {index}: its "
                    f"expectation is {float(expectation):.9g}",
                )
    # a good hypothesis for one survivor is bad for distant ones
    nearest = int(_near(concepts, np.stack(rows), 2 * alpha).sum(axis=1).max())
    most = Fraction(nearest, len(rows))
    if most == 1:
        return Verdict(
            False,
            f"one hypothesis may have error below alpha = {float(alpha):g} for all survivors: "
            "one of them is within 2 alpha of all others",
        )
    figures = {"queries": len(queries), "survivors": len(rows), "success_at_most": str(most)}
    return Verdict(
        True,
        f"{len(queries)} answers with {_tolerances(queries)} are legal for {len(rows)} concepts of "
        f"{concepts.name}, of which no hypothesis has error below {data['alpha']} for more than "
        f"{nearest}: with the target uniform among them, success is at most {most}",
        figures,
    )


def _near(concepts: ConceptClass, rows: Signs, limit: Fraction) -> Bools:
    """Which of the labellings differ with probability below `limit`, exact, shape (rows, rows)."""
    signs = rows.astype(np.float64)  # whole numbers below 2^53
    twice = concepts.total - np.rint((signs * concepts.weights) @ signs.T).astype(np.int64)
    return twice < math.ceil(2 * limit * concepts.total)


def _verify_hidden_set(data: Mapping[str, Any]) -> Verdict:
    d, queries = data["d"], _queries(data)
    if type(d) is not int or not 1 <= d <= MAX_D or (len(queries) * d) << (d + 2) > MAX_WORK:
        raise InputError(
            f"d is {d!r} with {len(queries)} queries; at most 2^33 evaluations and d from 1 to "
            f"{MAX_D} are checked"
        )
    claim = np.unpackbits(
        np.frombuffer(bytes.fromhex(data["hidden"]), dtype=np.uint8), bitorder="little"
    )
    if len(claim) != max(8, 1 << d) or claim[1 << d :].any():
        return Verdict(False, f"the hidden set is not a set of strings of {d} bits")
    hidden_set = np.ones(1 << d, dtype=np.bool_)
    for query in queries:
        hidden_set &= _hides(query, d)
    wrong = np.flatnonzero(hidden_set != claim[: 1 << d].astype(np.bool_))
    if len(wrong):
        truth = "hidden" if hidden_set[wrong[0]] else "revealed"
        return Verdict(
            False, f"{len(wrong)} of 2^{d} strings are misplaced: r = {wrong[0]} is {truth}"
        )
    rho = Fraction(int(hidden_set.sum()), 1 << d)
    if _fraction(data["rho"]) != rho or _fraction(data["success_at_most"]) != 1 - rho / 2:
        return Verdict(
            False,
            f"the hidden share is {rho} and success is at most {1 - rho / 2}; the certificate "
            "says otherwise",
        )
    figures = {"queries": len(queries), "rho": str(rho), "success_at_most": str(1 - rho / 2)}
    return Verdict(True, _hidden_statement(queries, d, rho), figures)


def _hidden_statement(queries: Sequence[StatisticalQuery], d: int, rho: Fraction) -> str:
    what = (
        f"these {len(queries)} queries of masked parity (d = {d}) with {_tolerances(queries)}, "
        "asked at once"
    )
    if rho == 0:
        return f"for every r, one of {what}, distinguishes a = 0 and a = 1 with any legal answers"
    return (
        f"the oracle that answers midpoints is legal for both masks of {rho} of all r. So a "
        f"learner from {what}, has error below 1/4 with probability at most {1 - rho / 2}"
    )


def _hides(query: StatisticalQuery, d: int) -> Bools:
    """True where |E_{r,0}[g] - E_{r,1}[g]| <= 2 tau, for each r: half the mean of (g(x, i, 0, +1) -
    g(x, i, 0, -1)) chi_r(x), in two sums."""
    x = np.arange(1 << d, dtype=np.uint64)
    gaps: Counts = np.zeros(1 << d, dtype=np.int64)
    for i in range(d):
        zero = np.zeros(len(x), dtype=np.int8)
        plus, minus = (
            query.numerators(Records({"x": x, "i": zero + i, "b": zero, "y": zero + y}))
            for y in (1, -1)
        )
        gaps += plus - minus
    low = d // 2
    # entries and sums are whole and below 2^53: exact
    square = gaps.reshape(1 << (d - low), 1 << low).astype(np.float64)
    transform = _characters(d - low) @ square @ _characters(low)
    sums = np.rint(transform).astype(np.int64).ravel()
    return np.abs(sums) <= int(2 * _fraction(query.tolerance) * 2 * query.span * d * 2**d)


def _characters(bits: int) -> Floats:
    """(-1)^<r, x> for all r and x."""
    indices = range(1 << bits)
    return np.array([[-1.0 if (r & x).bit_count() % 2 else 1.0 for x in indices] for r in indices])


def _verify_margin(data: Mapping[str, Any]) -> Verdict:
    """1 / MC <= max_S b^(-|S|/2) |E_mu f chi_S| for every mu: the weights are transformed in whole
    numbers, and squares are compared."""
    concepts = BlockClass(data["function"], data["t"], data["b"])
    weights = list(data["weights"])
    epsilon = float(data["epsilon"])
    success = float(data["success"])
    if (
        len(weights) != 1 << concepts.t
        or not all(type(weight) is int and 0 <= weight <= MAX_WEIGHT for weight in weights)
        or not any(weights)
    ):
        return Verdict(
            False,
            f"the law is not 2^{concepts.t} whole weights from 0 to 2^60, of which one is above 0",
        )
    total = sum(weights)
    sums = _transform(
        [weight * sign for weight, sign in zip(weights, concepts.signs().tolist(), strict=True)]
    )
    squares = (
        value**2 * concepts.b ** (concepts.t - S.bit_count()) for S, value in enumerate(sums)
    )
    most = max(squares)
    margin = Fraction(most, total**2 * concepts.b**concepts.t)
    clients = margin_clients(1 / margin, epsilon, success)
    figures = {
        "variables": concepts.variables,
        "total": total,
        "squared_margin_at_most": margin,
        "clients_at_least": clients,
    }
    for name, value in figures.items():
        if _fraction(data[name]) != value:
            return Verdict(
                False,
                f"{name.replace('_', ' ')} is {value}, and the certificate says "
                f"{str(data[name])[:80]}",
            )
    complexity = _places(math.isqrt(int(10**8 / margin)))
    statement = (
        f"{concepts.function} and its negation, of one variable of each of {concepts.t} blocks of "
        f"{concepts.b}, xor a bit, have margin complexity {complexity} or more, so "
        f"no one-round protocol of epsilon {epsilon} with fewer than {clients:,} clients is "
        f"right more often than wrong with probability {success} for each of these functions of "
        f"{concepts.variables} variables and every law of them"
    )
    return Verdict(True, statement, figures | {"squared_margin_at_most": str(margin)})


def _places(number: int) -> str:
    """So many ten-thousandths, in digits: rounding down is the caller's."""
    return f"{number // 10**4}.{number % 10**4:04}"


def _transform(values: list[int]) -> list[int]:
    """The sums of (-1)^|S & u| values[u] over u, for every S: in Python's own whole numbers."""
    if len(values) == 1:
        return values
    half = len(values) // 2
    low = _transform(values[:half])
    high = _transform(values[half:])
    return [a + b for a, b in zip(low, high, strict=True)] + [
        a - b for a, b in zip(low, high, strict=True)
    ]


def posterior_certificate(table: Supersolution) -> dict[str, Any]:
    """What the table proves, as JSON data."""
    return {"format": FORMAT, "kind": "posterior", **table.data()}


def _verify_posterior(data: Mapping[str, Any]) -> Verdict:
    try:
        table = Supersolution.check(data)
    except InputError as error:
        return Verdict(False, str(error))
    budgets, successes = zip(*table.curve(), strict=True)
    figures = {f"{p}": float(np.interp(p, successes, budgets)) for p in SUCCESSES}
    needs = ", ".join(f"{p} takes {_places(int(10**4 * B))}" for p, B in figures.items())
    reach, cost = table.cells.reach, table.cost
    return Verdict(
        True,
        "two equally likely hypotheses are told apart by replies whose likelihoods are 1 + u and "
        f"1 - u, |u| up to {reach}, of mean squares up to {cost} each. To name the right one with "
        f"probability {needs} of these squares in all: no fewer are enough",
        figures,
    )


VERIFIERS: dict[str, Callable[[Mapping[str, Any]], Verdict]] = {
    "survivors": _verify_survivors,
    "hidden-set": _verify_hidden_set,
    "margin": _verify_margin,
    "posterior": _verify_posterior,
}
