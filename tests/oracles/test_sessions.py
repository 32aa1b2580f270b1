"""Sessions and the aggregate tier: epsilon is lost once under any server; drawn tallies have the
law of simulated ones."""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
from scipy import stats

from local_dp.arrays import Counts, Ints, Words
from local_dp.clients.journal import MemoryStore
from local_dp.clients.role import ClientRole
from local_dp.errors import InputError, RefusedError
from local_dp.interaction import run
from local_dp.ledger import Ledger
from local_dp.noise import Draw, KeyedNoise, public_coins, stream_key
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.memory import Memoised, Speakers, repeat_of
from local_dp.oracles.local.oracles import AggregateOracle, PopulationOracle
from local_dp.populations.finite import Finite, Population
from local_dp.populations.parity import LadderPopulation
from local_dp.queries.cells import Cell
from local_dp.queries.examples import PathStep
from local_dp.queries.query import STEPS
from local_dp.queries.tables import Bounded, Question
from local_dp.randomizers.evidence import exact_ratio
from local_dp.randomizers.finite import FiniteChannel, report_law
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.randomizers.repeated.memoised import OneOfRounds
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.randomizers.signs.prefix_signs import PrefixSigns
from local_dp.records import Records
from local_dp.tallies import Tally
from local_dp.verification.worst import worst_transcript
from tests.support.inputs.builders import request, small, with_law
from tests.support.inputs.randomizers import built_in
from tests.support.long import short
from tests.support.theory.fits import p_value
from tests.support.wrong import wrong

# so little above ln 3 that E / (E + 1), rounded towards privacy, is 3/4 in words of two bits
LN_3 = 1.09861229
THREE = OneOfRounds(LN_3, word_bits=2)
SESSION = "path"


def asked(path: str, session: str = SESSION, stop: int = 1, epsilon: float = 1.0) -> LocalQuery:
    """A question about the last step of a path, put to the clients 0..stop."""
    randomizer = OneOfRounds(epsilon)
    repeat = repeat_of(session, randomizer)
    return LocalQuery(PathStep(path, len(path) - 1), randomizer, Cohort(0, stop), repeat)


@wrong(
    "local_dp.randomizers.repeated.memoised:OneOfRounds.weight",
    (
        "np.where(values == self.silence, half, np.where(reports == values, truth, "
        "np.uint64(self.flip)))"
    ),
    (
        "np.where(values == self.silence, 2 * half * (reports == 0), np.where(reports == values, "
        "truth, np.uint64(self.flip)))"
    ),
    "whoever has nothing to say always says 0: a 1 shows who speaks",
    at="1",
)
@pytest.mark.parametrize("rounds", [1, 2, 3, 4, 6])
def test_all_rounds_of_a_session_lose_what_one_answer_does(rounds: int) -> None:
    """At E = 3 the largest ratio of any reports of 1, 2, 3, 4 or 6 rounds is exactly 3 and not
    3^rounds, whatever the server asks by what it has heard."""
    assert worst_transcript(THREE, rounds) == 3 == exact_ratio(THREE)


class Quiet(FiniteChannel):
    """The wrong twin: who has nothing to say says 2, and no coin is tossed."""

    name = "quiet"
    silence: ClassVar[int | None] = 2
    domain = THREE.domain
    alphabet = 3

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        return np.where(
            values == 2, 4 * (reports == 2), np.where(reports == values, 3, 1 * (reports < 2))
        ).astype(np.uint64)

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        raise NotImplementedError

    def estimate(self, tally: Tally) -> None:  # type: ignore[override]
        raise NotImplementedError


class Leaning(Quiet):
    """The wrong twin: who has nothing to say tosses a coin that shows 1 three times in four: each
    report alone is fine, and two together are not."""

    alphabet = 2

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        return np.where(np.where(values == 2, 1, values) == reports, 3, 1).astype(np.uint64)


class Once(Leaning):
    """The same channel, where nobody asks it twice."""

    silence = None


