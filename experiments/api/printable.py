"""Results in Python: plain data that prints itself as one block."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from html import escape
from typing import Any

WIDTH = 100  # characters of the block


@dataclass(frozen=True, repr=False)
class Printable(ABC):
    """Plain data by `to_dict`, as `--json` prints it; a block of text by `print`."""

    data: dict[str, Any]

    @abstractmethod
    def text(self, width: int = WIDTH) -> str:
        """For a person: lines of at most `width` characters where words allow."""

    def __repr__(self) -> str:
        return self.text()

    def to_dict(self) -> dict[str, Any]:
        """The plain data."""
        return self.data

    def _repr_html_(self) -> str:
        return f'<pre style="white-space: pre-wrap; line-height: 1.35">{escape(repr(self))}</pre>'
