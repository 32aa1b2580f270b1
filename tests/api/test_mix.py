"""Blanket messages at the front door: a histogram of several messages a client, behind a shuffler."""

import json
from pathlib import Path

import numpy as np
import pytest

import local_dp as ldp
from local_dp.errors import InputError
from local_dp.noise import Draw, KeyedNoise
from local_dp.protocols.surveys.frequency import Frequency
from local_dp.shuffle import histogram
from local_dp.shuffle.histogram import WORD_BITS, BlanketHistogram
from tests.support.runs.command import local_dp
from tests.support.runs.people import people, written

SEEDS = 300


def test_a_population_is_gathered_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever their size, the tally is that of all clients answering at once, by the words of the same noise."""
    protocol, blankets, noise = Frequency(k=5), BlanketHistogram(5, 1 << 29, 3), KeyedNoise(4)
    population = protocol.synthetic(1000, 2)
    words = noise.words(Draw(1), 0, 3000, WORD_BITS).reshape(1000, 3)
    whole = blankets.tally(blankets.respond(population.values(protocol.query, 0, 1000), words), 1000)
    for size in (1 << 18, 300):
        monkeypatch.setattr(histogram, "_WORDS", size)
        result = blankets.gather(protocol.query, population, noise)
        assert (result.counts.tolist(), result.n) == (whole.counts.tolist(), 1000)


def test_intervals_hold_the_law() -> None:
    """Of 300 runs of 1,000 clients, sampling and blankets together: 95 % of the intervals, within 4.5 standard errors, and the variance that is said."""
    protocol, blankets = Frequency(k=5), BlanketHistogram(5, 1 << 29, 3)
    truth, coverage, errors = protocol.truth(protocol.synthetic(1, 0)), [], []
    for seed in range(SEEDS):
        result = blankets.estimate(blankets.gather(protocol.query, protocol.synthetic(1000, seed), KeyedNoise(SEEDS + seed)))
        low, high = result.interval()
        coverage.append((low <= truth) & (truth <= high))
        errors.append(result.value - truth)
    assert abs(np.mean(coverage) - 0.95) < 4.5 * np.sqrt(0.95 * 0.05 / np.size(coverage))
    expected = truth * (1 - truth) / 1000 + blankets.variance(1000)
    assert np.abs(np.var(errors, axis=0) / expected - 1).max() < 4.5 * np.sqrt(2 / SEEDS)


def test_the_command_is_the_function() -> None:
    typed = local_dp("mix", "frequency", "--k", "4", "--clients", "500", "--epsilon", "2", "--seed", "3", "--json")
    assert json.loads(typed.stdout) == ldp.mix("frequency", k=4, clients=500, epsilon=2.0, seed=3).to_dict()
    output = " ".join(local_dp("mix", "frequency", "--k", "4", "--clients", "500", "--seed", "3").stdout.split())
    assert all(part in output for part in ("The shuffler itself sees the true symbols", "simulation: not private, seed 3"))


def test_a_table_is_mixed(tmp_path: Path) -> None:
    labels = ("baker", "smith", "clerk")
    result = ldp.mix("frequency", people(), column="job", labels=labels, other="category", seed=1).to_dict()
    assert (result["clients"], result["result"]["labels"]) == (4000, [*labels, "(other)"])
    assert result["result"]["true_error"] < 0.02
    assert result["lower"] <= result["upper"] <= 1.0
    arguments = ("--column", "job", "--labels", ";".join(labels), "--other", "category", "--seed", "1", "--json")
    typed = local_dp("mix", "frequency", "--records", str(written(tmp_path)), *arguments)
    assert json.loads(typed.stdout) == result


@pytest.mark.parametrize(
    ("task", "settings", "what"),
    [
        ("survey", {}, "estimates no shares of symbols"),
        ("frequency", {"missing": "exclude"}, "quotient of shares"),
        ("frequency", {"k": 4000, "clients": 2}, "too few for 4000 symbols"),
        ("frequency", {"delta": 0.0}, "delta"),
        ("frequency", {"colour": 1}, "colour"),
    ],
)
def test_what_cannot_be_mixed_is_refused(task: str, settings: dict[str, object], what: str) -> None:
    with pytest.raises(InputError, match=what):
        ldp.mix(task, **settings)  # type: ignore[arg-type]
