"""The coordinator under a virtual clock: it counts right, paces, asks again and ends in time; and
its work is in proportion to the clients."""

import socket
import subprocess
from pathlib import Path

import pytest

from local_dp.bus.children import environment, python
from local_dp.clients.fleet import LEAN
from local_dp.errors import InputError, QuorumError, RefusedError
from local_dp.server import phases
from local_dp.server.coordinator import Coordinator
from local_dp.server.pace import ASK_AGAIN
from local_dp.server.progress import RoundProgress
from local_dp.server.quorum import Terms
from local_dp.server.rolls import pause
from local_dp.wire import Gone, Refusal, Reply, Request, Roll, topic
from tests.support.inputs.builders import RUN, SEED, arrive, reply_of, survey_query
from tests.support.wrong import wrong


def _send(
    coordinator: Coordinator, message: Reply | Refusal, now: float, group: str = "hosts"
) -> None:
    coordinator.receive(topic(RUN, "rep", group, message.member), message, now)


def _refusal(member: str, start: int, stop: int, code: str, text: str) -> Refusal:
    return Refusal(run=RUN, round=1, member=member, start=start, stop=stop, code=code, text=text)


def _closed(terms: Terms, *answers: tuple[int, int], refusing: range = range(0)) -> Coordinator:
    """A round of two cohorts of ten, answered for these spans; those of `refusing` refuse. It is
    open still."""
    coordinator = Coordinator(RUN, 20, SEED, 1.0, terms)
    arrive(coordinator, "host", 0, 20)
    coordinator.open((survey_query(10), survey_query(20, 10)), 0.0)
    coordinator.due(0.0)
    for start, stop in answers:
        _send(coordinator, reply_of(1, "host", start, bytes(stop - start), start // 10), 0.5)
    if refusing:
        refusal = _refusal("host", refusing.start, refusing.stop, "budget", "spent")
        _send(coordinator, refusal, 0.5)
    assert coordinator.rejected == 0
    return coordinator


@wrong(
    "local_dp.server.quorum:Terms.judge",
    "part.answers < self.quorum * len(part.query.cohort)",
    "False",
    "a round that too few answered is estimated",
)
def test_every_cohort_needs_its_quorum() -> None:
    """A cohort without a reply is never an estimate, however many others answered: the error names
    the cohort and its counts."""
    coordinator = _closed(Terms(10.0, 0.5), (0, 10))
    with pytest.raises(
        QuorumError,
        match=(
            r"0 of 10 replies to ask 1 from the clients 10 to 19, below the quorum of 0\.5; 1 of "
            r"2 cohorts"
        ),
    ):
        coordinator.close(10.0)
    assert (
        coordinator.counts.answered,
        coordinator.counts.missing,
        coordinator.rounds,
        coordinator.seconds,
    ) == (10, 10, [], [])
    with pytest.raises(QuorumError, match="from the clients 10 to 19"):
        _closed(Terms(10.0, 0.01), (0, 10)).close(10.0)  # even the lowest quorum asks for one reply
    tallies = _closed(Terms(10.0, 0.5), (0, 10), (12, 17)).close(10.0)
    assert [tally.n for tally in tallies] == [10, 5]


def test_a_cohort_that_refused_says_so() -> None:
    """Where refusals leave a cohort under its quorum, the error is theirs: their code, how many of
    which clients, and the reason."""
    coordinator = _closed(Terms(10.0, 0.9), (10, 20), refusing=range(4))
    with pytest.raises(
        RefusedError,
        match=(
            "4 of 10 clients refused round 1 to ask 0 from the clients 0 to 9; 1 of 2 cohorts "
            "fell short: spent"
        ),
    ) as error:
        coordinator.close(10.0)
    assert error.value.code == "budget"
    assert (
        coordinator.counts.answered,
        coordinator.counts.refused,
        coordinator.counts.missing,
    ) == (10, 4, 6)
    with pytest.raises(
        RefusedError,
        match="4 of 10 clients refused round 1 to ask 1 from the clients 10 to 19; 2 of 2",
    ):
        # the cohort before it fell short in silence
        _closed(Terms(10.0, 0.9), refusing=range(10, 14)).close(10.0)
    with pytest.raises(QuorumError, match="3 of 10 replies to ask 0 from the clients 0 to 9"):
        # who answered and refused has answered
        _closed(Terms(10.0, 0.9), (0, 3), (10, 20), refusing=range(3)).close(10.0)


def test_the_reason_given_is_that_of_the_cohort_that_fell_short() -> None:
    """Cohorts refuse for reasons of their own: the error has the code and the text of the one it
    names, of those who refused instead of answering."""
    coordinator = _closed(Terms(10.0, 0.5), (1, 10), (10, 11), refusing=range(1))
    for start, stop, code in ((10, 11, "evidence"), (11, 20, "not-allowed")):
        _send(coordinator, _refusal("host", start, stop, code, f"because of {code}"), 0.6)
    with pytest.raises(
        RefusedError,
        match=(
            r"9 of 10 clients refused round 1 to ask 1 from .*; 1 of 2 cohorts fell short: "
            r"because of not-allowed"
        ),
    ):
        coordinator.close(10.0)


@pytest.mark.parametrize(
    ("deadline", "quorum"),
    [(0.0, 0.5), (86_401.0, 0.5), (float("nan"), 0.5), (1.0, 0.0), (1.0, 1.1), (1.0, float("nan"))],
)
def test_terms_on_which_no_round_can_end(deadline: float, quorum: float) -> None:
    with pytest.raises(InputError, match="give"):
        Terms(deadline, quorum)


def test_a_question_for_nobody_is_refused() -> None:
    coordinator = Coordinator(RUN, 5, SEED, 1.0, Terms())
    with pytest.raises(InputError, match="asks client 5"):
        coordinator.open((survey_query(6),), 0.0)
    coordinator.open((survey_query(5),), 0.0)
    with pytest.raises(QuorumError):
        coordinator.close(1.0)
    with pytest.raises(RefusedError, match="budget"):
        coordinator.open((survey_query(5),), 2.0)
    assert coordinator.counts.asked == 5


def of_four_groups() -> Coordinator:
    """In a round with 1,000 members."""
    coordinator = Coordinator(RUN, 1000, SEED, 1.0, Terms())
    for index in range(1000):
        arrive(coordinator, f"m{index}", index, index + 1, 0.0, f"g{index // 250}")
    coordinator.open((survey_query(1000),), 0.0)
    return coordinator


def test_a_thousand_members_wake_it_seldom() -> None:
    """A reply stirs the coordinator only when there is something to do: of 1,000 replies, only
    those that make room for a group, and the last."""
    coordinator = of_four_groups()
    requests = [send.message for send in coordinator.due(0.0)]
    assert [getattr(request, "missing", None) for request in requests] == [(), (), ()], (
        "750 replies may be outstanding"
    )
    wakes = 0
    for index in range(1000):
        reply = reply_of(1, f"m{index}", index, b"\x01")
        _send(coordinator, reply, 0.1, f"g{index // 250}")
        if coordinator.wake(0.1) <= 0.1:
            wakes += 1
            coordinator.due(0.1)
    assert wakes == 2
    assert coordinator.phase.is_settled(0.1)
    assert coordinator.close(0.1)[0].n == 1000


def test_a_member_that_joins_late_is_asked_alone() -> None:
    """A missing member is called while the round is open, and asked as soon as it says hello,
    without its group."""
    coordinator = Coordinator(RUN, 20, SEED, 1.0, Terms(10.0, 0.5))
    arrive(coordinator, "first", 0, 10)
    coordinator.open((survey_query(20),), 0.0)
    assert [send.message.kind for send in coordinator.due(0.0)] == ["request"]
    assert coordinator.wake(0.0) == ASK_AGAIN
    call = pause(RUN, 0)
    roll, again = (send.message for send in coordinator.due(call))
    assert (roll, again.kind) == (Roll(run=RUN, missing=((10, 20),)), "request")
    arrive(coordinator, "late", 10, 20, call)
    assert coordinator.wake(call) == call
    (send,) = coordinator.due(call)
    assert isinstance(send.message, Request)
    assert (send.group, send.message.missing) == ("hosts", ((10, 20),))


def test_the_wait_for_members() -> None:
    """The roll is called for the missing after a pause without a newcomer; the wait ends when all
    are present, or in time, and is lost only if nobody came."""
    coordinator = Coordinator(RUN, 2, SEED, 1.0, Terms())
    coordinator.gather(10.0, 0.0)
    call, later = pause(RUN, 0), pause(RUN, 1)
    assert [coordinator.due(moment) for moment in (0.0, call - 0.1)] == [[], []]
    assert [send.message for send in coordinator.due(call)] == [Roll(run=RUN, missing=((0, 2),))]
    arrive(coordinator, "first", 0, 1, call + 0.1)
    assert (coordinator.due(call + later), coordinator.wake(call + later)) == (
        [],
        min(10.0, call + 0.1 + later),
    )
    assert [coordinator.phase.is_settled(moment) for moment in (9.9, 10.0)] == [False, True]
    arrive(coordinator, "second", 1, 2, 2.0)
    assert coordinator.phase.is_settled(2.0)
    coordinator.gathered()
    empty = Coordinator(RUN, 2, SEED, 1.0, Terms())
    empty.gather(3.0, 0.0)
    with pytest.raises(QuorumError, match="none of the 2 clients joined"):
        empty.gathered()
    arrive(empty, "far", 0, 30)
    empty.gather(3.0, 0.0)
    empty.forgeries = 4
    with pytest.raises(
        QuorumError,
        match=(
            r"rejected: 4 without a signature .*, 1 \(the last one: member far claims the clients "
            r"0\.\.30, which are not free\)"
        ),
    ):
        empty.gathered()


def test_only_news_postpones_asking_again() -> None:
    """While new reports come nobody is asked again; a repeated one does not keep the coordinator
    from asking."""
    coordinator = _closed(Terms(10.0, 0.5), (0, 5))
    assert coordinator.wake(0.5) == 0.5 + ASK_AGAIN
    _send(coordinator, reply_of(1, "host", 0, bytes(5)), 1.0)
    assert coordinator.due(1.4) == []
    (send,) = coordinator.due(1.5)
    assert isinstance(send.message, Request)
    assert send.message.missing == ((5, 20),)
    assert coordinator.due(1.6) == []


def test_the_progress_of_a_round_tells_who_is_lost_and_what_came() -> None:
    """While a round is open its progress counts what came, what was refused, what gone members owe
    and what was spent; and it gives the tally."""
    coordinator = Coordinator(RUN, 30, SEED, 1.0, Terms(10.0, 0.3))
    for start, name in ((0, "a"), (10, "b"), (20, "c")):
        arrive(coordinator, name, start, start + 10)
    coordinator.open((survey_query(30),), 0.0)
    coordinator.due(0.0)
    _send(coordinator, reply_of(1, "a", 0, bytes([1, 1, 1, 0])), 0.1)
    _send(coordinator, reply_of(1, "b", 10, bytes([1, 0, 0])), 0.1)
    coordinator.receive(topic(RUN, "gone", "hosts", "b"), Gone(run=RUN, member="b"), 0.2)
    _send(coordinator, _refusal("c", 20, 30, "budget", "spent"), 0.2)
    now = coordinator.progress(0.3)
    assert isinstance(now, RoundProgress)
    assert now.interim is not None
    assert (now.answered, now.refused, now.lost, now.asked, now.spent) == (7, 10, 7, 30, 1.0)
    (tally,) = now.interim.tallies()
    assert (tally.n, int(tally.counts.ravel()[-1])) == (7, 4)


def test_silent_groups_hold_up_the_others_for_a_while() -> None:
    """The fourth group of 250 is asked when nobody of the first three has answered for STALE
    seconds."""
    coordinator = of_four_groups()
    coordinator.due(0.0)
    for now, groups in ((phases.STALE - 0.1, {"g0", "g1", "g2"}), (phases.STALE, {"g3"})):
        assert {send.group for send in coordinator.due(now)} == groups


def test_a_helper_whose_launcher_is_gone_forks_nobody(tmp_path: Path) -> None:
    """Its standard input closed while it got ready: it ends, and no member of 40 has called."""
    path = str(tmp_path / "launcher")
    with socket.socket(socket.AF_UNIX) as launcher:
        launcher.bind(path)
        launcher.listen(64)
        launcher.setblocking(False)
        words = python("local_dp.clients.helper", "40", path, "90")
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, env=environment(**LEAN), timeout=60, check=False
        )
        assert done.returncode == 0
        with pytest.raises(BlockingIOError):
            launcher.accept()