@wrong(
    "local_dp.randomizers.evidence:_of_table",
    "ratio if silence is None else max(ratio, _of_session(randomizer, silence))",
    "ratio",
    "a coin that leans passes for a session, where it loses twice",
)
def test_only_a_fair_coin_hides_who_is_silent() -> None:
    """Silence instead of a coin shows a record for sure; a coin that leans passes for one report
    and is refused for a session, by its channel alone."""
    with pytest.raises(RefusedError, match="reveals"):
        worst_transcript(Quiet(LN_3, word_bits=2), 1)
    with pytest.raises(RefusedError, match="reveals"):
        exact_ratio(Quiet(LN_3, word_bits=2))
    leaning = Leaning(LN_3, word_bits=2)
    assert worst_transcript(leaning, 1) == 3
    assert worst_transcript(leaning, 2) == exact_ratio(leaning) == 9
    assert exact_ratio(Once(LN_3, word_bits=2)) == 3


class Enumerated:
    """Noise that gives each round the word that is written down for it."""

    def __init__(self, words: tuple[int, ...]) -> None:
        self.by_round = words

    def words(self, which: object, start: int, stop: int, bits: int) -> Words:
        return np.full(
            stop - start,
            self.by_round[which.round - 1] << (bits - 2),  # type: ignore[attr-defined]
            dtype=f"<u{bits // 8}",
        )


@pytest.mark.parametrize("k", [1, 2, pytest.param(3, marks=pytest.mark.long)])
def test_the_ladder_itself_loses_epsilon_exactly(k: int) -> None:
    """One real client of every record, by a server that follows what it hears: over all words no
    transcript is more than 3 times as likely under one record."""
    laws = []
    for level in range(k):
        for table in range(1 << (1 << level)):
            records = Records({"level": np.array([level]), "table0": np.array([table])})
            laws.append(transcripts(k, records))
    ratios = [
        Fraction(one[transcript], other[transcript])
        for one, other in product(laws, laws)
        for transcript in one
    ]
    assert max(ratios) == 3
    assert all(len(law) == 2**k and sum(law.values()) == 4**k for law in laws)


def transcripts(k: int, records: Records) -> dict[tuple[int, ...], int]:
    """How many of the words of k rounds, two bits each, make this client give each transcript."""
    law: dict[tuple[int, ...], int] = {}
    for words in product(range(4), repeat=k):
        role = ClientRole("c", 0, records, Enumerated(words), MemoryStore(2.0))
        reports, node = [], ""
        for number in range(1, k + 1):
            (reply,) = role.handle(
                request(replace(asked(node + "1"), randomizer=THREE), number=number)
            )
            report = reply.reports[0]  # type: ignore[union-attr]
            reports.append(report)
            node += str(report)  # the server follows what it hears
        law[tuple(reports)] = law.get(tuple(reports), 0) + 1
    return law


@wrong(
    "local_dp.oracles.local.memory:Speakers.once_only",
    "places - 8 * first",
    "places - places.min()",
    "who has spoken is noted for the client whose byte begins there",
)
def test_spoken_is_a_set_of_clients() -> None:
    """For any spans of clients in any order, the values reported are those that a set of the
    clients that have spoken allows."""
    generator = np.random.default_rng(3)
    speakers = Speakers()
    members = set[int]()
    for _ in range(300):
        start = int(generator.integers(50))
        n = int(generator.integers(1, 40))
        values = generator.integers(0, 3, n)
        replies = speakers.once_only(SESSION, 2, start + np.arange(n), values)
        assert replies.tolist() == [
            2 if start + place in members else value for place, value in enumerate(values.tolist())
        ]
        members |= {start + place for place, value in enumerate(values.tolist()) if value != 2}
        twin = speakers.copy([SESSION, "other"])
        twin.once_only(SESSION, 2, np.arange(100), np.zeros(100, dtype=np.int64))
        again = Speakers()
        again.restore(SESSION, speakers.bits(SESSION))
        speakers = again


