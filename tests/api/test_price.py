"""`local-dp price` and `local-dp shuffle`: what mechanisms and shuffled reports cost, for a person and as plain data."""

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
    """10,000 answers of .01 beside delta 1e-6: each rule's price, rounded up; as JSON unrounded, and null where a rule promises nothing."""
    done = local_dp("price", "discrete-laplace 0.01 x 10000", "--delta", "1e-6")
    assert done.returncode == 0
    lines = {line.split(":")[0]: line.split()[-1] for line in done.stdout.splitlines()[4:]}
    assert lines == {"basic": "100", "advanced": "6.262", "tanh": "5.757", "zcdp": "5.222", "exact": "4.886"}
    assert "10,000 answers, delta 1e-06" in done.stdout
    assert PRICED.keys() == RULES.keys()
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


@given(st.floats(1e-12, 1e6))
def test_shown_prices_are_rounded_up(price: float) -> None:
    """What is shown is at least the price, by less than a thousandth, and a price of few digits is shown as it is."""
    shown = float(bound(price, True, 4))
    assert price * (1 - 2e-9) <= shown <= price * 1.0011
    assert bound(round(price, 3 - math.floor(math.log10(price))), True, 4) == f"{price:.4g}"


def test_both_sides_are_printed() -> None:
    """The upper bound rounded up, the lower one down; as JSON and in Python the same; with --shuffled the reports together keep to it."""
    output = local_dp("shuffle", "binary-rr", "--clients", "10000").stdout
    assert all(part in output for part in ("0.035659", "0.035658", "known from both sides"))
    data = json.loads(local_dp("shuffle", "grr", "--set", "k=3", "--clients", "1000", "--json").stdout)
    assert data == ldp.shuffled("grr", k=3, clients=1000).to_dict()
    assert data["most"] == min(data["upper"].values()) > data["least"] == max(data["lower"].values())
    assert not data["exact"]
    data = json.loads(local_dp("shuffle", "binary-rr", "--clients", "1000", "--shuffled", "0.2", "--json").stdout)
    assert data["most"] <= 0.2 < data["epsilon"] - 0.8
