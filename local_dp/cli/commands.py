"""All commands. A command is registered by its line here, and its module is imported at first use,
so that the help is fast.

The home of a command is a dataclass, a dataclass for each protocol (`of_protocols`), or a mapping
of names to dataclasses.
"""

import os
from collections.abc import Callable
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any

import click

from local_dp.cli.fields import SWITCH, Group, Kinds, Option, command_of
from local_dp.cli.main import VARIABLE
from local_dp.errors import InputError, unknown
from local_dp.text.screen import SCREEN

PROGRAM = "local-dp"
SHELLS = ("bash", "zsh", "fish")
OWN = "yours"  # the shell that the environment names
_START = {"bash": ".bashrc", "zsh": ".zshrc"}


def _shell(choice: str) -> str:
    """One of the shells. Raises InputError."""
    name = Path(os.environ.get("SHELL", "")).name if choice == OWN else choice
    if name not in SHELLS:
        raise InputError(unknown("no completion for the shell", name, SHELLS))
    return name


def script(shell: str, ctx: click.Context) -> str:
    """What the shell must read: click's own script for it."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    return f"{kind(ctx.command, {}, PROGRAM, VARIABLE).source().strip()}\n"


def show_completion(ctx: click.Context, param: click.Parameter, shell: str | None) -> None:
    if shell and not ctx.resilient_parsing:
        SCREEN.tell(script(_shell(shell), ctx).rstrip())
        ctx.exit()


def install_completion(ctx: click.Context, param: click.Parameter, shell: str | None) -> None:
    """Writes the script to the user's completions, and for bash and zsh a line that reads it to the
    shell's start file, once. Ends."""
    if not shell or ctx.resilient_parsing:
        return
    shell, home = _shell(shell), Path.home()
    file = home / (
        ".config/fish/completions/local-dp.fish"
        if shell == "fish"
        else f".local/share/local-dp/complete.{shell}"
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(script(shell, ctx))
    if shell in _START:
        start, line = home / _START[shell], f". '{file}'"
        before = start.read_text() if start.exists() else ""
        if line not in before.splitlines():
            start.write_text(
                f"{before}{'' if before.endswith(chr(10)) or not before else chr(10)}{line}\n"
            )
    SCREEN.tell(f"{shell} completes local-dp from its next start on: {file}")
    ctx.exit()


# by group: the home of a command, and its line in the list
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Ask clients": {
        "run": ("run.run:Run", "Run a protocol: clients, server and message bus."),
        "poll": ("run.poll:Ask", "Ask people, who answer on their own phones."),
        "mix": ("inspect.plan:Mix", "Estimate shares behind a shuffler, with blanket messages."),
    },
    "Plan": {
        "plan": ("inspect.plan:Plan", "How many clients an accuracy takes, and what it costs."),
        "compare": (
            "inspect.plan:Compare",
            "Measure randomizers side by side: a table and a figure.",
        ),
        "sweep": ("inspect.plan:Sweeping", "Measure protocols over a grid of settings and seeds."),
        "price": ("curate.budget:Price", "The smallest epsilon of a list of mechanisms together."),
        "shuffle": ("curate.budget:Shuffle", "The epsilon of shuffled reports, from both sides."),
    },
    "Ask a curator": {
        "curate": ("curate.curate:CURATE", "Ask a trusted curator about a table."),
        "budget": ("curate.budget:Budget", "Store a table's privacy budget in a file, or show it."),
        "attack": ("curate.attack:ATTACK", "Measure how much noisy answers about a table reveal."),
    },
    "Study": {
        "experiment": (
            "inspect.experiment:RunExperiment",
            "Run one experiment, or all: claim, figures, verdict.",
        ),
        "report": ("inspect.experiment:Report", "Write pages that explain a folder of results."),
        "dimension": (
            "inspect.check:Dimension",
            "Statistical-query dimensions of a class, clients needed.",
        ),
        "certify": (
            "inspect.check:Certify",
            "Check a certificate: compute every number in it again.",
        ),
        "audit": ("inspect.check:Audit", "Check a randomizer: exact loss, sampler, estimates."),
        "bench": ("inspect.check:Bench", "Measure speeds beside references of the same run."),
    },
    "Deploy": {
        "server": ("run.join:Server", "Coordinate a run whose clients join from elsewhere."),
        "host": ("run.join:Host", "Hold many clients of a run: the rows of a table."),
        "client": ("run.join:Client", "Be one client of a run: one row."),
        "shuffler": ("run.join:Shuffler", "Pass reports on to the server without their senders."),
        "resume": ("run.join:Resume", "Continue a run whose server was killed."),
        "runs": ("run.join:Runs", "List the runs of this machine."),
        "show": ("run.join:Show", "Print the result of a run, or its progress."),
        "keys": ("operate.keys:KEYS", "Make keys that sign messages, and the roster of clients."),
    },
    "Inspect": {
        "protocols": ("inspect.listing:Protocols", "List the protocols."),
        "randomizers": (
            "inspect.listing:Randomizers",
            "List the randomizers, also of installed packages.",
        ),
        "queries": ("inspect.listing:Queries", "List the queries that a client can answer."),
        "mechanisms": ("inspect.listing:Mechanisms", "List the trusted curator's mechanisms."),
        "describe": (
            "inspect.listing:Describe",
            "Describe a protocol, randomizer, query or mechanism.",
        ),
        "schema": ("inspect.listing:Schema", "Print the JSON schema of `run --json`."),
        "export": ("inspect.listing:Export", "Write a real table as CSV; needs `[examples]`."),
    },
}
COMMANDS = {name: home for group in GROUPS.values() for name, home in group.items()}


