"""P1, P2: a client that is killed at any point, or whose store fails, sends nothing uncharged and
nothing twice in two forms."""

import os
import random
import resource
import shutil
import signal
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from local_dp.clients.journal import SqliteStore
from local_dp.errors import InputError
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.memory import Memoised
from local_dp.queries.tables import Category
from local_dp.randomizers.repeated.memoised import LOLOHA
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.wire import Reply
from tests.support.inputs.builders import request, survey_query
from tests.support.runs.stores import (
    CLIENTS,
    SMALL,
    Doomed,
    asked,
    close,
    code,
    forked,
    member,
    told,
)
from tests.support.wrong import wrong

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
        store._log._database = Doomed(store._log._database, point)  # type: ignore[assignment]
        for number in range(1, ROUNDS + 1):
            send(bytes([number]) + told(role.handle(asked(number))))

    return live


def _check(path: Path, messages: list[bytes]) -> int:
    """How many rounds are committed, after it is seen that each that was sent is, with those bytes,
    and that they are sent again."""
    again = member(path)
    for message in messages:
        assert again.store.get("run", message[0]) is not None, "uncharged, and sent"
        assert told(again.handle(asked(message[0]))) == message[1:], "another reply"
    commits = sum(again.store.get("run", number) is not None for number in range(1, ROUNDS + 1))
    assert again.store.ledger.max_spent == pytest.approx(SMALL * commits)
    close(again)
    return commits


@wrong(
    "local_dp.clients.journal:SqliteStore.commit",
    "[_entry(commit)]",
    "[]",
    "a client that is killed has sent what it never charged",
)
def test_a_crash_at_any_point_uncharges_and_changes_nothing(tmp_path: Path) -> None:
    """Killed before and after every step of a commit, and asked again by a client that is started
    again."""
    silent = 0
    for point in range(STEPS):
        path = tmp_path / f"{point}.store"
        close(member(path))
        messages, exit_code = forked(_lives(path, point))
        assert exit_code == signal.SIGKILL, "every point is reached"
        silent += _check(path, messages) > len(messages)
    assert silent > 0, "some die between the commit and the reply"


@wrong(
    "local_dp.clients.journal:_entry",
    "[(each.label, each.spans, each.data) for each in commit.outcomes]",
    "list[object]()",
    "a client that is started again makes another first step under a label, and pays nothing",
)
def test_a_memoised_answer_outlives_its_client(tmp_path: Path) -> None:
    """The attack: under a label nothing more is paid, so fresh noise after a restart would tell the
    value. The store keeps the answer, under any number."""
    weekly = replace(survey_query(CLIENTS, randomizer=BinaryRR(1.0)), repeat=Memoised("weekly"))
    reports = []
    for number in (1, 2, 3):
        role = member(tmp_path / "a.store")
        (reply,) = role.handle(request(weekly, number=number))
        assert isinstance(reply, Reply)
        reports.append(reply.reports)
        assert role.store.ledger.max_spent == 1.0, "a label is paid for once"
        close(role)
    assert len(set(reports)) == 1
    successor = member(tmp_path / "a.store", start=1)
    (reply,) = successor.handle(
        request(replace(survey_query(CLIENTS + 1, start=1), repeat=Memoised("weekly")), number=4)
    )
    assert isinstance(reply, Reply)
    assert (reply.reports, reply.start, successor.store.ledger.max_spent) == (reports[0], 1, 1.0)


@wrong(
    "local_dp.clients.role:ClientRole._check_numbers",
    "query.randomizer.uses_coins",
    "False",
    "what a label keeps is decoded by the public coin of another number",
)
def test_an_outcome_is_read_by_its_own_coin(tmp_path: Path) -> None:
    """Under another number a client has another public coin, by which a server would misread what a
    label keeps: it refuses, uncharged."""
    hashed = LocalQuery(
        Category("yes", ("0", "1", "2", "3", "4")),
        LOLOHA(1.0, k=5),
        Cohort(0, CLIENTS),
        Memoised("weekly"),
    )
    role = member(tmp_path / "a.store")
    assert code(role.handle(request(hashed, number=1))) == "reply"
    close(role)
    successor = member(tmp_path / "a.store", start=1)
    assert (
        code(successor.handle(request(replace(hashed, cohort=Cohort(1, CLIENTS + 1)), number=2)))
        == "equivocation"
    )
    assert successor.store.rounds == 1


