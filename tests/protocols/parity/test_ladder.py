"""The ladder: paths are followed whatever the tables hold, other levels cancel, and who asks what is refused where it cannot be."""

from itertools import product

import numpy as np
import pytest

from local_dp.errors import InputError, RefusedError
from local_dp.interaction import run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.population import PopulationOracle
from local_dp.populations.parity import LadderPopulation
from local_dp.protocols.parity.ladder import Heard, LadderAgain, LadderInTurn, LadderOneRound, ways_on
from local_dp.queries.examples import PathStep, columns
from local_dp.randomizers.repeated.memoised import OneOfRounds
from local_dp.records import Records
from local_dp.shuffle.central import check_shufflable
from local_dp.tallies import Tally

RANDOMIZER = OneOfRounds(20.0)


def expected(k: int, tables: list[int], levels: int) -> Heard:
    """The expected answers of one round from the root, where each path is put to every client: each level's answer to each path, counted once."""
    queries = ways_on("", levels, range(1 << levels), RANDOMIZER)
    records = Records({"level": np.arange(k), "table0": np.array(tables, dtype=np.uint64)})
    heard = Heard()
    for query in queries:
        values = query.query.values(records)
        heard.add((query,), (Tally(np.array([[(values == 0).sum(), (values == 1).sum()]])),))
    return heard


@pytest.mark.parametrize("k", [1, 2, 3])
def test_other_levels_cancel_whatever_the_tables_hold(k: int) -> None:
    """For every table of every level: the exact score at every node is that of its own level alone, so the path is the true one."""
    for tables in product(*(range(1 << (1 << level)) for level in range(k))):
        heard = expected(k, list(tables), k)
        for level in range(k):
            for node in map("".join, product("01", repeat=level)):
                own = tables[level] >> int("0" + node, 2) & 1
                score = sum(more if path[level] == "1" else -more for path, _, more in heard.scores if path.startswith(node))
                assert score == (2 * own - 1) * 2 ** (k - level)
                assert heard.step(node) == str(own)


@pytest.mark.parametrize(
    "protocol",
    [LadderAgain(5), LadderAgain(5, 2), LadderAgain(3, charged="sum"), LadderInTurn(5), LadderInTurn(6, 4), LadderInTurn(5, below=True), LadderOneRound(5)],
    ids=repr,
)
def test_without_noise_the_path_is_always_found(protocol: LadderAgain | LadderInTurn | LadderOneRound) -> None:
    """At epsilon 20 and 20,000 clients each of twenty paths is the true one, of the kind that its type says."""
    for seed in range(20):
        population = protocol.synthetic(20_000, seed)
        oracle = PopulationOracle(population, KeyedNoise(seed), seed, 20.0)
        found = run(protocol.algorithm(20.0, 20_000), oracle)
        assert (found, protocol.true_error(found, population)) == (population.path, 0.0)
        assert oracle.ledger.max_spent == pytest.approx(20.0)


@pytest.mark.parametrize("k", [1, 3, 6, 7, 9, 16])
def test_a_population_is_its_batches(k: int) -> None:
    """What a query reads of whole records is what the population answers without them; the tables of a level are alike and no longer than 2^level."""
    population = LadderPopulation(k, 500, 3)
    records = population.batch(0, 500)
    assert len(records.columns) == 1 + columns(k)
    for level in range(k):
        query = PathStep(population.path[: level + 1], level)
        assert (query.values(records) == population.values(query, 0, 500)).all()
        assert (query.values(records)[records["level"] == level] == 1).all()
        assert (query.values(records)[records["level"] != level] == 2).all()
    tables = np.stack([records.words(f"table{place}") for place in range(columns(k))], axis=1)
    for level in range(min(k, 6)):
        assert (tables[records["level"] == level] < 1 << (1 << level)).all()


def test_what_is_refused() -> None:
    """Bad paths, levels, rounds and ways; more questions than clients or than a request holds; a law of another ladder; a session on a shuffler."""
    for path, first in (("", 0), ("012", 0), ("01", 2), ("01", -1), ("0" * 17, 0)):
        with pytest.raises(InputError):
            PathStep(path, first)
    for wrong in (lambda: LadderAgain(0), lambda: LadderAgain(17), lambda: LadderOneRound(13), lambda: LadderInTurn(4, 5), lambda: LadderAgain(4, 0)):
        with pytest.raises(InputError):
            wrong()
    with pytest.raises(InputError, match="charged"):
        LadderAgain(4, charged="twice")
    with pytest.raises(InputError, match="a client of its own"):
        LadderOneRound(5).algorithm(1.0, 31)
    with pytest.raises(InputError, match="at most 12 levels"):
        ways_on("", 13, range(1 << 14), RANDOMIZER)
    with pytest.raises(InputError, match="the law"):
        LadderPopulation(2, 10, 1).law(PathStep("011", 0))
    with pytest.raises(InputError, match="a session of one-of-rounds cannot be shuffled"):
        check_shufflable(LocalQuery(PathStep("1"), RANDOMIZER, Cohort(0, 9), "path"))
    poor = PopulationOracle(LadderPopulation(3, 100, 1), KeyedNoise(1), 1, 0.5)
    with pytest.raises(RefusedError, match="budget"):
        run(LadderAgain(3).algorithm(1.0, 100), poor)
