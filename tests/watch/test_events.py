"""The page's view of a run: estimates of what has come, coefficients with errors that hold, and no
truth of a private run."""

import json
import math
from typing import Any

import numpy as np
import pytest

from local_dp.api.asking import RunOptions
from local_dp.errors import QuorumError
from local_dp.masked.protocols import MaskedParityLearner
from local_dp.noise import KeyedNoise
from local_dp.oracles.local import oracles
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.protocols.learning.sgd import LocalSGD
from local_dp.protocols.local_protocol import PROTOCOLS, LocalProtocol
from local_dp.protocols.parity.ladder import LadderAgain
from local_dp.protocols.search.quantiles import Quantiles
from local_dp.protocols.surveys.frequency import Frequency
from local_dp.protocols.surveys.survey import Survey
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.server.pages import POINTS
from local_dp.server.progress import Attendance, Interim, Progress, RoundProgress
from local_dp.server.watch.events import ROUNDS, ROWS, Scene, coefficients
from local_dp.simulation.execute import execute
from local_dp.simulation.outcome import as_data
from local_dp.simulation.settings import Settings, Tier
from tests.support.inputs.builders import small, survey_query, with_law
from tests.support.long import short

SOME = (
    "survey",
    "histogram",
    "mean",
    "quantiles",
    "masked-parity",
    "ladder-in-turn",
    "learn-logistic-regression",
    "marginals",
    "heavy-hitters",
)


def _settings(
    protocol: LocalProtocol[Any], clients: int, tier: Tier = "population", private: bool = False
) -> Settings:
    return RunOptions(
        clients=clients, seed=None if private else 7, private=private, tier=tier
    ).settings(protocol, None)


def _play(settings: Settings) -> tuple[Scene, list[Progress]]:
    """The scene of a run that has ended, and what it was shown."""
    scene, steps = Scene(settings), list[Progress]()

    def both(progress: Progress) -> None:
        if isinstance(progress, RoundProgress) and progress.interim is not None:
            assert sum(tally.n for tally in progress.interim.tallies()) == progress.answered
        steps.append(progress)
        scene.show(progress)

    scene.finish(as_data(settings, execute(settings, both)))
    return scene, steps


def test_the_estimate_is_of_what_has_come() -> None:
    """After 300 and 1,200 of 2,000 reports the page has the estimate of those 300 and 1,200, whose
    interval is half as wide."""
    randomizer, scene = BinaryRR(1.0), Scene(_settings(Survey(), 2000))
    query = survey_query(2000, 0, randomizer)
    reports = np.tile(np.array([1, 0, 0], dtype=np.uint8), 400)
    for n in (300, 1200):
        tally = randomizer.tally(reports[:n], np.zeros(1, dtype=np.uint8))
        scene._next = -math.inf
        scene.show(
            RoundProgress(
                1,
                n,
                2000,
                1.0,
                9.0,
                spent=1.0,
                interim=Interim((query,), lambda tally=tally: (tally,)),  # type: ignore[misc]
            )
        )
        estimate = randomizer.estimate(tally)
        assert scene.state["rows"][0]["value"] == pytest.approx(float(estimate.value))
        assert scene.state["rows"][0]["low"] == pytest.approx(float(estimate.interval()[0]))
    (early, *_), (late, *_) = scene.state["history"]
    assert (early, late) == (300, 1200)
    assert scene.state["history"][1][1] == pytest.approx(scene.state["history"][0][1] / 2, rel=0.02)
    assert (scene.state["spent"], scene.state["rounds"][0]["answered"]) == (1.0, 1200)


def test_too_little_to_estimate_is_no_error() -> None:
    """A round of which nothing has come, or too little to decode, shows no estimate and does not
    disturb the run; who joined is shown before."""
    scene = Scene(_settings(Survey(), 2000))
    scene.show(Attendance(95, 100, ((3, 4), (10, 14))))
    assert scene.state["status"] == "Clients are joining; waiting for 3, 10 to 13."
    empty = BinaryRR(1.0).empty()
    scene.show(
        RoundProgress(
            1, 1, 2000, 1.0, 9.0, interim=Interim((survey_query(2000),), lambda: (empty,))
        )
    )
    assert (scene.state["phase"], scene.state["rows"]) == ("asking", [])


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("tier", ["population", "aggregate", "hosts"])
def test_a_run_shows_its_tallies_in_every_tier(tier: Tier, monkeypatch: pytest.MonkeyPatch) -> None:
    """In each tier the tallies shown hold all reports so far, the last are the run's own, and the
    page ends with its result."""
    monkeypatch.setattr(oracles, "CHUNK", 100)
    scene, steps = _play(_settings(Survey(), 1000, tier))
    rounds = [each for each in steps if isinstance(each, RoundProgress)]
    assert [each.answered for each in rounds] == sorted(each.answered for each in rounds)
    assert (rounds[-1].answered, rounds[-1].spent) == (1000, 1.0)
    # none, and after each chunk
    assert len({each.answered for each in rounds}) == 11 or tier != "population"
    assert rounds[-1].interim is not None
    (tally,) = rounds[-1].interim.tallies()
    state = scene.state
    assert (tally.n, state["phase"]) == (1000, "over")
    assert state["rows"][0]["value"] == pytest.approx(float(BinaryRR(1.0).estimate(tally).value))
    assert state["history"][-1][0] == 1000


