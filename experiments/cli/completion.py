"""Shell completion: the script that asks this program what may come next, shown or put where the shell reads it."""

import os
from pathlib import Path

import click

from local_dp.errors import InputError, unknown
from local_dp.experiments.text.screen import SCREEN

PROGRAM, VARIABLE = "local-dp", "_LOCAL_DP_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
OWN = "yours"  # the shell that the environment names
_START = {"bash": ".bashrc", "zsh": ".zshrc"}


def _shell(asked: str) -> str:
    """One of the shells. Raises InputError."""
    name = Path(os.environ.get("SHELL", "")).name if asked == OWN else asked
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
    """Writes the script to the user's completions, and for bash and zsh a line that reads it to the shell's start file, once. Ends."""
    if not shell or ctx.resilient_parsing:
        return
    shell, home = _shell(shell), Path.home()
    file = home / (".config/fish/completions/local-dp.fish" if shell == "fish" else f".local/share/local-dp/complete.{shell}")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(script(shell, ctx))
    if shell in _START:
        start, line = home / _START[shell], f". '{file}'"
        before = start.read_text() if start.exists() else ""
        if line not in before.splitlines():
            start.write_text(f"{before}{'' if before.endswith(chr(10)) or not before else chr(10)}{line}\n")
    SCREEN.tell(f"{shell} completes local-dp from its next start on: {file}")
    ctx.exit()
