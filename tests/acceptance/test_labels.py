"""P1, labels: old words never meet new records, and reports of any records under a label lose at
most what was charged."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest

from local_dp.arrays import Words
from local_dp.clients.journal import MemoryStore
from local_dp.clients.role import ClientRole, Policy
from local_dp.domains import Vectors
from local_dp.errors import InputError, RefusedError
from local_dp.loss import NANO, Pure, exp_epsilon
from local_dp.noise import Draw, Noise, SystemNoise
from local_dp.oracles.local import asked
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.memory import Memoised, repeat_of
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.records import Records
from local_dp.wire import Ask, Reply, Span
from tests.support.adversaries.hostile import Keeps
from tests.support.golden import Held
from tests.support.inputs.builders import request, survey_query
from tests.support.long import short
from tests.support.runs.stores import LABEL, code
from tests.support.wrong import wrong

MOST = 1 << 16  # clients, one for each choice of words
NAMES = [name for name in RANDOMIZERS.built_in if RANDOMIZERS[name].silence is None]


@dataclass
class Enumerated:
    """Gives each client its own choice of words: in every round the same ones, but of two steps the
    second half, which is of the round."""

    randomizer: Randomizer
    rounds: int

    @property
    def halves(self) -> tuple[int, int]:
        """The bits of a word that are the same in every round, and those that are not."""
        bits = self.randomizer.word_bits
        return (bits // 2, bits // 2) if self.randomizer.has_second_step else (bits, 0)

    @property
    def clients(self) -> int:
        lasting, fresh = self.halves
        return 1 << self.randomizer.words * (lasting + self.rounds * fresh)

    def words(self, which: Draw, start: int, stop: int, bits: int) -> Words:
        each, (lasting, fresh) = self.randomizer.words, self.halves
        client, place = np.divmod(np.arange(start, stop), each)
        word = client >> place * lasting & (1 << lasting) - 1
        if fresh:
            above = each * (lasting + max(0, which.round - 1) * fresh)
            word = word << fresh | client >> above + place * fresh & (1 << fresh) - 1
        return np.asarray(word.astype(np.uint64) << np.uint64(bits - lasting - fresh)).astype(
            f"<u{bits // 8}"
        )


class Holder(ClientRole):
    """Clients who are asked for the value that they hold, by a randomizer that need not travel."""

    randomizer: Randomizer

    def _local_query(self, ask: Ask, span: Span) -> LocalQuery:
        repeat = repeat_of(ask.once, self.randomizer)
        return LocalQuery(Held(self.randomizer.domain), self.randomizer, Cohort(*span), repeat)


def holder(randomizer: Randomizer, clients: int, noise: Noise) -> Holder:
    role = Holder(
        "host",
        0,
        Records({"value": np.zeros(clients, dtype=np.int64)}),
        noise,
        MemoryStore(24.0),
        Policy(kept=1 << 30),
    )
    role.randomizer = randomizer
    return role


def told(role: ClientRole, value: int, number: int, clients: int) -> Words:
    """The reports of a round under the label, a row of bytes each, of clients who all hold this
    value now."""
    role.records = Records({"value": np.full(clients, value)})
    replies = role.handle(
        request(replace(survey_query(clients), repeat=Memoised(LABEL)), number=number)
    )
    assert all(isinstance(reply, Reply) for reply in replies), replies
    return np.concatenate(
        [
            np.frombuffer(reply.reports, np.uint8).reshape(-1, reply.width)
            for reply in replies
            if isinstance(reply, Reply)
        ]
    )


def held(randomizer: Randomizer, many: int) -> list[int]:
    """Some values, as records hold them, the first and the last of the domain among them."""
    domain = randomizer.domain
    if isinstance(domain, Vectors):
        return list(range(min(many, domain.size)))
    return sorted({int(value) for value in domain.some(min(many, domain.size))})


def law(randomizer: Randomizer, history: tuple[int, ...]) -> tuple[Counter[bytes], int]:
    """How many choices of words give each transcript of a client whose record becomes these values,
    and the nano-nats charged."""
    noise = Enumerated(randomizer, len(history))
    role = holder(randomizer, noise.clients, noise)
    rounds = [told(role, value, number, noise.clients) for number, value in enumerate(history, 1)]
    rows = np.ascontiguousarray(np.concatenate(rounds, axis=1))
    kinds, counts = np.unique(rows.view(np.dtype((np.void, rows.shape[1]))), return_counts=True)
    return Counter(dict(zip(map(bytes, kinds), counts.tolist(), strict=True))), round(
        role.store.ledger.max_spent * NANO
    )


def narrow(name: str, k: int, rounds: int) -> Randomizer | None:
    """The randomizer with the widest words of which all choices can be enumerated, if it can be
    built with any."""
    best = None
    for epsilon, bits in product((1.0, 4.0), range(1, 17)):
        try:
            candidate = replace(RANDOMIZERS[name].example(epsilon, k), word_bits=bits)
        except (InputError, RefusedError, ArithmeticError, ValueError):
            continue
        if (
            candidate.word_bits == bits
            and isinstance(candidate.loss, Pure)
            and Enumerated(candidate, rounds).clients <= MOST
            and (best is None or candidate.epsilon == best.epsilon)
        ):
            best = candidate
    return best


@pytest.fixture
def one_coin(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Gives all clients this public coin: a law is of one coin."""
    return lambda coin: monkeypatch.setattr(
        asked, "public_coins", lambda key, start, stop: np.full(stop - start, coin, dtype=np.uint64)
    )


