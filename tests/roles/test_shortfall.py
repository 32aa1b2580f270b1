"""A round that falls short, sans I/O: its one line has each cause with its number and first
members, and advises what fits."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from local_dp.errors import QuorumError, RefusedError
from local_dp.server.coordinator import Coordinator
from local_dp.server.quorum import CAUSES, Terms
from local_dp.wire import TEXTS, Absent, Gone, Refusal, Roll, topic
from tests.support.inputs.builders import RUN, SEED, arrive, reply_of, survey_query
from tests.support.wrong import wrong

DEADLINE, HALF = 10.0, 5.0


@dataclass
class Short:
    """A round of three clients, of which the first one answers."""

    coordinator: Coordinator = field(
        default_factory=lambda: Coordinator(RUN, 3, SEED, 1.0, Terms(DEADLINE))
    )

    def begin(self, *members: int) -> None:
        for member in members:
            arrive(self.coordinator, f"m{member}", member, member + 1)
        self.coordinator.open((survey_query(3),), 0.0)
        self.coordinator.due(0.0)
        self.coordinator.receive(
            topic(RUN, "rep", "hosts", "m0"), reply_of(1, "m0", 0, b"\x01"), 0.5
        )

    def go(self, member: int, now: float = 1.0) -> None:
        self.coordinator.receive(
            topic(RUN, "gone", "hosts", f"m{member}"), Gone(run=RUN, member=f"m{member}"), now
        )

    def back(self, member: int, now: float = 2.0) -> None:
        arrive(self.coordinator, f"m{member}", member, member + 1, now)

    def rejoin(self, times: int) -> None:
        for at in range(times):
            self.coordinator.connected()
            self.coordinator.due(1.0 + at / 10)

    def line(self) -> str:
        with pytest.raises(QuorumError) as short:
            self.coordinator.close(DEADLINE)
        return str(short.value)


def _absent(short: Short) -> None:
    short.begin(0)


def _leave(short: Short) -> None:
    short.begin(0, 1, 2)
    for member in (1, 2):
        short.go(member)


def _kill(short: Short) -> None:
    _leave(short)
    short.coordinator.ending_of = lambda name: "killed by SIGKILL"


def _cut(short: Short) -> None:
    _leave(short)
    for member in (1, 2):
        short.back(member)
    short.go(2, 3.0)


def _restart(short: Short) -> None:
    _cut(short)
    short.rejoin(1)


def _silent(short: Short) -> None:
    short.begin(0, 1, 2)
    short.coordinator.due(HALF)


def _reachable(short: Short) -> None:
    _silent(short)
    for member in (1, 2):
        short.back(member, HALF + 0.1)


def _cut_server(short: Short) -> None:
    _reachable(short)
    short.rejoin(2)


def _away(short: Short) -> None:
    _cut_server(short)
    short.coordinator.trouble = "cannot reach the broker; start it"


LONGER = "give it a longer --deadline"
SIZE = "max_packet_size and message_size_limit"


@wrong(
    "local_dp.server.coordinator:Coordinator._cause",
    "'unheard' if member.reachable else 'silent'",
    "'silent'",
    "a reply that the broker drops for its size is taken for a slow member",
    at="_reachable-2 present, but no reply arrives (m1, m2)-max_packet_size and message_size_limit",
)
@wrong(
    "local_dp.server.coordinator:Coordinator._cause",
    "member.returns > rejoins",
    "member.returns",
    "a broker that was started again is taken for one that refuses packets",
    at="_restart-1 left (m2), 1 present but silent (m1)-give it a longer --deadline",
)
@wrong(
    "local_dp.server.coordinator:Coordinator._cause",
    "member.returns > rejoins",
    "False",
    "a member that the broker cuts again and again is to be started again",
    at="_cut-2 cut off by the broker (m1, m2)-max_packet_size and message_size_limit",
)
@pytest.mark.parametrize(
    ("play", "says", "advises"),
    [
        (_absent, "2 never joined (clients 1 to 2)", "start them, or read their messages"),
        (_leave, "2 left (m1, m2)", "start them again"),
        (_kill, "2 left (m1: killed by SIGKILL, m2: killed by SIGKILL)", "start them again"),
        (_cut, "2 cut off by the broker (m1, m2)", SIZE),
        (_restart, "1 left (m2), 1 present but silent (m1)", LONGER),
        (_silent, "2 present but silent (m1, m2)", LONGER),
        (_reachable, "2 present, but no reply arrives (m1, m2)", SIZE),
        (_cut_server, "2 not asked, as the broker cuts the server off (m1, m2)", SIZE),
        (_away, "2 out of reach (m1, m2)", "cannot reach the broker; start it"),
    ],
)
def test_a_line_for_each_cause(play: Callable[[Short], None], says: str, advises: str) -> None:
    """Members that are absent, gone, killed, cut, slow or unheard, and a broker that is away: the
    deadline stands in the line of slow ones alone."""
    short = Short()
    play(short)
    line = short.line()
    assert line.startswith(f"round 1 closed with 1 of 3 replies, below the quorum of 0.9: {says}; ")
    assert advises in line
    assert line.endswith(", or lower --quorum")
    assert ("--deadline" in line) == (advises == LONGER)


@wrong(
    "local_dp.server.phases:Collecting.due",
    "self._has_called = True",
    "pass",
    "those that owe are called again at each look in the second half of a round",
)
def test_the_roll_of_those_that_owe_is_called_once() -> None:
    """Half-way, and of no member that has answered; so no hello comes of a round that goes well."""
    short = Short()
    short.begin(0, 1, 2)
    rolls = []
    for now in (HALF - 0.1, HALF, HALF + 1.0, DEADLINE - 0.1):
        messages = [send.message for send in short.coordinator.due(now)]
        rolls += [(now, message) for message in messages if isinstance(message, Roll)]
    assert rolls == [(HALF, Roll(run=RUN, missing=((1, 3),)))]


def test_many_members_are_counted_and_three_are_named() -> None:
    coordinator = Coordinator(RUN, 2000, SEED, 1.0, Terms(DEADLINE))
    for member in range(2000):
        arrive(coordinator, f"m{member}", member, member + 1)
    coordinator.open((survey_query(2000),), 0.0)
    with pytest.raises(
        QuorumError,
        match=(
            r": 2,000 present but silent \(m0, m1, m2 and 1,997 more\); give it a longer "
            r"--deadline$"
        ),
    ):
        coordinator.close(DEADLINE)


def _refusal_line(code: str, text: str) -> str:
    short = Short()
    short.begin(0, 1, 2)
    refusal = Refusal(run=RUN, round=1, member="m1", start=1, stop=2, code=code, text=text)
    short.coordinator.receive(topic(RUN, "rep", "hosts", "m1"), refusal, 1.0)
    with pytest.raises(RefusedError) as error:
        short.coordinator.close(DEADLINE)
    assert error.value.code == code
    return str(error.value)


@wrong(
    "local_dp.server.quorum:Terms.judge",
    "text.strip()",
    "text",
    "a refusal whose text is blank has no reason",
    at=" \\n\\t",
)
@pytest.mark.parametrize("text", ["", " \n\t"])
def test_a_refusal_without_words_has_ours(text: str) -> None:
    """The text of its code with the names of the round, or the code alone; the others that gave no
    answer follow."""
    for code in TEXTS:
        start = _refusal_line(code, text).removeprefix(f"1 of 3 clients refused round 1: {code}: ")
        assert start.startswith(TEXTS[code].split("{")[0])
        assert start.endswith("; and 1 present but silent (m2); give it a longer --deadline")
    assert _refusal_line("new-code", text).startswith(
        "1 of 3 clients refused round 1: code new-code; and 1 present"
    )


def test_a_client_does_not_write_the_line() -> None:
    """A refusal of 1,000 hostile characters is escaped and cut, and what we know stands behind
    it."""
    line = _refusal_line("budget", "\x1b[2J\u202e\n" * 166)
    assert line.isprintable()
    assert len(line) <= 2100
    assert line.endswith("; and 1 present but silent (m2); give it a longer --deadline")


def test_a_relay_passes_on_the_causes() -> None:
    """Of the clients behind it the server has the number for each cause, of a cause that it does
    not know too, and of a message that came twice once."""
    coordinator = Coordinator(RUN, 10, SEED, 1.0, Terms(DEADLINE))
    arrive(coordinator, "shuffler", 0, 10)
    coordinator.open((survey_query(10),), 0.0)
    coordinator.due(0.0)
    for start, stop, code in [
        (0, 4, "gone"),
        (4, 7, "absent"),
        (7, 9, "silent"),
        (9, 10, "of-the-future"),
        (0, 4, "gone"),
    ]:
        absent = Absent(
            run=RUN,
            round=1,
            member="shuffler",
            ask=0,
            start=start,
            stop=stop,
            why="missing",
            code=code,
        )
        coordinator.receive(topic(RUN, "rep", "hosts", "shuffler"), absent, 1.0)
    with pytest.raises(
        QuorumError,
        match=": 3 never joined, 4 left, 2 present but silent, 1 missing behind a relay; ",
    ):
        coordinator.close(2.0)


def test_rejected_messages_are_counted() -> None:
    """A member whose replies do not fit is no matter of the deadline alone: the line has their
    number and the last fault."""
    short = Short()
    short.begin(0, 1, 2)
    short.coordinator.receive(topic(RUN, "rep", "hosts", "m1"), reply_of(1, "m1", 1, b"\x05"), 1.0)
    assert (
        "messages rejected: 1 (the last one: a report that no client of binary-rr could have "
        "made); correct"
    ) in short.line()


def test_nobody_joined_for_a_reason() -> None:
    """A broker that is away and processes that ended are named where nobody came."""
    coordinator = Coordinator(RUN, 2, SEED, 1.0, Terms())
    coordinator.gather(3.0, 0.0)
    coordinator.trouble = "cannot reach the broker; start it"
    with pytest.raises(
        QuorumError,
        match=(
            r"none of the 2 clients joined run 'test-run' in 3 seconds; cannot reach the broker; "
            r"start it$"
        ),
    ):
        coordinator.gathered()
    coordinator.gather(3.0, 0.0)
    coordinator.trouble, coordinator.ending_of = "", lambda name: "exit code 1"
    with pytest.raises(
        QuorumError,
        match=r"1 of their processes ended \(clients 0 to 1: exit code 1\); start them again$",
    ):
        coordinator.gathered()
    coordinator.gather(3.0, 0.0)
    coordinator.ending_of = lambda name: ""
    with pytest.raises(QuorumError, match="start them, with this run's name and broker"):
        coordinator.gathered()


def test_each_cause_has_advice() -> None:
    assert all(text and advice for text, advice in CAUSES.values())