@wrong(
    "local_dp.oracles.local.asked:LocalQuery.charge",
    "('session', *identity)",
    "(self.query.name, self.query.params(), *identity)",
    "the second question of a session is refused as another one under its label",
)
def test_a_session_is_paid_once_and_stands_for_one_randomizer() -> None:
    """Other questions under its label cost nothing more; another randomizer, or another epsilon, is
    refused; without the label every round is paid."""
    ledger = Ledger(1.0)
    for path in ("1", "01", "001"):
        ledger.charge("run", [asked(path).charge()])
    assert ledger.max_spent == 1.0
    for other in (
        asked("1", epsilon=0.5),
        LocalQuery(Question("yes == 1"), BinaryRR(0.5), Cohort(0, 1), Memoised(SESSION)),
    ):
        with pytest.raises(RefusedError, match="already stands for another"):
            ledger.check("run", [other.charge()])
    plain = Ledger(1.0)
    plain.charge("run", [asked("1", session="").charge()])
    with pytest.raises(RefusedError, match="budget"):
        plain.charge("run", [asked("01", session="").charge()])


@wrong(
    "local_dp.clients.role:ClientRole._answer",
    "tuple(((session, memory.speakers.bits(session)) for session in sessions))",
    "()",
    "a client speaks once a request, not once a session",
)
def test_a_second_truth_is_a_coin_that_nobody_can_tell() -> None:
    """A server that asks one level at two nodes gets an answer each time: the second ones are as
    many ones as zeros, whatever the tables hold."""
    n = 40_000
    level = np.ones(n, dtype=np.uint8)
    table = np.full(n, 3, dtype=np.uint64)
    role = ClientRole(
        "host", 0, Records({"level": level, "table0": table}), KeyedNoise(5), MemoryStore(1.0)
    )
    ones = []
    for number, path in enumerate(("01", "11", "01"), 1):
        (reply,) = role.handle(request(asked(path, stop=n), number=number))
        ones.append(int(np.frombuffer(reply.reports, dtype=np.uint8).sum()))  # type: ignore[union-attr]
    # five standard errors fail once in 1.7 million
    assert abs(ones[0] / n - math.e / (math.e + 1)) < 5 * 0.5 / math.sqrt(n)
    assert all(abs(each / n - 0.5) < 5 * 0.5 / math.sqrt(n) for each in ones[1:])
    assert role.store.ledger.max_spent == 1.0


def test_no_law_of_a_session() -> None:
    """Tallies drawn from their law would forget who has spoken: refused by one line, and so is a
    randomizer without silence by the enumeration."""
    with pytest.raises(RefusedError, match="a session has no closed law"):
        AggregateOracle(LadderPopulation(2, 10, 1), np.random.default_rng(1), 1.0).answer(
            (asked("1", stop=10),)
        )
    with pytest.raises(InputError, match="takes no part in sessions"):
        worst_transcript(BinaryRR(1.0), 2)


ALPHA = 1e-6


def same_law(first: Counts, second: Counts) -> float:
    """The chi-square p-value that two tallies have one law, entries with fewer than 10 reports
    together merged into one."""
    table = np.stack([first.ravel(), second.ravel()])
    rare = table.sum(axis=0) < 10
    table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    return (
        1.0
        if table.shape[1] == 1
        else float(stats.chi2_contingency(table, correction=False).pvalue)
    )


def simulated(randomizer: FiniteChannel, holders: dict[int, int]) -> Counts:
    """The tally of simulated clients that hold these values."""
    values = np.repeat(list(holders), list(holders.values()))
    n = len(values)
    cells = randomizer.cells_of(public_coins(stream_key("coins", 5, 1), 0, n))
    words = randomizer.draw(KeyedNoise(5), Draw(1), 0, n)
    return randomizer.tally(randomizer.respond(values, words, cells), cells).counts