def test_a_ladder_says_what_its_numbers_are() -> None:
    """Of a run whose result is no estimate the last round's are not called the result; the sum over
    its rounds is of reports, not of clients."""
    scene, _ = _play(_settings(LadderAgain(k=3), 200))
    assert scene.state["heading"] == "What was estimated"
    assert "Reports: 600 asked, 600 answered." in scene.state["result"]
    assert scene.state["facts"].startswith(
        "fully interactive local (FI), tier population, 200 clients"
    )
    survey, _ = _play(_settings(Survey(), 400))
    assert survey.state["heading"] == "Result"
    assert ("code", "question") in survey.state["what"]


def test_a_private_run_shows_no_truth() -> None:
    scene, _ = _play(_settings(Survey(), 400))
    assert scene.state["rows"][0]["truth"] == 0.3
    assert any("True error" in line for line in scene.state["result"])
    scene, _ = _play(_settings(Survey(), 400, private=True))
    assert scene.state["rows"][0]["truth"] is None
    assert not any("True error" in line for line in scene.state["result"])
    assert "seed" not in scene.state["stamp"]


@pytest.mark.long
def test_a_state_stays_small() -> None:
    """Hundreds of rounds and of labels leave a state of bounded size, and a state that was handed
    out does not change."""
    scene, _ = _play(_settings(LocalSGD(), 4000))
    assert len(scene.state["rounds"]) == ROUNDS
    assert len(scene.state["history"]) <= POINTS
    before = scene.state
    text = json.dumps(before, allow_nan=False)
    scene.fail(QuorumError("too few replies"))
    assert (json.dumps(before, allow_nan=False), scene.state["status"]) == (
        text,
        "The run has ended: too few replies.",
    )
    wide, _ = _play(_settings(Frequency(k=100), 4000))
    assert (len(wide.state["rows"]), wide.state["more"]) == (ROWS, 100 - ROWS)


def test_masked_parity_shows_the_coefficients_of_both_rounds() -> None:
    """The two-round learner ends with d bits of r, of mean (-1)^(r_j) / (2 d), and the parity of r,
    of mean (-1)^a / 2.

    With eight times the clients of 95 % success a sign is wrong with probability below 1e-6.
    """
    protocol = MaskedParityLearner(d=4, r=0b1011, a=1)
    scene, _ = _play(_settings(protocol, 8 * protocol.clients(1.0)))
    rows = scene.state["rows"]
    assert [row["label"] for row in rows] == [
        "bit 0 of r",
        "bit 1 of r",
        "bit 2 of r",
        "bit 3 of r",
        "parity 0xb",
    ]
    assert [row["value"] < 0 for row in rows] == [True, True, False, True, True]
    assert (scene.state["coefficients"], scene.state["more"]) == (True, 0)
    last = rows[-1]
    # of round 2 alone
    assert scene.state["history"][-1][1:] == pytest.approx(
        [(last["high"] - last["low"]) / 2, last["value"], last["low"], last["high"]]
    )


@pytest.mark.parametrize(("epsilon", "n"), [(1.0, 20), (2.0, 20), (4.0, 5), (4.0, 20), (4.0, 80)])
def test_the_intervals_of_the_coefficients_hold_from_the_first_reports_on(
    epsilon: float, n: int
) -> None:
    """Bits of r over 40 seeds: at least 94 % of the intervals contain the truth, less 4 standard
    deviations; by measured errors 70 %."""
    covers = []
    for seed in range(40):
        (query,) = next(MaskedParityLearner(d=8).algorithm(epsilon, 8000).play())
        oracle = PopulationOracle(
            MaskedParityLearner(d=8, r=0xB5, a=1).synthetic(n, seed),
            KeyedNoise(seed),
            seed,
            epsilon,
        )
        (tally,) = oracle.answer((query.restricted(0, n),))
        for place, (_, _, _, low, high) in enumerate(coefficients(query, tally)):
            assert low < high
            covers.append(low <= (1 - 2 * (0xB5 >> place & 1)) / 16 <= high)
    assert np.mean(covers) >= 0.94 - 4 * (0.94 * 0.06 / len(covers)) ** 0.5


def test_an_open_interval_is_said_to_be_open() -> None:
    scene, _ = _play(_settings(Quantiles(), 20))
    (row,) = scene.state["rows"]
    assert row["value"] is not None
    assert (row["low"], row["high"]) == (None, None)
    assert "(open to open)" in row["text"]


@pytest.mark.parametrize(
    "name", short(PROTOCOLS, lambda name: name in SOME and name != "heavy-hitters")
)
def test_every_protocol_can_be_watched(name: str) -> None:
    scene, _ = _play(
        RunOptions(clients=20 if name in with_law() else 5000, seed=1, epsilon=4.0).settings(
            small(name), None
        )
    )
    assert scene.state["phase"] == "over"
    assert scene.state["rows"]
    assert scene.state["history"]
    json.dumps(scene.state, allow_nan=False)
