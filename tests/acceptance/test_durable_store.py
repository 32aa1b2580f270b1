"""Acceptance tests 4, 5 and 10: a client that is killed at any point, or whose store fails, sends
nothing uncharged and nothing twice in two forms."""

import os
import random
import resource
import shutil
import signal
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from local_dp.clients.journal import SqliteStore
from local_dp.clients.role import ClientRole
from local_dp.errors import InputError
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.tables import Category, Question
from local_dp.randomizers.repeated.memoised import LOLOHA
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.wire import Reply
from tests.support.inputs.builders import request, survey_query
from tests.support.runs.stores import CLIENTS, SMALL, Doomed, asked, code, forked, member, told

STEPS = (
    2 * 6 + 2 * 4
    # of two commits: the look, the transaction's four statements, the move into the file; before
    # and after each
)
ROUNDS = 3


def _lives(path: Path, point: int) -> Callable[[Callable[[bytes], None]], None]:
    """A client that answers some rounds, and is killed at a point of what it does to its file."""

    def live(send: Callable[[bytes], None]) -> None:
        role = member(path)
        store = role.store
        assert isinstance(store, SqliteStore)
        store._log._held = Doomed(store._log._held, point)  # type: ignore[assignment]
        for number in range(1, ROUNDS + 1):
            send(bytes([number]) + told(role.handle(asked(number))))

    return live


def _checked(path: Path, sent: list[bytes]) -> int:
    """How many rounds are committed, after it is seen that each that was sent is, with those bytes,
    and that they are sent again."""
    again = member(path)
    for message in sent:
        assert again.store.get("run", message[0]) is not None, "uncharged, and sent"
        assert told(again.handle(asked(message[0]))) == message[1:], "another reply"
    committed = sum(again.store.get("run", number) is not None for number in range(1, ROUNDS + 1))
    assert again.store.ledger.max_spent == pytest.approx(SMALL * committed)
    assert isinstance(again.store, SqliteStore)
    again.store.close()
    return committed


@pytest.mark.parametrize("times", [1, pytest.param(50, marks=pytest.mark.slow)])
def test_a_crash_at_any_point_uncharges_and_changes_nothing(times: int, tmp_path: Path) -> None:
    """Test 4, first half, once: killed before and after every step of a commit, and asked again by
    a client that is started again."""
    crashes, silent = 0, 0
    for turn in range(times):
        for point in range(STEPS):
            path = tmp_path / f"{turn}-{point}.store"
            member(path).store.close()  # type: ignore[attr-defined]
            sent, ended = forked(_lives(path, point))
            assert ended == signal.SIGKILL, "every point is reached"
            crashes += 1
            silent += _checked(path, sent) > len(sent)
    assert silent > 0, "some die between the commit and the reply"
    print(
        f"test 4: {crashes} crash points, 0 uncharged replies, 0 changed replies, {silent} "
        "charged and silent"
    )


def _pace(folder: Path) -> float:
    """The seconds that a new round takes here and now, of which its store takes most."""
    role, started = member(folder / "pace.store", 24.0), time.perf_counter()
    for number in range(1, 41):
        role.handle(asked(number))
    return (time.perf_counter() - started) / 40


