"""The shuffler's role: a crowd or nothing, an order without information, and reports that mean something without a client."""

from collections import Counter
from itertools import permutations

import numpy as np

from local_dp.draws import Draws
from local_dp.interaction import Nonadaptive
from local_dp.noise import Draw, KeyedNoise, SystemNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.protocols.surveys.frequency import Frequency
from local_dp.protocols.surveys.survey import Survey
from local_dp.queries.tables import Question
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.randomizers.with_coin import WithCoin
from local_dp.shuffle.central import Shuffler, check_shufflable, with_coins
from tests.support.inputs.builders import survey_query
from tests.support.inputs.refusals import refuse


def rows(text: bytes, width: int = 1) -> np.ndarray:
    """Reports of so many bytes each."""
    return np.frombuffer(text, dtype=np.uint8).reshape(-1, width)


def shuffler(crowd: int, seed: int = 1) -> Shuffler:
    """One with reproducible draws."""
    return Shuffler(Draws(KeyedNoise(seed)), crowd)


def test_below_the_crowd_nothing_is_passed_on() -> None:
    """And with one more client all of it is."""
    assert shuffler(3).passed(rows(b"aabb", 2)).shape == (0, 2)
    assert sorted(map(bytes, shuffler(3).passed(rows(b"aabbcc", 2)))) == [b"aa", b"bb", b"cc"]


def test_every_order_is_as_likely() -> None:
    """The six orders of three reports over 6,000 batches: chi-square of 5 degrees below 30.9, which a uniform order exceeds once in 100,000."""
    role = shuffler(3, seed=3)
    seen = Counter(role.passed(rows(b"abc")).tobytes() for _ in range(6000))
    assert set(seen) == {bytes(order) for order in permutations(b"abc")}
    assert sum((count - 1000) ** 2 / 1000 for count in seen.values()) < 30.9


def test_where_the_order_comes_from() -> None:
    """From the seed in a simulation, by words that no client's noise holds; from the system's entropy without one."""
    many = rows(bytes(range(200)))
    first, again, other = (Shuffler.of(seed, 2).passed(many).tobytes() for seed in (5, 5, 6))
    assert first == again != other
    assert isinstance(Shuffler.of(None, 2).draws._noise, SystemNoise)
    assert Shuffler.of(None, 2).passed(many).tobytes() != Shuffler.of(None, 2).passed(many).tobytes()
    clients = KeyedNoise(5).words(Draw(1), 0, 200, 64)
    assert not set(Shuffler.of(5, 2).draws.words(200).tolist()) & set(clients.tolist())


def test_what_cannot_be_shuffled() -> None:
    """A report that needs its client's public coin, a repeated one; and a crowd of one is none."""
    check_shufflable(survey_query(9))
    refuse(
        ("hadamard uses a public coin", lambda: check_shufflable(LocalQuery(Question("yes == 1"), Hadamard(1.0, k=2), Cohort(0, 9)))),
        ("memoised answers of binary-rr", lambda: check_shufflable(LocalQuery(Question("yes == 1"), BinaryRR(1.0), Cohort(0, 9), memo="daily"))),
        ("crowd", lambda: shuffler(1)),
    )


def test_coins_are_drawn_by_whom_they_are_of() -> None:
    """An algorithm that is asked with coins asks for them where there is a public one, and leaves all else as it is."""
    algorithm = Frequency().algorithm(1.0, 9)
    mixed = with_coins(algorithm)
    assert isinstance(algorithm, Nonadaptive)
    assert isinstance(mixed, Nonadaptive)
    assert mixed.queries == (LocalQuery(algorithm.queries[0].query, WithCoin.of(algorithm.queries[0].randomizer), Cohort(0, 9)),)
    assert all(not query.randomizer.uses_coins for query in mixed.queries)
    plain = with_coins(Survey().algorithm(1.0, 9))
    assert isinstance(plain, Nonadaptive)
    assert plain.queries == Survey().algorithm(1.0, 9).queries
