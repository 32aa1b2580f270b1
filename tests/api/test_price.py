"""`local-dp price`: what a list of mechanisms costs, for a person and as plain data."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import local_dp as ldp
from local_dp.accounting.rules import RULES
from local_dp.experiments.api.costs import RULES as PRICED
from local_dp.experiments.text.notation import bound
from tests.support.runs.command import local_dp


def test_the_table_has_every_rule() -> None:
    """Ten thousand answers of .01 beside delta 1e-6: a line for each rule, with its price rounded up."""
    done = local_dp("price", "discrete-laplace 0.01 x 10000", "--delta", "1e-6")
    assert done.returncode == 0
    lines = {line.split(":")[0]: line.split()[-1] for line in done.stdout.splitlines()[4:]}
    assert lines == {"basic": "100", "advanced": "6.262", "tanh": "5.757", "zcdp": "5.222", "exact": "4.886"}
    assert "10,000 answers, delta 1e-06" in done.stdout
    assert PRICED.keys() == RULES.keys()


def test_json_has_all_digits() -> None:
    """The same prices, unrounded; what a rule does not promise is null."""
    data = json.loads(local_dp("price", "approximate 0.1 1e-4 x 10", "--delta", "9.999e-4", "--json").stdout)
    assert [rule for rule, price in data["epsilon"].items() if price is None] == ["basic", "advanced", "tanh", "zcdp"]
    assert data == ldp.price("approximate 0.1 1e-4 x 10", delta=9.999e-4).to_dict()
    assert (data["answers"], data["delta"]) == (10, 9.999e-4)


def test_delta_beside_an_epsilon() -> None:
    """--epsilon asks for deltas: at the exact price the exact delta is the one that was asked for, and no rule has a smaller one."""
    price = ldp.price("pure 0.1 x 100").data["epsilon"]["exact"]
    done = local_dp("price", "pure 0.1 x 100", "--epsilon", str(price))
    assert done.returncode == 0
    shares = ldp.price("pure 0.1 x 100", epsilon=price).data["delta"]
    assert shares["exact"] == pytest.approx(1e-6, rel=1e-6)
    assert shares["basic"] is None
    assert all(shares["exact"] <= share for share in shares.values() if share is not None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nope 1",), "no kind of mechanism 'nope'"),
        (("pure 1 x",), "of the form 'pure EPSILON'"),
        (("pure 1", "--delta", "0"), "delta is 0"),
        (("pure 1", "--delta", "much"), "delta is 'much'; give a number"),
        (("pure 1", "--epsilon", "-1"), "epsilon is -1"),
        (("gaussian -3",), "sigma is -3"),
    ],
)
def test_bad_input_gets_one_line(arguments: tuple[str, ...], words: str) -> None:
    done = local_dp("price", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


@given(st.floats(1e-12, 1e6))
def test_shown_prices_are_rounded_up(price: float) -> None:
    """What is shown is at least the price, by less than a thousandth, and a price of few digits is shown as it is."""
    shown = float(bound(price, True, 4))
    assert price * (1 - 2e-9) <= shown <= price * 1.0011
    assert bound(round(price, 3 - math.floor(math.log10(price))), True, 4) == f"{price:.4g}"
