"""Members that come and go, in virtual time: who is called, how long a lost one is waited for, how
fast many are asked."""

import math
from collections.abc import Iterator

import pytest
from nacl.bindings import crypto_sign_open

from local_dp.bus.interface import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.clients.member import HOSTS, filters, serve
from local_dp.errors import ForgedError, QuorumError
from local_dp.sealing import SIGNATURE, Party, new_key, public
from local_dp.server.coordinator import Coordinator
from local_dp.server.pace import ASK_AGAIN, LATEST, LEAST_DEADLINE, MOST, WINDOW, Pace
from local_dp.server.quorum import GRACE, Terms
from local_dp.server.rolls import Rolls, for_everybody, gaps, pause
from local_dp.wire import CLIENT, MAX_MISSING, Gone, Hello, Roll, decode, encode, topic
from tests.support.inputs.builders import (
    RUN,
    SEED,
    arrive,
    reply_of,
    role,
    survey_query,
    yes_records,
)
from tests.support.runs.light import play_light
from tests.support.runs.virtual_time import run_virtually
from tests.support.wrong import wrong


def _go(coordinator: Coordinator, name: str, now: float) -> None:
    coordinator.receive(topic(RUN, "gone", HOSTS, name), Gone(run=RUN, member=name), now)


def _calls(run: str, seconds: float) -> Iterator[tuple[float, list[Roll]]]:
    """The calls of a run that misses clients for so long."""
    calls, missing = Rolls(run), [(3, 4), (7, 9)]
    while (now := calls.wake()) <= seconds:
        yield now, calls.due(missing, now)


@wrong(
    "local_dp.server.rolls:pause",
    "min(SOON * 2.0 ** min(calls, 60), SELDOM)",
    "SOON",
    "the roll is called every two seconds as long as somebody is missing",
)
@wrong(
    "local_dp.server.rolls:Rolls.due",
    "for_everybody(self.calls)",
    "True",
    "while one member is missing all others say hello again and again",
)
def test_a_roll_names_the_missing_and_is_called_seldom() -> None:
    """In a minute there are at most five calls; each names the missing clients, and only the 4th
    nobody. Two runs on a broker call at different times."""
    for run in map(str, range(100)):
        calls = list(_calls(run, 60.0))
        assert 4 <= len(calls) <= 6
        for call, (_, sends) in enumerate(calls, 1):
            assert [send.missing for send in sends] == [() if call == 4 else ((3, 4), (7, 9))]
    assert len({now for run in map(str, range(100)) for now, _ in _calls(run, 3.0)}) == 100
    assert list(_calls("one", 500.0)) == list(_calls("one", 500.0))
    assert [call for call in range(1, 300) if for_everybody(call)] == [4, 16, 64, 256]
    for calls_before in range(12):
        usual = min(2.0 * 2**calls_before, 16.0)
        assert 0.75 * usual <= pause("run", calls_before) <= 1.25 * usual


def test_many_gaps_are_several_rolls() -> None:
    """No message has more spans than one may have, and none is left out; where nobody is missing
    nobody is called."""
    spans = gaps([(2 * at, 2 * at + 1) for at in range(5000)], 10_000)
    assert spans == [(2 * at + 1, 2 * at + 2) for at in range(5000)]
    sends = Rolls(RUN).due(spans, 10.0)
    assert [len(send.missing) for send in sends] == [MAX_MISSING, 5000 - MAX_MISSING]
    assert [span for send in sends for span in send.missing] == spans
    assert Rolls(RUN).due([], 10.0) == []
    assert gaps([], 5) == [(0, 5)]


def test_a_roll_without_names_is_that_of_older_members() -> None:
    """Its bytes have no further field, so that members of older versions read it; and a member
    answers only a roll for it."""
    assert encode(Roll(run="r")) == b"\x82\xa3run\xa1r\xa4kind\xa4roll"
    roll = Roll(run="r", missing=((3, 5), (9, 10)))
    assert decode(encode(roll), CLIENT) == roll
    assert [start for start in range(12) if roll.calls(start, start + 1)] == [3, 4, 9]
    assert roll.calls(0, 100)
    assert Roll(run="r").calls(0, 1)


@wrong(
    "local_dp.clients.member:_handle",
    "message.calls(role.start, role.stop)",
    "True",
    "a member says hello at a roll for others",
)
def test_a_member_is_silent_at_a_roll_for_others() -> None:
    """A member says hello once when it joins, and again only where a roll is for everybody or for
    it."""
    broker = MemoryBroker()
    bus, server = broker.join(filters(RUN, HOSTS)), broker.join([topic(RUN, "hello", "+", "+")])
    bus.idle = 5.0
    for roll in (
        Roll(run=RUN, missing=((0, 4), (6, 9))),
        Roll(run=RUN, missing=((4, 5),)),
        Roll(run=RUN),
    ):
        broker.route(Delivery(topic(RUN, "req", "all"), encode(roll)))
    assert not run_virtually(serve(role(yes_records(2), 4), bus, RUN, HOSTS)), (
        "it hears no end, and leaves after its idle limit"
    )
    assert server.queue.qsize() == 1 + 3


