"""An open round under a virtual clock: who is asked when, who is confirmed when, and when it
ends."""

from local_dp.oracles.local.asked import LocalQuery
from local_dp.server.members import Place, Roster
from local_dp.server.phases import Send
from local_dp.server.poll.open_round import AGAIN, STORED, AnyTurnout, OpenCoordinator
from local_dp.server.progress import Turnout
from local_dp.server.quorum import GRACE
from local_dp.server.round import Closing, Past
from local_dp.wire import Gone, Hello, Receipt, Reply, Request, Roll, topic
from tests.support.inputs.builders import RUN, SEED, survey_query
from tests.support.wrong import wrong

PEOPLE = 50


def _place(start: int) -> Place:
    return Place(f"p{start}", f"g{start}", start, start + 1, start.to_bytes(32))


def _open(
    *places: int, queries: tuple[LocalQuery, ...] = (survey_query(PEOPLE),)
) -> OpenCoordinator:
    coordinator = OpenCoordinator(
        RUN, PEOPLE, SEED, 10.0, AnyTurnout(), Roster(map(_place, places))
    )
    coordinator.open(queries, 0.0)
    return coordinator


def _hello(coordinator: OpenCoordinator, place: int, now: float) -> None:
    hello = Hello(run=RUN, member=f"p{place}", start=place, stop=place + 1, private=True)
    coordinator.receive(topic(RUN, "hello", f"g{place}", f"p{place}"), hello, now)


def _reply(
    coordinator: OpenCoordinator,
    place: int,
    now: float,
    ask: int = 0,
    report: bytes = b"\1",
    round: int = 1,
) -> None:
    reply = Reply(
        run=RUN, round=round, member=f"p{place}", ask=ask, start=place, width=1, reports=report
    )
    coordinator.receive(topic(RUN, "rep", f"g{place}", f"p{place}"), reply, now)


def _groups(sends: list[Send], kind: type) -> list[str]:
    return [send.group for send in sends if isinstance(send.message, kind)]


def test_members_are_asked_as_they_come() -> None:
    """Each is asked at its hello, alone; nobody else is asked or called, however long places stay
    empty."""
    coordinator = _open(0, 1, 2)
    assert coordinator.due(0.0) == []
    for place, now in ((1, 3.0), (0, 40.0)):
        _hello(coordinator, place, now)
        assert coordinator.wake(now) <= now
        (request,) = (send for send in coordinator.due(now) if isinstance(send.message, Request))
        assert isinstance(request.message, Request)
        assert (request.group, request.message.missing) == (f"g{place}", ((place, place + 1),))
        _reply(coordinator, place, now)
    for now in range(41, 100):
        assert _groups(coordinator.due(now), Request) == _groups(coordinator.due(now), Roll) == []
    assert not coordinator.phase.is_settled(1e6)
    assert coordinator.rejected == 0


def test_who_owes_is_asked_again_at_hello_and_slowly() -> None:
    """A person who thinks gets the request again every AGAIN seconds; one who comes back gets it at
    once; one who has answered does not."""
    coordinator = _open(0)
    _hello(coordinator, 0, 1.0)
    assert _groups(coordinator.due(1.0), Request) == ["g0"]
    assert _groups(coordinator.due(AGAIN - 0.1), Request) == []
    assert _groups(coordinator.due(AGAIN), Request) == ["g0"]
    coordinator.receive(topic(RUN, "gone", "g0", "p0"), Gone(run=RUN, member="p0"), 6.0)
    _hello(coordinator, 0, 7.0)
    assert _groups(coordinator.due(7.0), Request) == ["g0"]
    _reply(coordinator, 0, 8.0)
    _hello(coordinator, 0, 9.0)
    assert _groups(coordinator.due(9.0), Request) == []
    assert _groups(coordinator.due(30.0), Request) == []


