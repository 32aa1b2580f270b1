"""A client that was written from docs/wire.md alone, in Node: it passes the vectors and joins runs."""

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from local_dp.bus.address import Address
from local_dp.bus.mqtt import MqttBus
from local_dp.interaction import Adaptive, run_async
from local_dp.oracles.local.asked import Cohort, LocalAlgorithm, LocalPlay, LocalQuery
from local_dp.queries.query import Query
from local_dp.queries.tables import Bounded, Category, Question
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.subset_selection import SubsetSelection
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.sealing import UNSIGNED, Party, new_key, public
from local_dp.server.coordinator import Coordinator
from local_dp.server.members import Place, Roster, filters
from local_dp.server.quorum import Terms
from local_dp.server.remote import Journal, RemoteOracle
from local_dp.tallies import Tally
from local_dp.wire import encode
from tests.support.runs.brokers import a_broker, needs_mosquitto
from tests.support.runs.node import EXAMPLE, NodeMember, joined
from tests.support.runs.virtual_time import beside
from tests.support.vectors.all import FILES
from tests.support.vectors.files import FOLDER
from tests.support.web import NODE, needs_node

pytestmark = needs_node
GRADES = tuple(f"grade {at}" for at in range(12))
EPSILON = 1.0
SEED = 7
WRONG = 3  # the exit code of check.mjs


def _check(folder: Path, client: Path = EXAMPLE) -> subprocess.CompletedProcess[str]:
    assert NODE is not None
    return subprocess.run([NODE, str(client / "check.mjs"), str(folder)], capture_output=True, text=True, check=False)


def test_the_example_passes_the_vectors() -> None:
    """It finds what every file expects, of all cases that are for a client of one person."""
    done = _check(FOLDER)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("all as expected") == len(FILES)


