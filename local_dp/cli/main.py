"""The command line.

Exit codes: 0 done; 1 a claim does not hold; 2 bad usage or input; 3 a round under quorum; 4 refused
(budget of clients or of a table, unknown or unverifiable randomizer); 5 the bus; 6 a result that is
degraded, as reports were lost by choice or are impossible.
"""

import math
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from local_dp.errors import (
    EXTREME,
    BusError,
    InputError,
    LocalDPError,
    QuorumError,
    RefusedError,
    interrupted,
)
from local_dp.text.screen import CLOSED_PIPE, SCREEN

if TYPE_CHECKING:
    from click.exceptions import UsageError

EXIT_CODES: dict[type[LocalDPError], int] = {
    InputError: 2,
    QuorumError: 3,
    RefusedError: 4,
    BusError: 5,
}
DEGRADED = 6  # a result whose reports were lost by choice, or are impossible
INTERRUPTED = 130
# seconds in which an ending is not interrupted, and after which a lost interrupt is raised again
_PATIENCE, _MOMENT = (10.0, 0.01)
VARIABLE = "_LOCAL_DP_COMPLETE"  # that a shell sets to have a name completed
# the distribution local-dp-client lacks them
HEAVY = frozenset(("amqtt", "matplotlib", "polars", "scipy"))


def main() -> None:
    """The entry point: errors become one line and an exit code, also while the commands are still
    being imported."""
    with _orderly() as signals:
        try:
            try:
                with SCREEN:
                    code = _run()
            except Exception as error:
                if not interrupted(error):
                    raise
                raise KeyboardInterrupt from None
        except LocalDPError as error:
            SCREEN.complain(getattr(error, "plain", str(error)))
            code = next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] not in HEAVY:
                raise
            SCREEN.complain(
                f"this command needs {error.name}, which a client's installation lacks; pip "
                "install local-dp has every command"
            )
            code = EXIT_CODES[InputError]
        except (OSError, MemoryError, OverflowError, ZeroDivisionError, RecursionError) as error:
            # of this machine, or of extreme numbers
            SCREEN.complain(_of_the_machine(error))
            code = EXIT_CODES[InputError]
        except SystemExit as error:
            # our own, and click's after it has completed a name
            if error.code == CLOSED_PIPE or VARIABLE in os.environ:
                raise
            SCREEN.complain(
                "foreign code, such as a plug-in's, ended the program with "
                f"SystemExit({error.code!r}) and no result; correct or remove it"
            )
            code = EXIT_CODES[InputError]
        except KeyboardInterrupt:
            SCREEN.complain(_last_words(sys.argv[1:]))
            code = 128 + signals[0] if signals else INTERRUPTED
    sys.exit(code)


class Ended(KeyboardInterrupt):
    """SIGTERM or SIGHUP. Not the plain interrupt: after one inside exec() the interpreter ends
    itself by SIGINT, whatever the exit code."""


@contextmanager
def _orderly() -> Iterator[list[int]]:
    """Makes SIGTERM and a closed terminal end this process like an interrupt, with its child
    processes and folders. Gives the list of received signals.

    In a finalizer, or the callback of a weak reference, Python only reports an interrupt: it is
    raised again a moment later. Afterwards signals are ignored.
    """
    signals, latest, report = list[int](), -math.inf, sys.unraisablehook

    def interrupt(number: int, frame: FrameType | None) -> None:
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler) or handler is signal.default_int_handler:
            raise Ended
        handler(signal.SIGINT, frame)  # that of asyncio, which cancels its task

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal latest
        if time.monotonic() < latest + _PATIENCE:
            return  # it is ending already
        signals.append(number)
        latest = time.monotonic()
        interrupt(number, frame)

    def repeat(event: "sys.UnraisableHookArgs") -> None:
        if not issubclass(event.exc_type, KeyboardInterrupt):
            report(event)
            return
        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, _MOMENT)

    # not under nohup
    ours = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is signal.SIG_DFL
    ]
    for number in ours:
        signal.signal(number, end)
    sys.unraisablehook = repeat
    try:
        yield signals
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number in (*ours, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        sys.unraisablehook = report


def _last_words(words: list[str]) -> str:
    """The line of a command that was interrupted: where a file or other people may have paid, it
    says so."""
    pays = any(word.startswith(("--budget", "--store")) for word in words)
    if pays or {*words[:1]} & {"client", "host", "join", "poll", "server"}:
        return "stopped; `local-dp budget FILE` shows what a budget or store was charged"
    return "stopped; nothing was charged"


def _of_the_machine(error: Exception) -> str:
    """An error of the machine or its files, in one line."""
    if isinstance(error, OSError):
        name = f" of {str(error.filename)!r:.80}" if error.filename is not None else ""
        return f"the system refuses{name}: {error.strerror or error}"
    if isinstance(error, MemoryError):
        return "this takes more memory than there is; ask for less"
    return EXTREME


_RECORDS = ("--table", "--data", "--file", "--input")
# a name in other tools, and ours
MEANT = {
    "--bounds": ("--low", "--high"),
    "--n": ("--clients",),
    **dict.fromkeys(_RECORDS, ("--records",)),
}


def _run() -> int:
    """Runs the typed command and gives its exit code. Errors of click become InputErrors."""
    from click.exceptions import ClickException, Exit, NoArgsIsHelpError, NoSuchOption, UsageError
    from click.shell_completion import shell_complete

    from local_dp.cli.commands import APP

    if instruction := os.environ.get(VARIABLE):
        sys.exit(shell_complete(APP, {}, "local-dp", VARIABLE, instruction))
    try:
        # APP.main() would print at an interrupt
        with APP.make_context("local-dp", sys.argv[1:]) as ctx:
            done = APP.invoke(ctx)
    except Exit as end:
        return end.exit_code
    except NoArgsIsHelpError as error:
        SCREEN.tell(error.message)
        return EXIT_CODES[InputError]
    except NoSuchOption as error:
        options = _options(error)
        guesses = [each for each in MEANT.get(error.option_name, ()) if each in options]
        guesses = guesses or (error.possibilities or [])[:1]
        near = ""
        if guesses:
            near = f"did you mean {' and '.join(map(repr, guesses))}? "
        elif "--set" in options:
            near = f"a parameter is typed as --set {error.option_name[2:]}=VALUE; "
        command = error.ctx.command_path if error.ctx else "local-dp"
        raise InputError(
            f"no option {error.option_name!r}; {near}`{command} --help` lists the options"
        ) from None
    except UsageError as error:
        extra = re.fullmatch(r"Got unexpected extra arguments? \((.*)\)", error.format_message())
        if extra is None or "--records" not in _options(error):
            raise InputError(error.format_message()) from None
        raise InputError(
            f"{extra[1]!r:.80} follows no option; give a table as --records {shlex.quote(extra[1])}"
        ) from None
    except ClickException as error:
        raise InputError(error.format_message()) from None
    return done if isinstance(done, int) else 0


def _options(error: "UsageError") -> list[str]:
    """The options of the command that was typed."""
    params = error.ctx.command.params if error.ctx else ()
    return [option for each in params for option in each.opts]