@pytest.mark.parametrize("epsilon", short([0.1, 1.0, 5.0], lambda each: each == 1))
def test_drawn_tallies_have_the_law_of_simulated_ones(epsilon: float) -> None:
    """For every randomizer, draw_tally and respond-then-tally both fit the exact law of the
    cohort's values, and each other."""
    generator = np.random.default_rng(3)
    for randomizer in built_in(epsilon):
        low, high = randomizer.domain.low, randomizer.domain.high
        holders = {low: 40_000, high: 50_000}
        if high - low > 1:
            holders = {low: 40_000, (low + high) // 2: 20_000, high: 30_000}
        from_law = randomizer.draw_tally(holders, generator).counts
        from_clients = simulated(randomizer, holders)
        n = sum(holders.values())
        law = sum(count / n * report_law(randomizer, value) for value, count in holders.items())
        assert from_law.sum() == from_clients.sum() == n
        chances = dict(enumerate(np.asarray(law).ravel().tolist()))
        fits = [
            p_value(Counter(dict(enumerate(counts.ravel().tolist()))), chances)
            for counts in (from_law, from_clients)
        ]
        for p in (*fits, same_law(from_law, from_clients)):
            assert p > ALPHA, f"{randomizer.name}, epsilon {epsilon}: p = {p}"


class Both:
    """Puts the same questions to both tiers, and answers as the population tier does."""

    def __init__(self, population: Population, epsilon: float) -> None:
        self.by_client = PopulationOracle(population, KeyedNoise(4), 4, epsilon)
        self.by_law = AggregateOracle(population, np.random.default_rng(4), epsilon)
        self.pairs: list[tuple[Tally, Tally]] = []

    def answer(self, queries: tuple[LocalQuery, ...]) -> tuple[Tally, ...]:
        tallies = self.by_client.answer(queries)
        self.pairs += zip(tallies, self.by_law.answer(queries), strict=True)
        return tallies


@wrong(
    "local_dp.oracles.local.oracles:AggregateOracle._draw",
    "channel = without_coin(query.randomizer)",
    "channel = replace(without_coin(query.randomizer), epsilon=1.5 * query.randomizer.epsilon)",
    "tallies are drawn at another epsilon",
    at="1.0-survey",
)
@pytest.mark.parametrize("name", with_law())
@pytest.mark.parametrize("epsilon", short([0.5, 1.0, 3.0], lambda each: each == 1))
def test_the_aggregate_oracle_has_the_law_of_the_population(name: str, epsilon: float) -> None:
    """The tallies of one run, simulated and drawn from their law."""
    both = Both(small(name).synthetic(100_000, 4), epsilon)
    run(small(name).algorithm(epsilon, 100_000), both)
    for first, second in both.pairs:
        assert first.n == second.n
        assert same_law(first.counts, second.counts) > ALPHA


def test_many_kinds_of_record_have_their_tally_in_closed_form() -> None:
    """Pr[report] over 1,000 kinds of record is the law of the values times the channel, exactly;
    few kinds, or public coins, are drawn value by value."""
    generator = np.random.default_rng(4)
    kinds = Records({"v": generator.normal(size=1000)})
    shares = generator.random(1000)
    many = Finite(kinds, shares.tolist(), 5000, 1)
    query = Bounded("v", -2.0, 2.0)
    randomizer = OneBitMean(1.0, steps=STEPS)
    law = many.tally_law(query, randomizer)
    assert law is not None
    expected = many.law(query) @ (randomizer.channel().astype(np.float64) / randomizer.total)
    assert law[0] == pytest.approx(expected, abs=1e-12)
    assert (
        Finite(kinds.take(slice(0, 100)), shares[:100].tolist(), 5000, 1).tally_law(
            query, randomizer
        )
        is None
    )
    assert (
        many.tally_law(Cell("v", tuple(np.linspace(-2, 2, 600).tolist())), PrefixSigns(1.0, k=602))
        is None
    )