@pytest.mark.parametrize("kills", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_kills_at_random_change_nothing(kills: int, tmp_path: Path) -> None:
    """Test 4, second half: ten SIGKILLs of a client process while it answers the same requests
    again and new ones."""
    generator, path, answers, killed = (
        random.Random(4),
        tmp_path / "killed.store",
        dict[int, bytes](),
        0,
    )

    def live(send: Callable[[bytes], None]) -> None:
        role = member(path, 24.0)
        # some that were answered, and new ones
        for number in range(max(1, len(answers) - 4), 4000):
            send(number.to_bytes(2) + told(role.handle(asked(number))))

    member(path, 24.0).store.close()  # type: ignore[attr-defined]
    pace = _pace(tmp_path)
    while killed < kills or len(answers) < kills:  # on a busy machine few live to answer
        sent, ended = forked(live, pace * generator.uniform(-2, 6))
        assert ended == signal.SIGKILL
        killed += 1
        assert killed <= 20 * kills
        for message in sent:
            assert answers.setdefault(int.from_bytes(message[:2]), message[2:]) == message[2:], (
                "another reply"
            )
        for number in [*answers][-20:]:
            role = member(path, 24.0)
            assert role.store.get("run", number) is not None, "uncharged, and sent"
            role.store.close()  # type: ignore[attr-defined]
    print(
        f"test 4: {killed} SIGKILLs, {len(answers)} rounds answered, 0 uncharged replies, 0 "
        "changed replies"
    )


@pytest.mark.parametrize("times", [400, pytest.param(10_000, marks=pytest.mark.slow)])
def test_the_same_request_is_answered_by_the_same_bytes(times: int, tmp_path: Path) -> None:
    """Test 5, 400 times."""
    path = tmp_path / "a.store"
    role = member(path)
    first = told(role.handle(asked(1)))
    for turn in range(times):
        if turn % (times // 4) == 0:
            role.store.close()  # type: ignore[attr-defined]
            role = member(path)
        assert told(role.handle(asked(1))) == first
    assert (role.store.ledger.max_spent, role.store.rounds) == (SMALL, 1)
    print(
        f"test 5: the same request {times} times, by a client that was started four times: the "
        "same bytes, one charge"
    )


def test_a_memoised_answer_outlives_its_client(tmp_path: Path) -> None:
    """The attack: under a label nothing more is paid, so fresh noise after a restart would tell the
    value. The store keeps the answer, under any number."""
    weekly = replace(survey_query(CLIENTS, randomizer=BinaryRR(1.0)), memo="weekly")
    reports = []
    for number in (1, 2, 3):
        role = member(tmp_path / "a.store")
        (reply,) = role.handle(request(weekly, number=number))
        assert isinstance(reply, Reply)
        reports.append(reply.reports)
        assert role.store.ledger.max_spent == 1.0, "a label is paid for once"
        role.store.close()  # type: ignore[attr-defined]
    assert len(set(reports)) == 1
    moved = member(tmp_path / "a.store", start=1)
    (reply,) = moved.handle(
        request(replace(survey_query(CLIENTS + 1, start=1), memo="weekly"), number=4)
    )
    assert isinstance(reply, Reply)
    assert (reply.reports, reply.start, moved.store.ledger.max_spent) == (reports[0], 1, 1.0)


def test_an_outcome_is_read_by_its_own_coin(tmp_path: Path) -> None:
    """Under another number a client has another public coin, by which a server would misread what a
    label keeps: it refuses, uncharged."""
    hashed = LocalQuery(Question("yes == 1"), LOLOHA(1.0, k=2), Cohort(0, CLIENTS), "weekly")
    assert hashed.randomizer.uses_coins is False  # of two symbols there is one row
    hashed = LocalQuery(
        Category("yes", ("0", "1", "2", "3", "4")), LOLOHA(1.0, k=5), Cohort(0, CLIENTS), "weekly"
    )
    role = member(tmp_path / "a.store")
    assert code(role.handle(request(hashed, number=1))) == "reply"
    role.store.close()  # type: ignore[attr-defined]
    moved = member(tmp_path / "a.store", start=1)
    assert (
        code(moved.handle(request(replace(hashed, cohort=Cohort(1, CLIENTS + 1)), number=2)))
        == "equivocation"
    )
    assert moved.store.rounds == 1


def test_a_client_is_itself_under_another_number(tmp_path: Path) -> None:
    """Budgets are of records, by their place in the member's table: a member that has other numbers
    in another run has spent what it has spent."""
    for start in (0, 1000):
        role = member(tmp_path / "a.store", start=start)
        answers = role.handle(
            request(
                survey_query(start + CLIENTS, start=start, randomizer=BinaryRR(1.0)),
                run=f"run-{start}",
            )
        )
        assert code(answers) == ("budget" if start else "reply")
        role.store.close()  # type: ignore[attr-defined]


# Test 10: six faults, each of a store that is opened again, and of one that is open.


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[data.rindex(b"reports") + 10] ^= 1  # a report of the round that was answered
    path.write_bytes(data)


def _nobody_may_write(path: Path) -> None:
    path.chmod(0o444)
    path.parent.chmod(0o555)
    if os.geteuid() == 0:  # root may write everything
        os.setegid(65534)
        os.seteuid(65534)


def _full(path: Path) -> None:
    assert path.stat().st_size > 4096
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    # a page of either file
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))