@pytest.mark.long
@pytest.mark.parametrize("name", [file.name for file in FILES])
def test_the_example_finds_one_changed_bit(name: str, tmp_path: Path) -> None:
    """One bit of one file is changed, in an expectation: the client names the case and the file's digest."""
    shutil.copytree(FOLDER, tmp_path / "vectors")
    file = tmp_path / "vectors" / f"{name}.json"
    text = file.read_text()
    at = text.index('"expect"', len(text) // 2)
    digit = next(place for place in range(at, len(text)) if text[place] in "02468")
    file.write_text(text[:digit] + chr(ord(text[digit]) ^ 1) + text[digit + 1 :])
    done = _check(tmp_path / "vectors")
    assert done.returncode == WRONG
    assert f"{name}.json" in done.stdout
    assert "its SHA-256" in done.stdout


TWINS = {  # of the example: a file, its text, and what stands there instead
    "a digest cut short": ("blake2b.mjs", "0x01010000n ^ BigInt(size)", "0x01010000n ^ 64n"),
    "doubles as whole numbers": ("messages.mjs", "return new Double(take(8).readDoubleBE())", "return take(8).readDoubleBE()"),
    "any order of fields": ("messages.mjs", "[...value.keys()].join() === Object.keys(fields).join() && ", ""),
    "any form": ("messages.mjs", "need(pack(value).equals(bytes)", "need(true"),
    "no topic in what is signed": ("envelopes.mjs", "length, where, message]", "message]"),
    "a threshold rounded down": ("randomizers.mjs", "(over + under - 1n) / under", "over / under"),
    "e^epsilon as a double": (
        "randomizers.mjs",
        "const [digits, power] = exp60(nano);",
        "const [digits, power] = [BigInt(Math.round(Math.exp(Number(nano) / 1e9) * 1e12)), 12n];",
    ),
    "a word at the threshold": ("randomizers.mjs", "if (word < randomizer", "if (word <= randomizer"),
    "other least blocks": ("randomizers.mjs", "a * d < c * b ? size : best", "a * d <= c * b ? best : size"),
    "a coin of the next client": ("randomizers.mjs", "BigInt(client) / 4n + 1n", "BigInt(client) / 4n"),
    "the end is below itself": ("questions.mjs", "Number(value) < asNumber(end)", "Number(value) <= asNumber(end)"),
    "the parity of all bits of x": ("questions.mjs", "setBits(r).filter((at) => bit(x, at)).length", "setBits(x).length"),
    "a row of the next block": ("randomizers.mjs", "row & symbol % size", "row & symbol / size"),
    "half away from zero": ("questions.mjs", "floor + (floor % 2)", "floor + 1"),
    "UTF-16 units": ("questions.mjs", "letter.codePointAt(0))", "letter.charCodeAt(0))"),
    "a missing value is no": ("questions.mjs", "answers.includes(null) ? null : !decides", "!decides"),
    "whole numbers as doubles": ("questions.mjs", "(doubles ? Number(each) : BigInt(each))", "Number(each)"),
    "spaces of JavaScript": ("questions.mjs", "`${SPACE}(?:", "`\\\\s*(?:"),
    "a fresh word for a question that comes again": ("client.mjs", "if (!entry) {", "if (true) {"),
    "another question under a round": ("client.mjs", "if (entry.asked !== asked)", "if (false)"),
    "each ask against the budget": ("client.mjs", "sum + Number(randomizer.nano)", "Math.max(sum, Number(randomizer.nano))"),
    "a budget for each run alone": ("client.mjs", " || store.life + charge > policy.life", ""),
    "only what is missing is charged": (
        "client.mjs",
        "if (!mine.length)",
        "if (!mine.length || !(!request.missing.length || request.missing.some(([a, b]) => a <= this.start && this.start < b)))",
    ),
    "a checksum of the reports alone": ("messages.mjs", "Buffer.from(`${round} ${ask} ${start} ${width} `)", "Buffer.alloc(0)"),
}


@pytest.mark.long
@pytest.mark.parametrize("twin", TWINS)
def test_the_vectors_find_a_wrong_twin(twin: str, tmp_path: Path) -> None:
    """A client with this mistake does not pass."""
    shutil.copytree(EXAMPLE, tmp_path / "node")
    name, right, wrong = TWINS[twin]
    file = tmp_path / "node" / name
    text = file.read_text()
    assert text.count(right) == 1
    file.write_text(text.replace(right, wrong))
    assert _check(FOLDER, tmp_path / "node").returncode == WRONG


@dataclass(frozen=True)
class Run:
    """A run with members in Node: what was asked and found, and the replies that the server counted, by round."""

    coordinator: Coordinator
    replies: dict[int, set[str]]
    lines: list[str]


def _people(count: int, folder: Path) -> Iterator[NodeMember]:
    """A third cheated, grades and hours go round, and every seventh gave no hours."""
    for at in range(count):
        own = new_key()
        record = {
            "cheated": ["truth", at % 3 == 0],
            "grade": ["text", GRADES[at % 12]],
            "hours": ["number", None if at % 7 == 0 else str(at % 40 + 0.5)],
        }
        yield NodeMember(Place(f"client-{at}", f"g{at // 40}", at, at + 1, public(own)), own, record, folder / f"client-{at}.store")


def _asked(query: Query, randomizer: Randomizer, start: int, stop: int) -> LocalQuery:
    return LocalQuery(query, randomizer, Cohort(start, stop))


def _algorithm(count: int, rounds: int) -> LocalAlgorithm[list[Tally]]:
    """Three asks in the first round; a question that depends on its answers; then one thing to the first half and another to the second."""

    def play() -> LocalPlay[list[Tally]]:
        everybody, half = (0, count), count // 2
        found = list(
            (
                yield (
                    _asked(Question("cheated == 1"), BinaryRR(EPSILON), *everybody),
                    _asked(Category("grade", GRADES), SubsetSelection(EPSILON, k=12), *everybody),
                    _asked(Bounded("hours", 0.0, 40.0), OneBitMean(EPSILON), *everybody),
                )
            )
        )
        if rounds > 1:
            mean = 40 * float(OneBitMean(EPSILON).estimate(found[2]).value)
            found += yield (_asked(Question(f"hours > {mean:.6f}", ("missing",)), GRR(EPSILON, k=3), *everybody),)
            first = _asked(Question('grade < "grade 5"'), BinaryRR(EPSILON / 2), 0, half)
            found += yield (first, _asked(Category("grade", GRADES, ("other",)), GRR(EPSILON, k=13), half, count))
        return found

    return Adaptive(play)


async def _play(name: str, members: list[NodeMember], url: str, folder: Path, rounds: int, signed: bool) -> Run:
    own, roster = new_key(), Roster(member.place for member in members)
    envelopes = Party.server(name, own, roster.speaker) if signed else UNSIGNED
    coordinator = Coordinator(name, len(members), SEED, 10.0, Terms(60.0, 1.0), roster if signed else None)
    with closing(Journal.begin(folder, name, {})) as journal:
        oracle = RemoteOracle(MqttBus(Address.parse(url), f"{name}-server", filters(name)), coordinator, journal=journal, envelopes=envelopes)
        policy = {"perRun": 10_000_000_000, "life": 20_000_000_000}
        server = public(own).hex() if signed else None
        async with beside(oracle.serve(5.0)), joined(members, folder, 4, broker=url, run=name, server=server, policy=policy) as lines:
            await oracle.ready(60.0)
            await run_async(_algorithm(len(members), rounds), oracle)
            await oracle.end(20.0)
        past = {number: journal.past(number) for number in range(1, rounds + 1)}
        replies = {number: {encode(reply).hex() for reply in each.replies} for number, each in past.items() if each is not None}
    return Run(coordinator, replies, lines)


RUNS = [(kind, signed, rounds) for kind in ("embedded", "mosquitto") for signed in (False, True) for rounds in (1, 3)]


@pytest.mark.slow(only=("mosquitto-True-3", "embedded-False-3", "embedded-True-1", "mosquitto-False-3", "mosquitto-True-1"))
@pytest.mark.long
@needs_mosquitto
@pytest.mark.parametrize(("kind", "signed", "rounds"), RUNS)
def test_a_hundred_members_in_node_answer_a_run(kind: str, signed: bool, rounds: int, tmp_path: Path) -> None:
    """All answer every round; the server counts exactly the bytes that each has stored, the accounts agree, and the receipts arrive."""
    members = list(_people(100, tmp_path))
    with a_broker(kind, tmp_path) as url:
        run = asyncio.run(_play("class-1", members, url, tmp_path, rounds, signed))
    counts, balance = run.coordinator.counts, run.coordinator.reconciliation()
    assert counts.answered == counts.asked == (300 if rounds == 1 else 500)
    assert (counts.refused, counts.missing, counts.conflicting, counts.late, run.coordinator.rejected) == (0, 0, 0, 0, 0)
    assert (balance.members, balance.silent, balance.accepted_not_charged, balance.charged_not_accepted) == (100, 0, 0, 0)
    assert run.coordinator.members.attested
    for number in range(1, rounds + 1):
        assert run.replies[number] == {reply for member in members for reply in member.answers()[number]["replies"]}
    assert sorted(run.lines) == sorted(f"{member.place.member}: {rounds} rounds answered, {rounds} confirmed" for member in members)


@pytest.mark.long
@needs_mosquitto
def test_members_that_come_again_send_the_same_bytes(tmp_path: Path) -> None:
    """After the run new processes with the same stores join it again: the same requests, and each reply is the same, byte for byte; nothing is charged."""
    members = list(_people(20, tmp_path))
    with a_broker("mosquitto", tmp_path) as url:
        first, second = (tmp_path / name for name in ("first", "second"))
        first.mkdir()
        before = asyncio.run(_play("class-1", members, url, first, 3, True))
        stores = [member.store.read_bytes() for member in members]
        second.mkdir()
        after = asyncio.run(_play("class-1", members, url, second, 3, True))
    assert before.replies == after.replies
    assert stores == [member.store.read_bytes() for member in members]
