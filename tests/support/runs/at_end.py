"""What the end of a test closes, even if it fails: stores, journals and connections."""

from contextlib import ExitStack

OPEN = ExitStack()
