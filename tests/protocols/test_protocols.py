"""The protocols: results beside the truth, parameters refused, laws that agree with the clients
drawn, one answer however the work is cut."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from local_dp.domains import Vectors
from local_dp.errors import InputError, LocalDPError
from local_dp.interaction import Adaptive, Nonadaptive, Oracle, Repeated, run
from local_dp.masked.population import Concept, MaskedParityPopulation
from local_dp.masked.protocols import MaskedParityLearner
from local_dp.masked.queries import MaskedIndex
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.local.oracles import AggregateOracle, PopulationOracle
from local_dp.populations.concepts import BlockClass
from local_dp.populations.finite import Population, Rows
from local_dp.protocols.learning.learn import Learn
from local_dp.protocols.learning.learned import Learned
from local_dp.protocols.local_protocol import PROTOCOLS, LocalProtocol, find_protocol
from local_dp.protocols.parity.elimination import ParityElimination
from local_dp.protocols.surveys.frequency import Frequency
from local_dp.protocols.surveys.policies import Launch
from local_dp.protocols.surveys.survey import StatisticalQueries, Survey
from local_dp.protocols.vectors.mean_found import MeanFound
from local_dp.protocols.vectors.mean_vector import Mean
from local_dp.queries.query import QUERIES, Query
from local_dp.randomizers.signs.characters import Characters
from local_dp.records import Records
from local_dp.tallies import Tally
from tests.support.inputs.builders import WITHOUT_LAW, small
from tests.support.long import short
from tests.support.runs.protocols import by_client
from tests.support.wrong import wrong

ALPHA = 1e-6
ALL: list[LocalProtocol[Any]] = [
    *map(small, PROTOCOLS), Survey(p=0.9), Frequency(k=40),
    Frequency(labels=("red", "green", "blue"), column="colour"),
    Mean(low=-10.0, high=30.0, p=0.001), StatisticalQueries(t=1),
    MaskedParityLearner(d=11, r=1234, a=1),
]  # fmt: skip


EACH = pytest.mark.parametrize(
    "protocol", short(ALL, lambda each: each.name != "heavy-hitters"), ids=list(map(repr, ALL))
)


def simulated(
    protocol: LocalProtocol[Any], epsilon: float, clients: int, seed: int
) -> tuple[Any, Population, PopulationOracle]:
    """One run of a protocol in the population tier: its result, the population and the oracle."""
    population = protocol.synthetic(clients, seed)
    oracle = PopulationOracle(population, KeyedNoise(seed), seed, epsilon)
    return run(protocol.algorithm(epsilon, clients), oracle), population, oracle


def oracle_over(
    protocol: LocalProtocol[Any], population: Population, seed: int, epsilon: float = 1.0
) -> AggregateOracle | PopulationOracle:
    """Tallies from their law, or client by client where they have none."""
    if protocol.name in WITHOUT_LAW:
        return PopulationOracle(population, KeyedNoise(seed), seed, epsilon)
    return AggregateOracle(population, np.random.default_rng(seed), epsilon)


@EACH
def test_every_protocol_finds_the_truth_with_the_clients_it_asks_for(
    protocol: LocalProtocol[Any],
) -> None:
    """With the default number of clients, the result is within its tolerance or exact: at most 6 of
    15 runs fail (each fails with probability 1/20: 4e-6)."""
    if isinstance(protocol, MeanFound):
        protocol = MeanFound()  # the small one may miss bounds, as it says
    clients, failures = protocol.clients(1.0), 0
    tolerance = getattr(
        protocol,
        "tolerance",
        getattr(protocol, "alpha", 0.1 if isinstance(protocol, StatisticalQueries) else 0.0),
    )
    if isinstance(protocol, Mean):
        tolerance *= protocol.bounded.high - protocol.bounded.low
    for seed in range(15):
        population = protocol.synthetic(clients, seed)
        result = run(protocol.algorithm(1.0, clients), oracle_over(protocol, population, seed))
        width = result.bounds.high - result.bounds.low if isinstance(protocol, MeanFound) else 1.0
        failures += protocol.true_error(result, population) > tolerance * width
    assert failures <= 6
    assert stats.binom.sf(6, 15, 0.05) < 4e-6


@wrong(
    "local_dp.oracles.local.asked:ask_all",
    "Cohort(0, clients)",
    "Cohort(0, clients - 1)",
    "off-by-one cohort",
    at=(
        "Compare(question='yes == 1', by='group', labels=('A', 'B'), missing='refuse', "
        "other='refuse', p=0.3, q=0.4, tolerance=0.05)"
    ),
)
@EACH
def test_every_protocol_spends_its_budget_once_and_describes_its_result(
    protocol: LocalProtocol[Any],
) -> None:
    """A run asks each client once (FI: in every round; some may leave clients over), spends
    epsilon, is of its type's kind, describes its result."""
    clients = 3000
    result, population, oracle = simulated(protocol, 1.0, clients, 5)
    asks = sum(summary.n for summary in oracle.rounds)
    each = len(oracle.rounds) if protocol.model() == "FI" else 1
    assert asks == each * clients or (
        isinstance(protocol, Learned | Learn | ParityElimination) and asks <= clients
    )
    assert oracle.ledger.max_spent == 1.0
    kinds = {
        "LNI": ("non-interactive", Nonadaptive),
        "LI": ("sequentially interactive", Adaptive),
        "FI": ("fully interactive", Repeated),
    }
    kind, form = kinds[protocol.model()]
    assert oracle.interaction == kind or (protocol.model() == "LI" and len(oracle.rounds) == 1)
    assert type(protocol.algorithm(1.0, clients)) is form
    assert protocol.true_error(result, population) >= 0
    assert protocol.describe(result)
    assert str(protocol.describe(result)) == str(
        protocol.describe(simulated(protocol, 1.0, clients, 5)[0])
    )