@wrong(
    "local_dp.clients.role:ClientRole._own",
    "Charge(place, place + last - first, charge.nano, charge.label, charge.what)",
    (
        "Charge(self.start + place, self.start + place + last - first, charge.nano, charge.label, "
        "charge.what)"
    ),
    "a client that has another number in another run has its whole budget again",
)
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
        close(role)


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


@wrong(
    "local_dp.storage.log:Log._as_it_was_left",
    "self._state() != self._left",
    "False",
    "a store that is deleted or changed while it is open still answers",
    at="bit-flipped-while open",
)
@pytest.mark.parametrize("while_open", [False, True], ids=["before", "while open"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_store_that_fails_gets_no_reply(fault: str, while_open: bool) -> None:
    """The constant refusal "store", or no client at all; never a reply, not even one that was given
    before."""
    with tempfile.TemporaryDirectory() as folder:  # pytest's own may be entered by its user alone
        path = Path(folder) / "a.store"
        role = member(path, clients=MANY)
        assert code(role.handle(asked(1))) == "reply"
        close(role)
        codes = _answers_after(path, FAULTS[fault], while_open)
        assert set(codes) == {b"store"}, codes


def test_no_flipped_bit_changes_what_was_spent(tmp_path: Path) -> None:
    """One bit of many bytes of the file. Either it is refused, or nothing that was kept has
    changed."""
    path, other = tmp_path / "a.store", tmp_path / "b.store"
    role = member(path)
    replies = [told(role.handle(asked(number))) for number in (1, 2)]
    lines = dict(role.store.lines("run"))
    close(role)
    data, refusals = path.read_bytes(), 0
    generator = random.Random(10)
    # most of a page of entries or of an index is empty
    places = [place for place, byte in enumerate(data) if byte]
    with closing(sqlite3.connect(path)) as read:
        (root,), (size,) = (
            read.execute("SELECT rootpage FROM sqlite_master WHERE type = 'index'").fetchone(),
            read.execute("PRAGMA page_size").fetchone(),
        )
    flips = [(place, generator.randrange(8)) for place in generator.sample(places, 60)]
    index = range((root - 1) * size, root * size)  # by which a reply is found again
    flips += [(place, bit) for place in places if place in index for bit in range(8)]
    for place, bit in flips:
        hurt_byte = bytes([data[place] ^ 1 << bit])
        other.write_bytes(data[:place] + hurt_byte + data[place + 1 :])
        try:
            hurt = member(other)
        except InputError:
            refusals += 1
            continue
        assert dict(hurt.store.lines("run")) == lines
        assert [told(hurt.handle(asked(number))) for number in (1, 2)] == replies
        close(hurt)
    assert refusals > 20


@wrong(
    "local_dp.clients.journal:_open",
    "mark.exists()",
    "False",
    "a store that was deleted begins again with the whole budget",
)
def test_a_store_is_not_begun_again(tmp_path: Path) -> None:
    """Deleted while no client runs, it is missed: a new one would have the whole budget again. Both
    limits are the file's for life."""
    path = tmp_path / "a.store"
    role = member(path, 1.0, 2.0)
    assert code(role.handle(asked(1, 1.0))) == "reply"
    close(role)
    copy = shutil.copy(path, tmp_path / "copy")
    path.unlink()
    with pytest.raises(InputError, match="is gone"):
        member(path)
    shutil.copy(copy, path)
    with pytest.raises(InputError, match="for life"):
        member(path, 1.0, 3.0)
    assert code(member(path).handle(asked(1, 1.0, "other"))) == "reply"
