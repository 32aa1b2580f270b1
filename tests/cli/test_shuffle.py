"""`local-dp shuffle`: what it says of shuffled reports, and what it refuses."""

import json

import local_dp as ldp
from tests.support.runs.command import local_dp


def test_both_sides_are_printed() -> None:
    output = local_dp("shuffle", "binary-rr", "--clients", "10000").stdout
    assert all(part in output for part in ("0.035659", "0.035658", "known from both sides"))


def test_as_plain_data() -> None:
    data = json.loads(local_dp("shuffle", "grr", "--set", "k=3", "--clients", "1000", "--json").stdout)
    assert data == ldp.shuffled("grr", k=3, clients=1000).to_dict()
    assert data["most"] == min(data["upper"].values()) > data["least"] == max(data["lower"].values())
    assert not data["exact"]


def test_the_largest_epsilon_of_a_report() -> None:
    """With --shuffled the reports together keep to it, and each loses more."""
    data = json.loads(local_dp("shuffle", "binary-rr", "--clients", "1000", "--shuffled", "0.2", "--json").stdout)
    assert data["most"] <= 0.2 < data["epsilon"] - 0.8


def test_what_is_refused() -> None:
    for arguments, words in ((["nobody"], "no randomizer named"), (["grr", "--clients", "1"], "clients is 1"), (["wide-hashing"], "no finite channel")):
        done = local_dp("shuffle", *arguments)
        assert (done.returncode, len(done.stderr.strip().splitlines())) == (2, 1)
        assert words in done.stderr
