"""The command line.

Exit codes: 0 done; 1 a claim does not hold; 2 bad usage or input; 3 a round under quorum; 4 refused (budget of clients or of a table, unknown
or unverifiable randomizer); 5 the bus; 6 a result that is degraded, as reports were lost by choice or are impossible.
"""

import os
import re
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from local_dp.errors import BusError, InputError, LocalDPError, QuorumError, RefusedError
from local_dp.experiments.text.screen import CLOSED_PIPE, SCREEN

EXIT_CODES: dict[type[LocalDPError], int] = {InputError: 2, QuorumError: 3, RefusedError: 4, BusError: 5}
DEGRADED = 6  # a result whose reports were lost by choice, or are impossible
INTERRUPTED = 130
VARIABLE = "_LOCAL_DP_COMPLETE"  # that a shell sets to have a name completed
HEAVY = frozenset(("amqtt", "matplotlib", "polars", "scipy"))  # the distribution local-dp-client lacks them


def main() -> None:
    """The entry point: errors become one line and an exit code, also while the commands are still being imported."""
    with _orderly() as ended:
        try:
            with SCREEN:
                code = _run()
        except LocalDPError as error:
            SCREEN.complain(getattr(error, "plain", str(error)))
            code = next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] not in HEAVY:
                raise
            SCREEN.complain(f"this command needs {error.name}, which a client's installation lacks; pip install local-dp has every command")
            code = EXIT_CODES[InputError]
        except (OSError, MemoryError, OverflowError, RecursionError) as error:  # of this machine, or of extreme numbers
            SCREEN.complain(_of_the_machine(error))
            code = EXIT_CODES[InputError]
        except SystemExit as error:
            if error.code == CLOSED_PIPE or VARIABLE in os.environ:  # our own, and click's after it has completed a name
                raise
            SCREEN.complain(f"foreign code, such as a plug-in's, ended the program with SystemExit({error.code!r}) and no result; correct or remove it")
            code = EXIT_CODES[InputError]
        except KeyboardInterrupt:
            exec("pass")  # an interrupt inside exec(), as in a dataclass, would else end the interpreter by the signal and not by our code
            code = 128 + ended[0] if ended else INTERRUPTED
    sys.exit(code)


@contextmanager
def _orderly() -> Iterator[list[int]]:
    """Makes SIGTERM and a closed terminal end this process like an interrupt, with its child processes and folders. Gives the list of received signals."""
    ended: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        if ended:
            return  # it is ending already
        ended.append(number)
        interrupt = signal.getsignal(signal.SIGINT)
        if callable(interrupt):
            interrupt(signal.SIGINT, frame)
        else:
            raise KeyboardInterrupt  # of a process in the background

    ours = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]  # not under nohup
    for number in ours:
        signal.signal(number, end)
    try:
        yield ended
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _of_the_machine(error: Exception) -> str:
    """An error of the machine or its files, in one line."""
    if isinstance(error, OSError):
        named = f" of {str(error.filename)!r:.80}" if error.filename is not None else ""
        return f"the system refuses{named}: {error.strerror or error}"
    if isinstance(error, MemoryError):
        return "this takes more memory than there is; ask for less"
    return "a number is too large or too small to be computed with; give another"


_RECORDS = ("--table", "--data", "--file", "--input")
MEANT = {"--bounds": ("--low", "--high"), "--n": ("--clients",), **dict.fromkeys(_RECORDS, ("--records",))}  # a name in other tools, and ours


def _run() -> int:
    """Runs the typed command and gives its exit code. Errors of click become InputErrors."""
    from click.exceptions import Abort, ClickException, NoArgsIsHelpError, NoSuchOption, UsageError

    from local_dp.experiments.cli.commands import APP

    try:
        done = APP.main(prog_name="local-dp", standalone_mode=False)
    except Abort:
        raise KeyboardInterrupt from None
    except NoArgsIsHelpError as error:
        SCREEN.tell(error.message)
        return EXIT_CODES[InputError]
    except NoSuchOption as error:
        options = [option for each in (error.ctx.command.params if error.ctx else ()) for option in each.opts]
        meant = [each for each in MEANT.get(error.option_name, ()) if each in options] or (error.possibilities or [])[:1]
        parameter = f"a parameter is typed as --set {error.option_name[2:]}=VALUE; " * ("--set" in options)
        near = f"did you mean {' and '.join(map(repr, meant))}? " if meant else parameter
        called = error.ctx.command_path if error.ctx else "local-dp"
        raise InputError(f"no option {error.option_name!r}; {near}`{called} --help` lists the options") from None
    except UsageError as error:
        extra = re.fullmatch(r"Got unexpected extra arguments? \((.*)\)", error.format_message())
        known = [option for each in (error.ctx.command.params if error.ctx else ()) for option in each.opts]
        if extra is None or "--records" not in known:
            raise InputError(error.format_message()) from None
        raise InputError(f"{extra[1]!r:.80} follows no option; give a table as --records {shlex.quote(extra[1])}") from None
    except ClickException as error:
        raise InputError(error.format_message()) from None
    return done if isinstance(done, int) else 0