@dataclass
class Silenced:
    """Another oracle's tallies, but the one at `place`, counted over all rounds: nobody answers for
    it."""

    oracle: Oracle[LocalQuery, Tally]
    place: int
    asks: int = 0

    def answer(self, queries: tuple[LocalQuery, ...]) -> tuple[Tally, ...]:
        tallies = list(self.oracle.answer(queries))
        if self.asks <= self.place < self.asks + len(queries):
            tallies[self.place - self.asks] = queries[self.place - self.asks].randomizer.empty()
        self.asks += len(queries)
        return tuple(tallies)


@pytest.mark.parametrize(
    "protocol",
    short(
        [*map(small, PROTOCOLS)],
        lambda each: each.name != "heavy-hitters",
    ),
    ids=repr,
)
def test_a_cohort_for_which_nobody_answers_is_an_error_not_a_result(
    protocol: LocalProtocol[Any],
) -> None:
    """If any of the first dozen tallies of a run holds no report, the run ends in one clear error:
    no NaN, and no hypothesis."""
    population = protocol.synthetic(3000, 5)

    def play(place: int) -> int:
        oracle = Silenced(oracle_over(protocol, population, 5), place)
        run(protocol.algorithm(1.0, 3000), oracle)
        return oracle.asks

    for place in range(min(12, play(-1))):
        with pytest.raises(InputError, match="nobody answered"):
            play(place)