class Commands(Group):
    """All commands, none of them imported."""

    example = "local-dp run survey --help"

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def line_of(self, name: str) -> str:
        return COMMANDS[name][1]

    def groups(self, ctx: click.Context) -> dict[str, list[str]]:
        return {heading: list(commands) for heading, commands in GROUPS.items()}

    def unknown_command(self, ctx: click.Context, name: str) -> str:
        """Names the group of a protocol, a curator's question or an attack."""
        for group in ("run", "curate", "attack"):
            command = self.get_command(ctx, group)
            if isinstance(command, Group) and name in command.list_commands(ctx):
                return f"{name!r} is a command of {group}: type `local-dp {group} {name}`"
        return super().unknown_command(ctx, name)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name][0].partition(":")
        home = getattr(import_module(f"local_dp.cli.{module}"), attribute)
        command = _command(name, home)
        # the first line stands in the list alone
        command.help = "\n\n".join(
            (COMMANDS[name][1], *cleandoc(command.help or "").split("\n\n")[1:])
        )
        return command


def _command(name: str, home: Any) -> click.Command:
    if isinstance(home, dict):
        return Kinds(
            name, home, cleandoc(import_module(next(iter(home.values())).__module__).__doc__ or "")
        )
    if getattr(home, "of_protocols", False):
        from local_dp.cli.run.run import ByProtocol

        return ByProtocol(name, home)
    return command_of(name, home)


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from local_dp.simulation.installation import installed_version

        SCREEN.tell(f"local-dp {installed_version()}")
        ctx.exit()


def _about_completion(
    name: str, callback: Callable[[click.Context, click.Parameter, str | None], None], brief: str
) -> Option:
    """An option that ends the program, with the name of a shell after it or not."""
    return Option(
        [name],
        {"brief": brief},
        metavar="[SHELL]",
        is_flag=False,
        flag_value=OWN,
        is_eager=True,
        expose_value=False,
        callback=callback,
    )


APP = Commands(
    "local-dp",
    help="A laboratory of the local model of differential privacy. From a task to its command: "
    "docs/guide.md.",
    no_args_is_help=True,
    params=[
        Option(
            ["--version"],
            {"brief": "Show the version and end"},
            callback=_show_version,
            **SWITCH,
        ),
        _about_completion(
            "--show-completion",
            show_completion,
            "Show the script that completes names in bash, zsh or fish",
        ),
        _about_completion(
            "--install-completion", install_completion, "Write that script where the shell reads it"
        ),
    ],
)
