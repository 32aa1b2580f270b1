"""`--plot`: every protocol draws its result, or is refused before anybody is asked."""

from contextlib import nullcontext
from pathlib import Path

import pytest

import local_dp as ldp
from local_dp.cli.inspect.plan import Compare, Mix
from local_dp.protocols.local_protocol import PROTOCOLS, find_protocol
from local_dp.protocols.planning.ways import estimators
from tests.support.long import short
from tests.support.runs.command import local_dp
from tests.support.wrong import wrong

CLIENTS = {"mean-found": 20_000}
# each kind of figure, and of refusal
DRAWN = ("survey", "frequency", "quantiles", "masked-parity", "learn")
MIXED, COMPARED = (
    [name for name in PROTOCOLS.usable() if role.takes(find_protocol(name))]
    for role in (Mix, Compare)
)


@wrong(
    "local_dp.cli.run.run:Run.__call__",
    "self.check_files(kind.name, kind.figureless, rows=False)",
    "self.check_files(kind.name, '')",
    "clients pay for a result that is then not drawn",
    at="run-identity",
)
@pytest.mark.parametrize(
    ("command", "name"),
    short(
        [*(("run", name) for name in PROTOCOLS.usable()), *(("mix", name) for name in MIXED)],
        lambda each: each[1] in DRAWN,
        several=True,
    ),
)
def test_a_figure_is_drawn_or_refused(command: str, name: str, tmp_path: Path) -> None:
    """A refusal says so before a round begins; a result without rows is drawn too."""
    figure = tmp_path / "result.svg"
    done = local_dp(
        command,
        name,
        "--clients",
        str(CLIENTS.get(name, 2000)),
        "--seed",
        "1",
        "--plot",
        str(figure),
    )
    if find_protocol(name).figureless:
        assert done.returncode == 2
        assert done.stdout == ""
        assert figure.exists() is False
        assert "leave out --plot" in done.stderr
        assert "replied" not in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert figure.exists() is True, done.stderr


@pytest.mark.parametrize(
    "name",
    short(PROTOCOLS.usable(), lambda name: name not in ("histogram", "crosstab", "frequency")),
)
def test_a_command_takes_what_it_lists(name: str) -> None:
    """`mix` and `compare` list the protocols that they answer, and refuse the others; `plan`
    answers every one."""
    assert ldp.plan(name).rows
    for lines, answers in (
        (MIXED, lambda: ldp.mix(name, clients=2000, seed=1)),
        (
            [each for each in COMPARED if each != "heavy-hitters"],
            lambda: estimators(find_protocol(name)(), 1.0),
        ),
    ):
        with (
            nullcontext()
            if name in lines
            else pytest.raises(ldp.InputError, match=r"no shares of symbols|nothing to compare")
        ):
            answers()


@wrong(
    "local_dp.cli.run.run:ByProtocol.list_commands",
    "[name for name in PROTOCOLS.usable() if self.role.takes(find_protocol(name))]",
    "PROTOCOLS.usable()",
    "`mix` lists protocols that it always refuses",
)
def test_a_command_for_few_protocols_names_them() -> None:
    refusal = local_dp("mix", "survey", "--help")
    assert refusal.returncode == 2
    assert "it is for crosstab, frequency, histogram" in refusal.stderr
    assert not [
        name
        for name in PROTOCOLS.usable()
        if (f"\n  {name} " in local_dp("mix", "--help").stdout) != (name in MIXED)
    ]
