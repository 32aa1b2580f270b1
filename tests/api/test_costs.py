"""Costs by closed form: blanket messages behind a shuffler, and prices."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import local_dp as ldp
from local_dp.accounting.rules import RULES
from local_dp.api.costs import RULES as PRICED
from local_dp.errors import InputError
from local_dp.noise import Draw, KeyedNoise
from local_dp.protocols.surveys.frequency import Frequency
from local_dp.shuffle import histogram
from local_dp.shuffle.histogram import WORD_BITS, BlanketHistogram
from local_dp.text.layout import bound
from tests.support.runs.people import people


def test_the_table_has_every_rule() -> None:
    """10,000 answers of .01 beside delta 1e-6: each rule's price, rounded up; as JSON unrounded,
    and null where a rule promises nothing."""
    text = ldp.price("discrete-laplace 0.01 x 10000", delta=1e-6).text()
    lines = {line.split(":")[0]: line.split()[-1] for line in text.splitlines()[4:]}
    assert lines == {
        "basic": "100",
        "advanced": "6.262",
        "tanh": "5.757",
        "zcdp": "5.222",
        "exact": "4.886",
    }
    assert "10,000 answers, delta 1e-06" in text
    assert PRICED.keys() == RULES.keys()
    data = ldp.price("approximate 0.1 1e-4 x 10", delta=9.999e-4).to_dict()
    assert [rule for rule, price in data["epsilon"].items() if price is None] == [
        "basic",
        "advanced",
        "tanh",
        "zcdp",
    ]


def test_delta_beside_an_epsilon() -> None:
    """At the exact price the exact delta is the one that was asked for, and no rule has a smaller
    one."""
    price = ldp.price("pure 0.1 x 100").data["epsilon"]["exact"]
    shares = ldp.price("pure 0.1 x 100", epsilon=price).data["delta"]
    assert shares["exact"] == pytest.approx(1e-6, rel=1e-6)
    assert shares["basic"] is None
    assert all(shares["exact"] <= share for share in shares.values() if share is not None)


@given(st.floats(1e-12, 1e6))
def test_shown_prices_are_rounded_up(price: float) -> None:
    """What is shown is at least the price, by less than a thousandth, and a price of few digits is
    shown as it is."""
    text = float(bound(price, True, 4))
    assert price * (1 - 2e-9) <= text <= price * 1.0011
    assert bound(round(price, 3 - math.floor(math.log10(price))), True, 4) == f"{price:.4g}"


def test_what_is_left_of_a_budget_is_shown_to_the_digit(tmp_path: Path) -> None:
    """Rounded to four digits, 0.99996 would be 1, and then a release for 1 is refused."""
    ldp.budget(file := tmp_path / "b.budget", epsilon=2.0, delta=1e-5)
    release = ldp.curate.mean(
        people(),
        "age",
        bounds=(0, 99),
        outside="clip",
        missing="exclude",
        epsilon=1.00004,
        budget=file,
        seed=1,
    )
    for text in (release.text(), ldp.budget(file).text()):
        assert "0.99996" in text
        assert "1.00004" in text


@pytest.mark.long
def test_both_sides_are_printed() -> None:
    """The upper bound rounded up, the lower one down; with `together` the reports together keep to
    it."""
    output = ldp.shuffled("binary-rr", clients=10000).text()
    assert "0.035659" in output
    assert "0.035658" in output
    assert "known from both sides" in output
    data = ldp.shuffled("grr", k=3, clients=1000).to_dict()
    assert (
        data["most"] == min(data["upper"].values()) > data["least"] == max(data["lower"].values())
    )
    assert not data["exact"]
    data = ldp.shuffled("binary-rr", clients=1000, together=0.2).to_dict()
    assert data["most"] <= 0.2 < data["epsilon"] - 0.8


SEEDS = 300


def test_a_population_is_gathered_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever their size, the tally is that of all clients answering at once, by the words of the
    same noise."""
    protocol, blankets, noise = Frequency(k=5), BlanketHistogram(5, 1 << 29, 3), KeyedNoise(4)
    population = protocol.synthetic(1000, 2)
    words = noise.words(Draw(1), 0, 3000, WORD_BITS).reshape(1000, 3)
    whole = blankets.tally(
        blankets.respond(population.values(protocol.query, 0, 1000), words), 1000
    )
    for size in (1 << 18, 300):
        monkeypatch.setattr(histogram, "_WORDS", size)
        result = blankets.gather(protocol.query, population, noise)
        assert result.counts.tolist() == whole.counts.tolist()
        assert result.n == 1000


def test_intervals_hold_the_law() -> None:
    """Of 300 runs of 1,000 clients, sampling and blankets together: 95 % of the intervals, within
    4.5 standard errors, and the variance that is said."""
    protocol, blankets = Frequency(k=5, of="population"), BlanketHistogram(5, 1 << 29, 3)
    truth, coverage, errors = protocol.truth(protocol.synthetic(1, 0)), [], []
    for seed in range(SEEDS):
        result = blankets.estimate(
            blankets.gather(
                protocol.query, protocol.synthetic(1000, seed), KeyedNoise(SEEDS + seed)
            )
        )
        low, high = result.interval()
        coverage.append((low <= truth) & (truth <= high))
        errors.append(result.value - truth)
    assert abs(np.mean(coverage) - 0.95) < 4.5 * np.sqrt(0.95 * 0.05 / np.size(coverage))
    expected = truth * (1 - truth) / 1000 + blankets.variance(1000)
    assert np.abs(np.var(errors, axis=0) / expected - 1).max() < 4.5 * np.sqrt(2 / SEEDS)


def test_a_table_is_mixed() -> None:
    labels = ("baker", "smith", "clerk")
    result = ldp.mix(
        "frequency", people(), column="job", labels=labels, other="category", seed=1
    ).to_dict()
    assert result["clients"] == 4000
    assert result["result"]["labels"] == [*labels, "(other)"]
    assert result["result"]["true_error"] < 0.02
    assert result["lower"] <= result["upper"] <= 1.0


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
