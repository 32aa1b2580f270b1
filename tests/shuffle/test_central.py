"""What a run behind a shuffler loses: for the crowds that answered, added up for the client that answers most."""

import json

import pytest

from local_dp.errors import InputError, QuorumError
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.tables import Question
from local_dp.randomizers.frequencies.subset_selection import SubsetSelection
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.shuffle.accountant import amplified, variation_ratio
from local_dp.shuffle.central import Batch, Behind, Crowds, central
from tests.support.inputs.builders import survey_query
from tests.support.runs.command import local_dp

DELTA = 1e-6


def batch(start: int, stop: int, answered: int, randomizer: Randomizer | None = None) -> Batch:
    """So many of these clients answered."""
    return Batch(survey_query(stop, start, randomizer), answered)


def test_one_batch_is_what_the_accountant_says_of_those_that_answered() -> None:
    """Of 900 of the 1,000 that were asked, and from both sides."""
    loss, direct = central([batch(0, 1000, 900)], DELTA), amplified(BinaryRR(1.0), 900, DELTA)
    assert loss.upper == pytest.approx(direct.upper, abs=2e-9)
    assert loss.upper >= direct.upper
    assert loss.lower == direct.lower
    assert (loss.local, loss.times, loss.exact) == (1.0, 1, True)
    assert central([batch(0, 1000, 900), batch(1000, 1300, 300)], DELTA).upper > 1.5 * loss.upper, "of fresh clients the smallest crowd counts"
    assert central([batch(0, 9, 1)], DELTA).upper == 1.0


def test_several_reports_of_one_client_add_up() -> None:
    """By basic composition: half of delta for each of two, and the sum of their epsilons, at most that of the reports themselves."""
    each = BinaryRR(0.5)
    loss = central([batch(0, 1000, 1000, each), batch(0, 1000, 1000, each)], DELTA)
    assert loss.upper == pytest.approx(2 * amplified(each, 1000, DELTA / 2).upper, abs=4e-9)
    assert (loss.local, loss.times) == (1.0, 2)
    assert central([batch(0, 9, 3), batch(0, 9, 3)], DELTA).upper <= 2.0


def test_of_many_kinds_the_general_bound_is_taken() -> None:
    """Five crowds of different sizes: the variation ratio of the smallest."""
    loss = central([batch(1000 * at, 1000 * at + 500 + at, 500 + at) for at in range(5)], DELTA)
    assert loss.upper == pytest.approx(variation_ratio(1.0).epsilon_at_most(500, DELTA, 1.0), rel=1e-4)
    assert loss.lower == 0.0


def test_crowds_are_checked_before_anybody_answers() -> None:
    """A cohort that can be none is refused, and what cannot be shuffled."""
    crowds = Crowds(Behind(100))
    crowds.check((survey_query(100),))
    with pytest.raises(QuorumError, match="99 clients is less than the shuffler's minimum crowd of 100"):
        crowds.check((survey_query(100), survey_query(99)))
    with pytest.raises(InputError, match="memoised"):
        crowds.check((LocalQuery(Question("yes == 1"), BinaryRR(1.0), Cohort(0, 200), memo="a"),))
    with pytest.raises(InputError, match="crowd"):
        Behind(1)


@pytest.mark.parametrize("tier", ["hosts", "aggregate"])
def test_a_run_says_both_epsilons(tier: str) -> None:
    """Local and central, on every tier, with the same estimate where clients are simulated."""
    arguments = ("run", "survey", "--clients", "1000", "--seed", "1", "--tier", tier)
    result = local_dp(*arguments, "--shuffle")
    assert result.returncode == 0, result.stderr
    assert "epsilon 0.126" in result.stdout.replace("\n", " ")
    mixed, plain = (json.loads(local_dp(*arguments, *more, "--json").stdout) for more in (("--shuffle",), ()))
    assert mixed["result"] == plain["result"]
    assert mixed["shuffled"]["local"] == 1.0
    assert mixed["shuffled"]["upper"] == pytest.approx(amplified(BinaryRR(1.0), 1000, DELTA).upper, abs=2e-9)
    assert "shuffled" not in plain


@pytest.mark.parametrize("tier", ["population"])
def test_coins_that_clients_draw(tier: str) -> None:
    """The default oracle for shares needs a coin at epsilon 1: behind a shuffler each client draws its own, and all loses what the accountant says."""
    result = local_dp("run", "frequency", "--clients", "1000", "--seed", "1", "--tier", tier, "--shuffle", "--json")
    assert result.returncode == 0, result.stderr
    data = json.loads(result.stdout)
    assert [each["randomizers"][0]["name"] for each in data["rounds"]] == ["with-coin"]
    assert data["shuffled"]["upper"] == pytest.approx(amplified(SubsetSelection(1.0, k=8), 1000, DELTA).upper, abs=2e-9)


def test_what_cannot_be_shuffled_ends_the_run_at_once() -> None:
    """In one line, before a process is started."""
    done = local_dp("run", "longitudinal", "--changes", "0", "--first", "0.5", "--times", "4", "--clients", "1000", "--seed", "1", "--shuffle")
    assert done.returncode == 2
    assert "cannot be shuffled: a repeated report" in done.stderr.replace("\n", " ")
    few = local_dp("run", "survey", "--clients", "50", "--seed", "1", "--shuffle")
    assert (few.returncode, "minimum crowd of 100" in few.stderr) == (3, True)
