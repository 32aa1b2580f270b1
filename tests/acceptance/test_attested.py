"""P7: a run is called private only if every member has signed that it answers in private; keys and
rosters."""

import json
import shlex
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from local_dp.api.show import summary
from local_dp.bus.memory import MemoryBroker
from local_dp.cli.operate.keys import private_key
from local_dp.errors import InputError
from local_dp.sealing import KEY
from local_dp.server.members import Members, Roster
from local_dp.server.watch.events import Scene
from local_dp.simulation import outcome as outcomes
from local_dp.simulation.outcome import as_data, stamp_of
from local_dp.wire import Hello
from tests.support.runs.brokers import embedded
from tests.support.runs.command import enrolled, local_dp
from tests.support.runs.parties import MEMBERS, Cast, play_in_memory, play_on, settings
from tests.support.wrong import wrong

SOME = [seeded for count in range(MEMBERS + 1) for seeded in combinations(range(MEMBERS), count)]
HOST = shlex.split("host survey --clients 9 --broker mqtt://127.0.0.1:1 --run r")
SCHEMA = json.loads((Path(outcomes.__file__).parent / "outcome.schema.json").read_text())


def test_one_seeded_member_is_enough() -> None:
    """Of four members, each subset seeded: the run is attested exactly if none is."""
    verdicts = {
        seeded: play_in_memory(Cast.of(seeded=seeded), MemoryBroker())[0].members.attested
        for seeded in SOME
    }
    assert [seeded for seeded, verdict in verdicts.items() if verdict] == [()]


@wrong(
    "local_dp.server.members:Members.hello",
    "member.private &= hello.private",
    "pass",
    "a member that says private first and otherwise later is counted as private",
)
def test_what_a_member_said_once_stays_said() -> None:
    """A member that says private after it has said otherwise, or otherwise after private, is not
    private."""
    for answers in ([True, False], [False, True], [True, False, True]):
        members = Members(1)
        for private in answers:
            members.hello("g0", Hello(run="r", member="m", start=0, stop=1, private=private))
        assert not members.attested


@pytest.mark.parametrize(("seeded", "signed"), [((), True), ((2,), True), ((), False)])
def test_a_private_server_says_what_is_known(seeded: Sequence[int], signed: bool) -> None:
    """All private and signed: private. One seeded, or nothing signed: unknown, in the data, the
    summary and on the page, and no truth either way."""
    with embedded() as url:
        outcome = play_on(Cast.of(signed, seeded), url, url, private=True)
    run = settings(private=True)
    data = as_data(run, outcome, truth_known=False)
    Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(data)))
    scene = Scene(run)
    before = scene.state["stamp"]
    scene.finish(data)
    assert (before, scene.state["stamp"]) == ("asked to be private", stamp_of(data))
    text = summary(data, 400)
    assert data["private"] is (True if signed and not seeded else None)
    assert ("unattested" in text) == (not data["private"])
    assert ("private: operating-system entropy" in text, "unsigned" in text) == (
        bool(data["private"]),
        not signed,
    )
    assert (data["seed"], data["result"]["truth"], data["signed"]) == (None, None, signed)


def test_a_key_is_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "host.key"
    assert (local_dp("keys", "create", str(file)).returncode, file.stat().st_mode & 0o777) == (
        0,
        0o600,
    )
    content = file.read_bytes()
    assert (local_dp("keys", "create", str(file)).returncode, file.read_bytes()) == (2, content)
    file.chmod(0o640)
    done = local_dp(*HOST, "--key", str(file), "--server-key", f"{file}.pub")
    assert (done.returncode, "others may read" in done.stderr) == (2, True)


def test_a_private_key_is_no_public_key(tmp_path: Path) -> None:
    """Enrolled or given as the server's, by its own name or among others: one line, and no roster
    has it."""
    enrolled(tmp_path, 0)
    own, roster = tmp_path / "server.key", tmp_path / "roster"
    before, key = roster.read_bytes(), own.read_text().removeprefix("private ")
    (tmp_path / "several").write_text(f"{'ab' * KEY}\n{own.read_text()}")
    member = (*HOST, "--key", str(tmp_path / "host-0.key"), "--server-key")
    for words in (
        *(
            ("keys", "enrol", str(roster), str(tmp_path / name), "--index", "70")
            for name in ("server.key", "several")
        ),
        (*member, str(own)),
    ):
        done = local_dp(*words)
        assert (done.returncode, done.stderr.count("\n"), "is a private key" in done.stderr) == (
            2,
            1,
            True,
        ), done.stderr
    assert (roster.read_bytes(), private_key(own)) == (before, bytes.fromhex(key))


@wrong(
    "local_dp.server.members:Roster.parse",
    "sizes not in ([], [str(len(roster.places))])",
    "len(sizes) > 1",
    "a roster without its last members is read as whole",
)
def test_many_members_are_enrolled_at_once_and_a_cut_roster_is_refused(tmp_path: Path) -> None:
    """One command for a file of keys, each with the next place. The roster without its last line is
    refused, and so is an empty one."""
    keys, roster = tmp_path / "keys.pub", tmp_path / "roster"
    keys.write_text("".join(f"{place:064x}\n" for place in range(1, 21)))
    done = local_dp("keys", "enrol", str(roster), str(keys), "--index", "7")
    assert done.stderr.strip().endswith("client-7 to client-26, sign for the clients 7..26")
    text = roster.read_text()
    for index, place in enumerate(Roster.parse(text).places, 1):
        assert (place.start, int(place.key.hex(), 16)) == (index + 6, index)
    with pytest.raises(InputError, match="it was cut or changed"):
        Roster.parse(text[: text.rindex("\n", 0, -1) + 1])
    with pytest.raises(InputError, match="has no place"):
        Roster.parse("")