@wrong(
    "local_dp.server.poll.open_round:OpenRound._greet",
    "not member.owes and member.name in self.round.sums",
    "member.name in self.round.sums",
    "a member is confirmed before its last answer has come",
)
def test_stored_reports_are_confirmed() -> None:
    """A receipt follows when all answers of a member are there, and again at each hello or
    repetition, since the first may be lost; none before."""
    coordinator = _open(0, 1, queries=(survey_query(PEOPLE), survey_query(PEOPLE)))
    for place in (0, 1):
        _hello(coordinator, place, 0.0)
    coordinator.due(0.0)
    _reply(coordinator, 0, 1.0)
    assert _groups(coordinator.due(2.0), Receipt) == []
    _reply(coordinator, 0, 2.0, ask=1)
    assert _groups(coordinator.due(2.0), Receipt) == []
    assert coordinator.wake(2.0) == 2.0 + STORED
    (receipt,) = (send.message for send in coordinator.due(2.0 + STORED))
    round = coordinator.round(1)
    assert round is not None
    assert isinstance(receipt, Receipt)
    assert receipt.accepted == ((0, 1, round.sums["p0"].checksum),)
    assert _groups(coordinator.due(3.0), Receipt) == []
    _hello(coordinator, 0, 4.0)
    assert _groups(coordinator.due(4.0), Receipt) == ["g0"]
    _reply(coordinator, 0, 4.5)
    assert _groups(coordinator.due(4.6), Receipt) == ["g0"]
    assert (round.counts.answered, round.counts.duplicate, round.counts.conflicting) == (2, 1, 0)


def test_places_are_added_while_it_is_open() -> None:
    """A key that joins later is heard at once, also after a flood has narrowed the topics; a hello
    for another's place is refused."""
    coordinator = _open(0)
    roster = coordinator.members.roster
    assert roster is not None
    coordinator.listening.narrow = True
    first = coordinator.listening.change(0.0)
    assert first is not None
    assert len(first) == 3
    coordinator.listening.stands(0.0)
    assert coordinator.listening.change(0.0) is None
    roster.add(_place(1))
    assert coordinator.listening.wake(1.0) == 1.0
    assert len(coordinator.listening.change(1.0) or ()) == 6
    coordinator.receive(
        topic(RUN, "hello", "g1", "p1"),
        Hello(run=RUN, member="p1", start=0, stop=1, private=True),
        1.0,
    )
    assert coordinator.rejected == 1
    _hello(coordinator, 1, 1.0)
    assert len(coordinator.members) == 1


def test_its_end() -> None:
    """It ends when it is closed, with any turnout; with a limit also then, or when all who are
    there have answered, but for those who went."""
    coordinator = _open(0)
    coordinator.shut_open()
    assert coordinator.phase.is_settled(0.0)
    (tally,) = coordinator.close(1.0)
    assert (tally.n, coordinator.counts.answered) == (0, 0)
    brief = _open(0, 9)
    for place in (0, 9):
        _hello(brief, place, 1.0)
    brief.due(1.0)
    brief.limit = 20.0
    _reply(brief, 0, 1.0)
    _reply(brief, 9, 1.0)
    brief.close(1.0)
    brief.open((survey_query(PEOPLE),), 1.0)
    brief.due(1.0)
    assert not brief.phase.is_settled(20.9)
    assert brief.phase.is_settled(21.0)
    _reply(brief, 0, 2.0, round=2)
    assert not brief.phase.is_settled(2.0)
    brief.receive(topic(RUN, "gone", "g9", "p9"), Gone(run=RUN, member="p9"), 3.0)
    assert not brief.phase.is_settled(3.0 + GRACE - 0.1)
    assert brief.phase.is_settled(3.0 + GRACE)


def test_those_who_answered_are_awaited_after_a_restart() -> None:
    """A round with a limit, opened by a server that was started again, does not end before the
    people of the first round are back."""
    coordinator = _open(0)
    queries = (survey_query(PEOPLE),)
    request = coordinator.round(1)
    assert request is not None
    reply = Reply(run=RUN, round=1, member="p0", ask=0, start=0, width=1, reports=b"\1")
    past = Past(request.request_digest(), (reply,), Closing(Turnout(asked=PEOPLE, answered=1), 1.0))
    second = OpenCoordinator(RUN, PEOPLE, SEED, 10.0, AnyTurnout(), Roster([_place(0)]))
    second.repeat(queries, past)
    second.limit = 20.0
    second.open(queries, 0.0)
    assert not second.phase.is_settled(19.0)
    _hello(second, 0, 1.0)
    second.due(1.0)
    assert not second.phase.is_settled(1.0)
    _reply(second, 0, 2.0, round=2)
    assert second.phase.is_settled(2.0)
