"""Client and coordinator, joined in memory without a bus."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from local_dp.arrays import Words
from local_dp.clients.journal import MemoryStore
from local_dp.clients.role import ClientRole
from local_dp.errors import WireError
from local_dp.noise import Draw, KeyedNoise, SystemNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.memory import Memoised
from local_dp.queries.tables import Category
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.frequencies.unary import OUE
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.server.round import Round
from local_dp.wire import Refusal, Reply, Request, encode
from tests.support.inputs.builders import RUN, SEED, request, role, survey_query, yes_records
from tests.support.wrong import wrong


@dataclass(frozen=True)
class Teller(BinaryRR):  # a plug-in: right, under a name of its own
    name: ClassVar[str] = "teller"


def _refusal(answers: tuple[Reply | Refusal, ...]) -> str:
    assert len(answers) == 1
    assert isinstance(answers[0], Refusal)
    return answers[0].code


@wrong(
    "local_dp.clients.role:ClientRole._plan",
    "self.store.ledger.check(request.run, charges)",
    "pass",
    "a client draws reports that its budget does not allow",
)
def test_a_refused_round_draws_no_word() -> None:
    """A client whose budget does not allow a round has not sampled for it; one that fails while it
    samples says so, and goes on."""

    class Exploding:
        def words(self, which: Draw, start: int, stop: int, bits: int) -> Words:
            raise AssertionError("sampled before the check")

    member = ClientRole("host-0", 0, yes_records(5), Exploding(), MemoryStore(0.5))
    assert _refusal(member.handle(request(survey_query(5)))) == "budget"
    assert (
        _refusal(member.handle(request(survey_query(5, randomizer=BinaryRR(0.5)), number=2)))
        == "failed"
    )
    assert member.store.ledger.max_spent == 0


@wrong(
    "local_dp.clients.role:ClientRole._plan",
    "zip(asks, queries, strict=True)",
    "zip(asks[:1], queries[:1], strict=True)",
    "a client that is asked several things pays for the first",
)
def test_a_round_is_charged_whole_or_not_at_all() -> None:
    """When one cohort of a round is over budget, the clients of the other cohorts are not charged
    for a reply they do not give."""
    member = role(yes_records(6), budget=1.0)
    member.handle(request(survey_query(6, start=3)))
    assert (
        _refusal(member.handle(request(survey_query(3), survey_query(6, start=3), number=2)))
        == "budget"
    )
    assert member.handle(request(survey_query(3), number=3))[0].kind == "reply"


def _asking(**changes: Any) -> Request:
    question = request(survey_query(5))
    return question.model_copy(update={"asks": (question.asks[0].model_copy(update=changes),)})


@wrong(
    "local_dp.clients.role:ClientRole._local_query",
    "ask.source != plug_in_digest(local_query.kinds)",
    "False",
    "a client answers by other code than the server decodes with, and the estimate is wrong",
)
def test_a_client_with_another_text_of_a_plug_in_refuses() -> None:
    """A request says the digest of its plug-in's source; one of another source is refused, before
    anything is charged, and one without a plug-in has no such field."""
    RANDOMIZERS.resolve(Teller)
    member, coin = role(yes_records(5)), request(survey_query(5, randomizer=Teller(1.0)))
    (ask,) = coin.asks
    assert ask.source
    assert b"source" not in encode(request(survey_query(5)))
    assert ask.randomizer == "teller"
    other = coin.model_copy(update={"asks": (ask.model_copy(update={"source": bytes(16)}),)})
    assert (_refusal(member.handle(other)), member.store.ledger.max_spent) == ("other-code", 0)
    assert member.handle(coin)[0].kind == "reply"


REFUSED = {
    "unknown-randomizer": _asking(randomizer="telepathy"),
    "unknown-query": _asking(query="telepathy"),
    "bad-parameters": _asking(randomizer_params={"epsilon": -1.0}),
    "bad-query": _asking(query_params={"text": "income > 3"}),
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_a_client_cannot_run_it_refuses(code: str) -> None:
    member = role(yes_records(5))
    assert (_refusal(member.handle(REFUSED[code])), member.store.ledger.max_spent) == (code, 0)


@wrong(
    "local_dp.clients.role:ClientRole._randomizer",
    "allowed is not None and name not in allowed",
    "False",
    "a client runs what its list does not name",
)
def test_a_client_runs_only_what_its_own_list_allows() -> None:
    member = role(yes_records(5), allowed=frozenset({"grr"}))
    assert _refusal(member.handle(request(survey_query(5)))) == "not-allowed"
    assert member.handle(request(survey_query(5, randomizer=GRR(1.0, k=2))))[0].kind == "reply"


def test_a_client_may_be_asked_several_things_at_once() -> None:
    """Overlapping asks of one request are all answered, each with noise of its own, and their costs
    add up for each client."""
    member = role(yes_records(5), budget=2.0)
    answers = member.handle(request(survey_query(3), survey_query(5, start=2), survey_query(2)))
    replies = [answer for answer in answers if isinstance(answer, Reply)]
    assert [(reply.ask, reply.start, len(reply.reports)) for reply in replies] == [
        (0, 0, 3),
        (1, 2, 3),
        (2, 0, 2),
    ]
    assert member.store.ledger.max_spent == 2.0
    poor = role(yes_records(5), budget=1.9)
    both = request(survey_query(3), survey_query(5, start=2))
    assert _refusal(poor.handle(both)) == "budget"


@wrong(
    "local_dp.noise:Draw.key",
    "f'{purpose} ask {self.ask}'",
    "f'{purpose} ask'",
    "two asks of one round to one client have the same noise",
)
def test_the_asks_of_a_round_have_noise_of_their_own() -> None:
    """The same question asked twice in one round is answered with independent noise: of 4,000
    clients about half of the flips coincide with chance only."""
    member = role(yes_records(4000, share=0.0), budget=2.0)
    answers = member.handle(request(survey_query(4000), survey_query(4000)))
    first, second = (
        np.frombuffer(answer.reports, dtype=np.uint8)
        for answer in answers
        if isinstance(answer, Reply)
    )
    flip = 1 / (1 + math.e)
    # failure probability below 1e-6; the same noise gives flip
    assert abs(float((first & second).mean()) - flip**2) < 5 * math.sqrt(flip**2 / 4000)


@wrong(
    "local_dp.ledger:Ledger._due",
    "not times",
    "True",
    "a memoised answer is charged every time it is repeated",
)
def test_a_memoised_answer_is_given_once() -> None:
    """Under one label a client repeats its report in later rounds, also with the system's entropy,
    and pays once; another question under it is refused."""
    for noise in (KeyedNoise(SEED), SystemNoise()):
        member = ClientRole("host-0", 0, yes_records(300), noise, MemoryStore(1.0))
        weekly = replace(survey_query(300), repeat=Memoised("weekly"))
        replies = [member.handle(request(weekly, number=number)) for number in (1, 2, 3)]
        reports = [reply.reports for (reply,) in replies if isinstance(reply, Reply)]
        assert len(reports) == 3, "a refusal is not a repeated report"
        assert (len(set(reports)), member.store.ledger.max_spent) == (1, 1.0)
        other = replace(survey_query(300, randomizer=BinaryRR(0.5)), repeat=Memoised("weekly"))
        assert _refusal(member.handle(request(other, number=4))) == "equivocation"
        assert _refusal(member.handle(request(survey_query(300), number=5))) == "budget"


def test_a_memoised_answer_under_other_coins_is_refused() -> None:
    """The same label under another key of public coins would tell more of the record: two rows of
    one Hadamard report share their flip."""
    member = role(Records({"x": np.arange(8)}), budget=2.0)
    query = LocalQuery(
        Category("x", tuple("01234567")), Hadamard(1.0, k=8), Cohort(0, 8), Memoised("weekly")
    )
    assert member.handle(request(query))[0].kind == "reply"
    other = request(query, number=2)
    other = other.model_copy(
        update={"asks": (other.asks[0].model_copy(update={"coins": b"another key here"}),)}
    )
    assert _refusal(member.handle(other)) == "equivocation"


@wrong(
    "local_dp.server.round:Round._count",
    "(part.reports[window][before] != reports[before]).any",
    "(part.reports[window][before] != reports[before]).all",
    "a report that changed in one of several bytes counts as the same",
)
def test_one_byte_of_a_report_is_a_conflict() -> None:
    """A repeated report of two bytes that differs in one of them conflicts."""
    round = Round(
        RUN,
        1,
        (LocalQuery(Category("x", tuple("0123456789")), OUE(1.0, k=10), Cohort(0, 2)),),
        SEED,
    )
    reply = Reply(
        run=RUN, round=1, member="m", ask=0, start=0, width=2, reports=b"\x00\x00\x01\x01"
    )
    round.accept(reply)
    round.accept(reply.model_copy(update={"reports": b"\x00\x01\x01\x01"}))
    assert (round.counts.answered, round.counts.conflicting) == (2, 1)


BAD_REPLIES: dict[str, dict[str, Any]] = {
    "another ask": {"ask": 1}, "empty": {"reports": b""},
    "beyond the cohort": {"start": 3, "reports": b"\x00\x00"}, "not asked": {"start": 9},
    "the wrong width": {"width": 2, "reports": b"\x00\x00"}, "half a report": {"width": 2},
    "outside the alphabet": {"reports": b"\x02"},
}  # fmt: skip


@wrong(
    "local_dp.server.round:Round.accept",
    (
        "not bool(randomizer.possible(np.frombuffer(reply.reports, "
        "dtype=randomizer.report_dtype)).all())"
    ),
    (
        "False and (not bool(randomizer.possible(np.frombuffer(reply.reports, "
        "dtype=randomizer.report_dtype)).all()))"
    ),
    "a report that nobody could have made is accepted",
    at="outside the alphabet",
)
@pytest.mark.parametrize("name", BAD_REPLIES)
def test_replies_that_do_not_fit_are_rejected(name: str) -> None:
    round = Round(RUN, 1, (survey_query(4),), SEED)
    data: dict[str, Any] = {
        "run": RUN,
        "round": 1,
        "member": "m",
        "ask": 0,
        "start": 0,
        "width": 1,
        "reports": b"\x00",
    }
    with pytest.raises(WireError):
        round.accept(Reply.model_validate(data | BAD_REPLIES[name]))
    assert (round.counts.answered, round.outstanding) == (0, 4)