# of which no choice of all words can be enumerated, or which lose a delta
WIDE = (
    "discrete-gaussian",
    "privunit",
    "projunit",
    "with-coin",
)
CASES = [
    (name, k, rounds)
    for name in NAMES
    if name not in WIDE
    for k in (2, 3)
    for rounds in (2, 3)
    if (name, k) != ("memoised-rappor", 3)
]


@wrong(
    "local_dp.oracles.local.asked:Asking._report_outcomes",
    "np.flatnonzero(~memo.known(label, places))",
    "np.arange(len(places))",
    (
        "under a label the record of today is answered, by words that met the record of before, "
        "and nothing is paid"
    ),
    at="binary-rr-2-2",
)
@pytest.mark.parametrize(
    ("name", "k", "rounds"),
    short(
        CASES,
        lambda case: case[1:] == (2, 2) or (case[0] == "memoised-grr" and case[1] == 2),
        several=True,
    ),
)
def test_no_change_of_records_tells_more_than_was_charged(
    name: str, k: int, rounds: int, one_coin: Callable[[int], None]
) -> None:
    """Every randomizer: over all words, the transcript of two or three reports under a label is at
    most e^charged times as likely under one history of records as under another, whenever records
    change."""
    randomizer = narrow(name, k, rounds)
    assert randomizer is not None, "a new randomizer that cannot be enumerated is one of WIDE"
    worst = 1.0
    for number, coin in enumerate(
        (0, 0x9E3779B97F4A7C15, 1, 2, 3, 5) if randomizer.uses_coins else (0,)
    ):
        if number > 1 and worst > 1:
            break  # some coins show nothing of these values
        one_coin(coin)
        laws = [law(randomizer, history) for history in product(held(randomizer, 2), repeat=rounds)]
        bound = exp_epsilon(laws[0][1])
        assert {nano for _, nano in laws} == {randomizer.nano}
        for (one, _), (other, _) in product(laws, laws):
            for transcript, weight in one.items():
                assert weight <= bound * other[transcript], (
                    f"{name}: {transcript.hex()} tells more than was charged"
                )
                worst = max(worst, weight / other[transcript])
    assert worst > 1


@wrong(
    "local_dp.clients.role:ClientRole._check_numbers",
    "query.randomizer.has_second_step and (not is_built_in(query.randomizer))",
    "False",
    "a plug-in keeps under a label what nobody verified, and reports of it for ever",
)
def test_a_plug_in_has_no_second_step_of_its_own() -> None:
    """A loss that was verified is that of a report; a plug-in's own second step would lose more
    under a label, and is refused there alone."""
    role = ClientRole(
        "c", 0, Records({"yes": np.ones(3, dtype=np.uint8)}), SystemNoise(), MemoryStore(24.0)
    )
    role.work.build = lambda name, params: Keeps(1.0)  # type: ignore[method-assign]
    role.work.verify = lambda randomizers: None  # type: ignore[method-assign]
    assert code(role.handle(request(survey_query(3), number=1))) == "reply"
    assert (
        code(role.handle(request(replace(survey_query(3), repeat=Memoised(LABEL)), number=2)))
        == "evidence"
    )