FAULTS: dict[str, Callable[[Path], None]] = {
    "truncated": _truncate,
    "bit-flipped": _flip,
    "deleted": Path.unlink,
    "read-only": _nobody_may_write,
    "disk full": _full,
}


MANY = 20_000


def _answers_after(path: Path, fault: Callable[[Path], None], while_open: bool) -> list[bytes]:
    """What a client says, to what it was asked before and to a long round of its own, after its
    store was hurt; in a process of its own."""

    def live(send: Callable[[bytes], None]) -> None:
        try:
            role = member(path, clients=MANY) if while_open else None
            fault(path)
            role = role or member(path, clients=MANY)
        except InputError:
            send(b"store")
            return
        for number, size in ((2, CLIENTS), (3, MANY)):
            send(code(role.handle(asked(number, clients=size))).encode())
        send(code(role.handle(asked(1))).encode())

    return forked(live)[0]


@pytest.mark.parametrize("while_open", [False, True], ids=["before", "while open"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_store_that_fails_gets_no_reply(fault: str, while_open: bool) -> None:
    """Test 10: the constant refusal "store", or no client at all; never a reply, not even one that
    was given before."""
    with tempfile.TemporaryDirectory() as folder:  # pytest's own may be entered by its user alone
        path = Path(folder) / "a.store"
        role = member(path, clients=MANY)
        assert code(role.handle(asked(1))) == "reply"
        role.store.close()  # type: ignore[attr-defined]
        codes = _answers_after(path, FAULTS[fault], while_open)
        assert set(codes) == {b"store"}, codes
        print(
            f"test 10: {fault}, {'while open' if while_open else 'before it was opened'}: no reply"
        )


def test_no_flipped_bit_changes_what_was_spent(tmp_path: Path) -> None:
    """The generalisation, by search: one bit of many bytes of the file. Either it is refused, or
    nothing that was kept has changed."""
    path, other = tmp_path / "a.store", tmp_path / "b.store"
    role = member(path)
    replies = [told(role.handle(asked(number))) for number in (1, 2)]
    lines = dict(role.store.lines("run"))
    role.store.close()  # type: ignore[attr-defined]
    data, refused = path.read_bytes(), 0
    generator = random.Random(10)
    # most of a page of entries or of an index is empty
    filled = [place for place, byte in enumerate(data) if byte]
    with closing(sqlite3.connect(path)) as read:
        (root,), (size,) = (
            read.execute("SELECT rootpage FROM sqlite_master WHERE type = 'index'").fetchone(),
            read.execute("PRAGMA page_size").fetchone(),
        )
    flips = [
        (place, generator.randrange(8))
        for place in (*range(0, 200, 2), *generator.sample(filled, 100))
    ]
    # the index, by which a reply is found again
    flips += [
        (place, bit)
        for place in filled
        if (root - 1) * size <= place < root * size
        for bit in range(8)
    ]
    for place, bit in flips:
        other.write_bytes(data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :])
        try:
            hurt = member(other)
        except InputError:
            refused += 1
            continue
        assert dict(hurt.store.lines("run")) == lines
        assert [told(hurt.handle(asked(number))) for number in (1, 2)] == replies
        hurt.store.close()  # type: ignore[attr-defined]
    print(f"test 10: {len(flips)} flipped bits, {refused} refused, the others change nothing")
    assert refused > 20


def test_a_store_is_not_begun_again(tmp_path: Path) -> None:
    """Deleted while no client runs, it is missed: a new one would have the whole budget again. Both
    limits are the file's for life."""
    path = tmp_path / "a.store"
    role = member(path, 1.0, 2.0)
    assert code(role.handle(asked(1, 1.0))) == "reply"
    role.store.close()  # type: ignore[attr-defined]
    copy = shutil.copy(path, tmp_path / "copy")
    path.unlink()
    with pytest.raises(InputError, match="is gone"):
        member(path)
    shutil.copy(copy, path)
    with pytest.raises(InputError, match="for life"):
        member(path, 1.0, 3.0)
    assert [code(member(path).handle(asked(1, 1.0, run))) for run in ("other",)] == ["reply"]
    assert isinstance(role, ClientRole)
