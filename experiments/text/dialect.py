"""Errors in the reader's dialect: a choice is `missing="exclude"` in Python and `--missing exclude` in a shell."""

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from local_dp.errors import InputError

_FLAGS = "labels_from_data|resample|private|shuffle|unverified"
_NAMES = rf"{_FLAGS}|missing|other|outside|labels|by|randomizer|tier|hosts|broker|seed|deadline|quorum|allow|crowd|cluster|stores|worst_case|fault|lifetime"
_PAIR = re.compile(rf"""(?<![\w-])({_NAMES})=("[^"]*"|'[^']*'|[\w.]+)""")
_OPTION = re.compile(rf"--({_NAMES.replace('_', '-')})\b(?: (processes|hosts|population|aggregate)\b)?")
_BARE = re.compile(r"\blabels_from_data\b(?!=)")
_COMMAND = re.compile(r"\blocal-dp .*", re.DOTALL)  # a command to type stays a command


class PythonInputError(InputError):
    """An InputError whose choices are keywords of Python; `plain` is its text before."""

    def __init__(self, plain: str) -> None:
        super().__init__(in_python(plain))
        self.plain = plain


@contextmanager
def python_errors() -> Iterator[None]:
    """Raises an InputError from inside in the dialect of Python."""
    try:
        yield
    except PythonInputError:
        raise
    except InputError as error:
        raise PythonInputError(str(error)) from error.__cause__


def in_shell(text: str) -> str:
    """The text with every `name=value` as an option of the command line."""

    def option(match: re.Match[str]) -> str:
        name, value = f"--{match[1].replace('_', '-')}", match[2].strip("\"'")
        return name if re.fullmatch(_FLAGS, match[1]) else f"{name} {shlex.quote(value)}"

    return _BARE.sub("--labels-from-data", _PAIR.sub(option, text))


def in_python(text: str) -> str:
    """The text with every `--name value` and every `name=value` as a keyword of a function."""
    command = _COMMAND.search(text)
    end = command.start() if command else len(text)
    prose = _OPTION.sub(lambda match: f'{match[1].replace("-", "_")}="{match[2]}"' if match[2] else match[1].replace("-", "_"), text[:end])
    prose = _PAIR.sub(lambda match: f"{match[1]}={_literal(match[2])}", prose.replace("--records", "the table"))
    return _BARE.sub("labels_from_data=True", prose) + text[end:]


def _literal(value: str) -> str:
    """A value as Python writes it: labels that a shell separates by semicolons are a list."""
    text = value.strip("\"'")
    if re.fullmatch(r"\d[\d.e]*|True|False|None", text):
        return text
    return str(text.split(";")).replace("'", '"') if ";" in text else f'"{text}"'