@pytest.mark.parametrize(("workers", "chunk"), [(2, 64), (7, 1000), (3, 1 << 16)])
def test_results_do_not_depend_on_chunks_or_threads(
    workers: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tallies are equal whatever the chunk size and the number of threads; digests whatever the
    number of threads."""
    tallies: dict[str, list[Any]] = {}
    digests: dict[str, list[Any]] = {}
    for cores, size in ((1, 1 << 16), (workers, chunk), (1, chunk)):
        monkeypatch.setattr("local_dp.oracles.local.oracles.CHUNK", size)
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        for protocol in (Survey(), Frequency(k=40), MaskedParityLearner(d=5), StatisticalQueries()):
            result, _, oracle = simulated(protocol, 1.0, 9999, 6)
            tallies.setdefault(protocol.name, []).append(str(protocol.describe(result)))
            digests.setdefault(protocol.name, []).append(
                [summary.digest for summary in oracle.rounds]
            )
    for name, results in tallies.items():
        assert len(set(results)) == 1, name
        assert digests[name][1] == digests[name][2], name


@pytest.mark.parametrize("name", list(PROTOCOLS))
@pytest.mark.parametrize("epsilon", [float("nan"), 25.0])
def test_a_bad_epsilon_is_an_input_error(name: str, epsilon: float) -> None:
    """No protocol runs at an epsilon that is not a positive number of at most 24."""
    with pytest.raises(InputError, match="epsilon"):
        run(
            find_protocol(name)().algorithm(epsilon, 1000),
            AggregateOracle(
                find_protocol(name)().synthetic(1000, 1), np.random.default_rng(1), 1.0
            ),
        )


def test_protocols_on_tables_check_what_they_read() -> None:
    """A table without the column, or a protocol that takes no table, is an InputError that names
    what there is."""
    records = Records(
        {"age": np.array([20.0, 40.0, 60.0]), "city": np.array(["Rome", "Oslo", "Rome"])}
    )
    for protocol in (
        Survey(question="x > 1"),
        Frequency(column="x"),
        Mean(column="x", low=0.0, high=1.0),
        StatisticalQueries(queries=("x > 1",)),
    ):
        with pytest.raises(InputError, match="no column 'x'; there are age, city"):
            protocol.for_table(Launch(records, False))
    assert Frequency(column="city", labels_from_data=True).for_table(
        Launch(records, False)
    ).labels == ("Oslo", "Rome")
    mean = Mean(column="age", low=0.0, high=100.0).for_table(Launch(records, False))
    estimate = by_client(mean, Rows(records), 20.0, 1)
    error = mean.true_error(estimate, Rows(records))
    assert error == pytest.approx(abs(float(estimate.value) - 40))


@EACH
def test_laws_agree_with_the_clients_drawn(protocol: LocalProtocol[Any]) -> None:
    """60,000 clients fit the stated law of every query of a run of others (chi-square, 1e-6), whose
    rounds do not depend on them; vectors apart."""
    n = 60_000
    population = protocol.synthetic(2 * n, 8)
    random = np.random.default_rng(1).random(n)
    for query in queries_of(protocol, protocol.synthetic(n, 8)):
        if isinstance(query.domain, Vectors):
            continue
        law = population.law(query)
        assert abs(law.sum() - 1) < 1e-12
        values = query.discretize(query(population.batch(n, 2 * n)), random).astype(np.int64)
        counts = np.bincount(values - query.domain.low, minlength=query.domain.size)
        assert fits(counts, law), query


def queries_of(protocol: LocalProtocol[Any], population: Population) -> list[Query]:
    queries_seen: list[Query] = []

    class Listening:
        def __init__(self) -> None:
            self.oracle = oracle_over(protocol, population, 0, 20.0)

        def answer(self, queries: tuple[LocalQuery, ...]) -> tuple[Tally, ...]:
            queries_seen.extend(query.query for query in queries)
            return self.oracle.answer(queries)

    run(protocol.algorithm(20.0, population.size), Listening())
    return queries_seen


def fits(counts: np.ndarray, law: np.ndarray) -> bool:
    """Chi-square at ALPHA, entries with fewer than 10 expected merged."""
    expected = law * counts.sum()
    rare = expected < 10
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < 10:  # too few for chi-square even together: by Markov's inequality
        if observed[-1] > expected[-1] / ALPHA:
            return False
        observed = observed[:-1]
        expected = expected[:-1]
    return (
        len(observed) < 2
        or float(stats.chisquare(observed, expected, sum_check=False).pvalue) > ALPHA
    )


def test_a_wrong_law_is_noticed() -> None:
    learner = MaskedParityLearner(d=4, r=5, a=1)
    population = learner.synthetic(100_000, 8)
    query = MaskedIndex(4)
    values = query(population.batch(0, population.size)).astype(np.int64)
    counts = np.bincount(values - query.domain.low, minlength=query.domain.size)
    assert fits(counts, population.law(query))
    assert not fits(counts, MaskedParityPopulation(Concept(4, 6, 1), 1, 0).law(query))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_concept_error_is_exact(d: int) -> None:
    """Concept.error equals the share of all (x, i, b) on which two concepts differ, for every pair
    of concepts."""

    def labels(concept: Concept) -> list[int]:
        odd = [
            ((concept.r & x).bit_count() + concept.a) % 2 if b == 0 else concept.r >> i & 1
            for x, i, b in product(range(2**d), range(d), range(2))
        ]
        return [1 - 2 * bit for bit in odd]

    concepts = [Concept(d, r, a) for r in range(2**d) for a in range(2)]
    for first, second in product(concepts, concepts):
        differ = sum(one != other for one, other in zip(labels(first), labels(second), strict=True))
        assert first.error(second) == pytest.approx(differ / (2**d * d * 2), abs=1e-15)


@pytest.mark.parametrize("t", [1, 4, 10])
def test_statistical_queries_share_clients_in_proportion(t: int) -> None:
    """Every query of `sq` gets its own clients, all are used, and with the default number each gets
    exactly what it needs."""
    protocol = StatisticalQueries(
        t=t, tolerances=tuple(f"{0.1 + 0.05 * place:.2f}" for place in range(t))
    )
    for clients in (protocol.clients(1.0), t, 10 * t + 3):
        cohorts = [query.cohort for query in protocol.algorithm(1.0, clients).queries]
        assert [cohort.start for cohort in cohorts] == [
            0,
            *(cohort.stop for cohort in cohorts[:-1]),
        ]
        assert cohorts[-1].stop == clients
        if clients == protocol.clients(1.0):
            assert all(
                len(cohort) == need
                for cohort, need in zip(cohorts, protocol.needs(1.0), strict=True)
            )


MADE: Any = PROTOCOLS
WRONG = """
compare: labels=A / labels=A;A / labels=A;B;C
frequency: k=1 / k=2.5 / k=4194305 / labels=a / labels=a;a / tolerance=-1
heavy-hitters: bits=12, text=true / bits=65 / bits=7 / missing=drop / share=0 / share=0.0
heavy-hitters: text_bytes=0 / text_bytes=33
identity: alpha=0.6 / coins=my / shares=0.5;0.6 / shares=x;x;x;x;x;x;x;x;x;x;x;x;x;x;x;x
learn: bounds=age / bounds=age=1 / bounds=age=2..1 / bounds=age=nan..1 / cuts=0 / features=a >
learn: held_out=1 / held_out=1.0 / label=a == / learner=conjunctions, parameters=monotone=maybe
learn: learner=k-means, parameters=k=1 / learner=oracle / learner=thresholds, features=a;b
learn: learner=trees, parameters=depth / learner=trees, parameters=depth=x / missing=category
learn: parameters=depth=3 / tolerance=2.0
local-sgd: told=privunit
logistic: missing=no / on=a;b, labels=x|y / on=yes == 1 / tolerance=0
longitudinal: changes=-1 / columns=a / columns=a;a, labels=x;y / first=0 / first=0.0 / first=1.5
longitudinal: method=guess / method=memoised / method=tracked / method=tracked, changes=0
longitudinal: method=tracked, changes=1, labels=a;b;c / times=1 / tolerance=0.0
marginals: columns=a;a / k=1 / k=65 / labels=x|y / missing=exclude / ways=0 / ways=7
masked-parity-list: bits=9 / share=1 / share=1.0
masked-parity: a=2 / d=0 / d=4, r=16 / d=65 / d=four / r=-1
mean-vector: columns=a;a / d=0 / high=inf / low=-1e308, high=1e308 / low=0;0 / low=1, high=0
mean-vector: low=nan / low=x / missing=exclude / outside=x / radius=0 / radius=0.0
mean-vector: radius=1, low=0 / radius=1.0, low=0 / steps=3
mean-vector: tolerance=0.0
mean: high=inf / low=-1e308, high=1e308 / low=1, high=0 / low=nan / p=0
parity-deny: d=13
parity-elimination: d=13 / fall=0 / fall=0.0 / step=-1 / step=-1.0
parity-one-round: d=3, r=8
parity-rounds: d=4, rounds=1 / d=4, rounds=5
parity: d=13
quantiles: at=0 / at=1e-9 / at=x / low=1.0, high=0.0 / missing=zero / rounds=one, bins=4000
quantiles: rounds=two
sq: queries=a > / t=0 / t=11 / tolerances=0 / tolerances=0.1;0.2 / tolerances=x
survey: colour=red / p=0 / p=1.5 / p=nan / p=x / question=yes == / tolerance=0
std: high=inf / low=1, high=0 / spread=0.6 / tolerance=0 / tolerance=0.0
workload: queries=1 1 1 1 1 1 1 / queries=1 2 3 / queries=1 2 x 0 0 0 0 / queries=parities
workload: queries=prefxes
"""  # a protocol, and its wrong parameters as they are typed
FEW = {
    "heavy-hitters": 8, "longitudinal": 3, "marginals": 5, "masked-parity-list": 1,
    "masked-parity-fresh": 3, "parity": 1, "parity-rounds": 1,
}  # fmt: skip
OTHERS: list[tuple[Callable[[], object], str]] = [
    (lambda: MADE["quantiles"](column="x").for_table(Launch(Records({"x": np.ones(3)}),
    private=False)), "public bounds"),
    (lambda: MADE["marginals"](columns=tuple(f"c{place}" for place in range(40)), ways=3),
    "9,880 marginals"),
    (lambda: MADE["learn-logistic-regression"](radius=-1.0), "radius"),
    (lambda: MADE["learn-logistic-regression"](d=0), "d is"),
    *[(lambda masks=masks: Characters(1.0, d=3, masks=masks), ("hexadecimal|power of "
    "two|give one to all")) for masks in ("zz", "07", "00")],
    (lambda: BlockClass("and", 13, 2), r"\w"),
    (lambda: QUERIES.build("change-interval",
    {"waves": ("a", "b"), "labels": ("x", "y"), "change": 9, "width": 1}), "not accept"),
    (lambda: QUERIES.build("masked-list", {"d": 4, "r": 0, "free": -1}), "not accept"),
]  # fmt: skip


@pytest.mark.parametrize("line", WRONG.strip().splitlines())
def test_wrong_parameters_are_refused(line: str) -> None:
    """In one line, when the protocol is made, or at the latest when its algorithm is."""
    name, cases = line.split(": ", 1)
    for case in cases.split(" / "):
        wrong = dict(setting.split("=", 1) for setting in case.split(", "))
        with pytest.raises(InputError) as error:
            PROTOCOLS[name].from_settings(wrong).algorithm(1.0, 1000)
        assert len(str(error.value).splitlines()) == 1, case


@pytest.mark.parametrize("name", FEW)
def test_too_few_clients_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"few|rounds|fresh"):
        PROTOCOLS[name]().algorithm(1.0, FEW[name])


@pytest.mark.parametrize("place", range(len(OTHERS)))
def test_the_rest_is_refused(place: int) -> None:
    make, words = OTHERS[place]
    with pytest.raises(LocalDPError, match=words):
        make()
