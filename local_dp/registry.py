"""What there is of a kind, by name: the built-in ones, and those that installed packages offer as entry points. A class is imported when it is asked for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from local_dp.errors import InputError, RefusedError, unknown

T = TypeVar("T")
_SHOWN = 300  # characters of what went wrong in a package


@dataclass(frozen=True)
class Registry(Mapping[str, type[T]]):
    """The classes of one kind by name, the built-in ones first, in their order.

    `built_in` maps a name to its home, "module:Class"; packages add theirs under the entry-point group `group`.
    """

    noun: str
    group: str
    base: type[T]
    built_in: Mapping[str, str]

    @cached_property
    def _points(self) -> dict[str, EntryPoint]:
        built_in = {name: EntryPoint(name, home, self.group) for name, home in self.built_in.items()}
        return {**{point.name: point for point in entry_points(group=self.group)}, **built_in}  # a package cannot take the name of a built-in one

    @cached_property
    def _loaded(self) -> dict[str, type[T]]:
        return {}

    def __iter__(self) -> Iterator[str]:
        return iter([*self.built_in, *sorted(self._points.keys() - self.built_in.keys())])

    def __len__(self) -> int:
        return len(self._points)

    def __contains__(self, name: object) -> bool:
        return name in self._points

    def __getitem__(self, name: str) -> type[T]:
        """The class called `name`, imported the first time. Raises RefusedError("unknown-NOUN")."""
        kind = self._loaded.get(name)
        if kind is None:
            kind = self._loaded[name] = self._load(name)
        return kind

    def _load(self, name: str) -> type[T]:
        point = self._points.get(name)
        if point is None:
            raise self._unknown(unknown(f"there is no {self.noun} named", name, self))
        try:
            kind = point.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # the code is somebody else's, and may raise anything while it is imported
            said = " ".join(f"{type(error).__name__}: {error}".split())[:_SHOWN]
            raise self._unknown(f"the package that offers {name!r} cannot be imported: {said}; reinstall it, or take it away") from error
        if not (isinstance(kind, type) and issubclass(kind, self.base) and getattr(kind, "name", None) == name):
            raise self._unknown(f"{point.value} is not a {self.base.__name__} named {name!r}; correct that package's entry point")
        return kind

    def build(self, name: str, params: Mapping[str, Any]) -> T:
        """`name` with these parameters. Raises RefusedError("unknown-NOUN" or "bad-parameters")."""
        kind = self[name]
        try:
            return kind(**params)
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError, InputError) as error:
            raise RefusedError("bad-parameters", f"{name} does not accept {dict(params)}: {error}") from error

    def load_all(self) -> None:
        """Imports every built-in class: a process that is about to fork does so once for all its children."""
        for name in self.built_in:
            self[name]

    def _unknown(self, message: str) -> RefusedError:
        return RefusedError(f"unknown-{self.noun}", message)
