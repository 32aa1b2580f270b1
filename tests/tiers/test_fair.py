"""A real table: the 6,366 rows of the extramarital-affairs data that ship inside statsmodels."""

import pytest

from tests.support.runs.command import local_dp, outcome_of

pytestmark = pytest.mark.usefixtures("warm")


@pytest.fixture(scope="module")
def fair(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The table as CSV, exported by the documented command."""
    path = tmp_path_factory.mktemp("fair") / "fair.csv"
    assert local_dp("export", "fair", str(path)).returncode == 0
    return str(path)


@pytest.mark.parametrize("tier", ["hosts", "population"])
def test_the_true_share_lies_within_four_standard_errors(fair: str, tier: str) -> None:
    """`affairs > 0` at epsilon 1: every client is counted, and the true share, .3225, lies within 4 standard errors of the estimate."""
    arguments = ["survey", "--records", fair, "--question", "affairs > 0", "--epsilon", "1", "--tier", tier, "--seed", "1978"]
    data = outcome_of(*arguments)
    assert data["clients"]["asked"] == data["clients"]["answered"] == 6366
    assert abs(data["result"]["estimate"] - 2053 / 6366) <= 4 * data["result"]["standard_error"]
    assert data["result"]["true_error"] == pytest.approx(abs(data["result"]["estimate"] - 2053 / 6366))


def test_a_rule_is_learnt_over_a_broker(fair: str) -> None:
    """Logistic regression on eight columns by hosts: everybody is asked at most once, and the true accuracy lies within the interval."""
    bounds = "rate_marriage=1..5;age=17..42;yrs_married=0..23;children=0..6;religious=1..4;educ=9..20;occupation=1..6;occupation_husb=1..6"
    settings = ["label=affairs > 0", f"bounds={bounds}", "missing=exclude"]
    arguments = ["learn", "--records", fair, "--tier", "hosts", "--seed", "1978"]
    data = outcome_of(*arguments, *(word for setting in settings for word in ("--set", setting)))
    assert data["interaction"] == "sequentially interactive"
    assert 0.7 * 6366 < data["clients"]["answered"] <= 6366
    assert data["max_epsilon_spent"] == 1
    low, high = data["result"]["score"]["interval"]
    assert low <= data["result"]["true_score"] <= high
    assert "rate_marriage" in data["result"]["hypothesis"]["rule"]