@pytest.mark.parametrize(
    ("members", "trip", "loss"),
    [
        (1000, 0.1, 0.0),
        *(pytest.param(10_000, trip, 0.05, marks=pytest.mark.long) for trip in (0.1, 2.0)),
    ],
)
def test_one_missing_member_of_many_costs_the_others_nothing(
    members: int, trip: float, loss: float
) -> None:
    """All but one are here, near or far, also where a twentieth of the messages is lost: of no
    member the server hears a fourth hello, and the run goes on within two round trips after the
    patience ends."""
    result = play_light(members, absent=[members // 2], trip=trip, loss=loss)
    assert (result.answers, result.wait) == (members - 1, 60.0)
    assert max((result.arrivals if loss else result.hellos).values()) <= 3
    assert result.hellos.total() <= 3 * (members - 1)
    assert result.first <= 2 * trip + 1e-9
    assert loss or result.took <= 2 * trip + 1e-9


@wrong(
    "local_dp.server.pace:Pace.window",
    "max(WINDOW, min(MOST, math.ceil(RATE * self.trip)))",
    "WINDOW",
    "far members are asked 750 in a round trip",
    at="0.0",
)
@pytest.mark.parametrize("loss", [0.0, pytest.param(0.05, marks=pytest.mark.long)])
def test_three_thousand_members_far_away_answer(loss: float) -> None:
    """3,000 members at a round trip of 2 seconds: all answer, in two round trips, as the window
    widens with the first reply; or by the deadline, with loss."""
    result = play_light(3000, trip=2.0, loss=loss)
    assert result.answers == 3000
    assert loss or result.took <= 2 * 2.0 + 1e-9


@wrong(
    "local_dp.server.pace:Pace.deadline",
    "max(LEAST_DEADLINE, tries + _SLACK * work)",
    "LEAST_DEADLINE or tries + _SLACK * work",
    "a round of 100,000 members ends before they can have answered",
)
@wrong(
    "local_dp.server.pace:Pace.heard",
    "min(self._least, seconds)",
    "seconds",
    "a server that is late with reading asks more members at a time",
)
def test_the_window_and_the_deadline_follow_the_round_trip() -> None:
    """Near members are asked 750 at a time; far ones as many as a server reads in a round trip. The
    least round trip counts: a busy server widens nothing."""
    pace = Pace()
    assert (pace.window, pace.again, pace.deadline(10)) == (WINDOW, ASK_AGAIN, LEAST_DEADLINE)
    for seconds, window in ((60.0, MOST), (2.0, 15_000), (0.2, 1500), (0.3, 1500), (0.01, WINDOW)):
        pace.heard(seconds)
        assert pace.window == window
    far = Pace()
    far.heard(2.0)
    assert far.again == 4.0
    assert far.deadline(3000) > 6 * (4.0 + 2.0), "six tries, where messages are lost"
    near, of_all = Pace(), 100_000
    near.heard(0.2)
    assert near.deadline(of_all) > 3 * of_all * 0.2 / near.window, (
        "three times what the round trips take"
    )
    slow = Pace()
    slow.heard(20.0)
    assert slow.again == LATEST
    assert slow.deadline(1) > 6 * (LATEST + 20.0)


def test_a_given_deadline_holds() -> None:
    """A deadline that is given is the round's, and one that is not becomes longer when the first
    reply shows a long way."""
    for terms, ends in ((Terms(), 67.5), (Terms(deadline=10.0), 10.0)):
        coordinator = Coordinator(RUN, 2, SEED, 1.0, terms)
        coordinator.open((survey_query(2),), 0.0)
        coordinator.pace.heard(6.25)
        progress = coordinator.progress(0.0)
        assert progress is not None
        assert progress.seconds_left == ends  # type: ignore[union-attr]


@wrong(
    "local_dp.server.quorum:Terms.idle_from",
    "GRACE if math.isinf(self.grace) and gone_since + GRACE <= began else self.grace",
    "GRACE if math.isinf(self.grace) and gone_since + GRACE <= began else GRACE",
    "a host that is cut off for a minute is given up after two seconds",
    at="60.0-64.0",
)
@pytest.mark.parametrize(("grace", "until"), [(GRACE, 6.0), (60.0, 64.0), (math.inf, 150.0)])
def test_a_lost_member_is_waited_for(grace: float, until: float) -> None:
    """A member whose connection falls 4 seconds after the beginning is waited for as long as the
    grace, by default of a server to the end of the round."""
    coordinator = Coordinator(RUN, 20, SEED, 1.0, Terms(150.0, 0.5, grace))
    arrive(coordinator, "host", 0, 20, 0.0)
    coordinator.open((survey_query(20),), 0.0)
    coordinator.due(0.0)
    _go(coordinator, "host", 4.0)
    assert not coordinator.phase.is_settled(until - 0.1)
    assert coordinator.phase.is_settled(until)
    arrive(coordinator, "host", 0, 20, 5.0)
    assert not coordinator.phase.is_settled(149.9)


def test_a_host_that_is_away_for_a_minute_is_counted() -> None:
    """A host is cut off for 60 seconds in a round of 150: with a server's default grace its reports
    count, with two seconds the round is lost."""
    for grace, counts in ((math.inf, True), (GRACE, False)):
        coordinator = Coordinator(RUN, 20, SEED, 1.0, Terms(150.0, 0.9, grace))
        arrive(coordinator, "host", 0, 20, 0.0)
        coordinator.open((survey_query(20),), 0.0)
        now, over = 0.0, False
        while now < 70.0 and not over:
            coordinator.due(now)
            if now == 10.0:
                _go(coordinator, "host", now)
            if now == 70.0 - 0.5:
                arrive(coordinator, "host", 0, 20, now)
                coordinator.receive(
                    topic(RUN, "rep", HOSTS, "host"), reply_of(1, "host", 0, bytes(20)), now
                )
            now, over = now + 0.5, coordinator.phase.is_settled(now)
        assert coordinator.counts.answered == 20 * counts
        if counts:
            assert coordinator.close(now)[0].n == 20
        else:
            with pytest.raises(QuorumError):
                coordinator.close(now)


@wrong(
    "local_dp.server.quorum:Terms.idle_from",
    "math.isinf(self.grace) and gone_since + GRACE <= began",
    "False",
    "each round lasts to its deadline once a member has gone",
)
def test_a_member_that_stays_away_does_not_hold_up_later_rounds() -> None:
    """With the longest grace, the rounds after the one in which a member went do not wait for it,
    and one that it left just now does."""
    for departure, over in ((90.0, True), (99.0, False)):
        coordinator = Coordinator(RUN, 20, SEED, 1.0, Terms(150.0, 0.5, math.inf))
        arrive(coordinator, "host", 0, 20, 0.0)
        _go(coordinator, "host", departure)
        coordinator.open((survey_query(20),), 100.0)
        coordinator.due(100.0)
        assert coordinator.phase.is_settled(100.0) == over


@wrong(
    "local_dp.sealing:Party.open",
    "if digest:\n        self._hellos[topic] = digest",
    "pass",
    "no hello is ever remembered",
)
@wrong(
    "local_dp.sealing:Party.open",
    "digest and self._hellos.get(topic) == digest",
    "False",
    "a signature is checked once more at each roll",
)
@wrong(
    "local_dp.sealing:Party.open",
    "self._hellos.get(topic) == digest",
    "topic in self._hellos",
    "whoever writes under a member's topic speaks for it once it has said hello",
)
def test_a_repeated_hello_is_verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes that were verified are not verified again under their topic; any other bytes are,
    under any topic, and a forged hello is refused."""
    checks: list[bytes] = []

    def count(signed: bytes, key: bytes) -> bytes:
        checks.append(signed)
        return bytes(crypto_sign_open(signed, key))

    monkeypatch.setattr("local_dp.sealing.crypto_sign_open", count)
    server = new_key()
    own = new_key()
    where = topic(RUN, "hello", "g0", "a")
    other = topic(RUN, "hello", "g0", "b")
    opens = Party.server(RUN, server, lambda topic: public(own))
    member = Party.member(RUN, public(server), own)
    hello = member.seal(where, encode(Hello(run=RUN, member="a", start=0, stop=1, private=True)))
    for _ in range(10):
        assert opens.open(where, hello) == hello[SIGNATURE:]
    assert len(checks) == 1
    changed_end, unsigned = hello[:-1] + b"\xc2", bytes(SIGNATURE) + hello[SIGNATURE:]
    for topic_of, packet in ((where, changed_end), (where, unsigned), (other, hello)):
        with pytest.raises(ForgedError):
            opens.open(topic_of, packet)
    assert opens.open(where, hello) == hello[SIGNATURE:]
    assert len(checks) == 4, "a forged one does not take the place of the one that was accepted"
    reply = topic(RUN, "rep", "g0", "a")
    for _ in range(2):
        opens.open(reply, member.seal(reply, b"1"))
    assert len(checks) == 6, "nothing is kept of other messages"
