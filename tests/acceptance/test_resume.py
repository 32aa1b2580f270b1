"""P5: a server that is killed loses nothing it had accepted, and counts nothing twice."""

import json
import random
from pathlib import Path

import pytest

from local_dp.cli.run import join
from local_dp.errors import InputError
from local_dp.protocols.surveys.frequency import Frequency
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.server.remote import Journal
from local_dp.server.round import Past, Round
from local_dp.simulation.settings import Randomness
from tests.support.inputs.builders import RUN, SEED, survey_query
from tests.support.runs.mortal import CLIENTS, HOSTS_OF, ROUNDS, Town
from tests.support.runs.virtual_time import run_virtually
from tests.support.wrong import wrong


def test_a_server_that_dies_anywhere_goes_on(tmp_path: Path) -> None:
    """In virtual time: killed before and after what it writes and says, up to twelve times in a
    run."""
    generator, kills = random.Random(20), 0
    (tmp_path / "plain").mkdir()
    plain, reference, _ = run_virtually(Town(tmp_path / "plain").live(iter([10**9])))
    expected = plain, [summary.digest for summary in reference.rounds]
    for turn in range(4):
        where = tmp_path / str(turn)
        where.mkdir()
        town, deaths = Town(where), [generator.randrange(1, 60) for _ in range(12)]
        result, coordinator, death_count = run_virtually(town.live(iter([*deaths, 10**9])))
        assert (result, [summary.digest for summary in coordinator.rounds]) == expected, turn
        assert all(len(forms) == 1 for forms in town.requests.values()), (
            "a round was asked in two ways"
        )
        assert [member.store.ledger.max_spent for member in town.members] == [
            pytest.approx(0.04 * ROUNDS)
        ] * HOSTS_OF
        assert (coordinator.counts.answered, coordinator.counts.conflicting) == (
            CLIENTS * ROUNDS,
            0,
        )
        accounts = coordinator.reconciliation()
        assert (accounts.accepted_not_charged, accounts.charged_not_accepted) == (0, 0)
        assert accounts.silent in (0, HOSTS_OF), (
            "all, where a server was killed after it had said the end"
        )
        kills += death_count
    assert kills >= 20


def test_a_changed_run_is_not_resumed() -> None:
    """A journal whose round was asked otherwise, as by another version, is refused: clients would
    see another request under the same round."""
    one, other = (
        Round(RUN, 1, (survey_query(10, randomizer=BinaryRR(epsilon)),), SEED)
        for epsilon in (0.1, 0.2)
    )
    one.restore(Past(one.request_digest(), (), None))
    with pytest.raises(InputError, match="is not what it was when it was asked"):
        other.restore(Past(one.request_digest(), (), None))


@wrong(
    "local_dp.cli.run.join:Resume.__call__",
    "{**journal.began['options'], 'as_json': self.as_json, 'journal': self.journal}",
    (
        "{**journal.began['options'], 'as_json': self.as_json, 'journal': self.journal, 'key': "
        "None, 'roster': None}"
    ),
    "a run with keys goes on without them: its members do not hear it, and anybody may answer",
)
def test_a_run_is_resumed_with_its_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"run": RUN, "broker": "mqtt://localhost", "key": "server.key", "roster": "roster"}
    Journal.begin(tmp_path, RUN, {"options": options, "protocol": "survey", "given": {}}).close()
    keys: list[tuple[Path | None, Path | None]] = []
    monkeypatch.setattr(
        join.Server, "__call__", lambda server, *_: keys.append((server.key, server.roster))
    )
    join.Resume(RUN, tmp_path)()
    assert keys == [(Path("server.key"), Path("roster"))]


def test_labels_of_a_file_are_stored_with_the_run() -> None:
    """As a list of texts in the journal, and the protocol that reads it is the same."""
    settings: dict[str, str | tuple[str, ...]] = {"labels": ("a", "b;c"), "column": "colour"}
    server = join.Server(broker="mqtt://localhost", run="r")
    began = server._began(Frequency, settings, Randomness.choose(1, False))
    settings = json.loads(json.dumps(began["given"]))
    assert Frequency.from_settings(settings) == Frequency(labels=("a", "b;c"), column="colour")
