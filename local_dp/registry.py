"""The classes of one kind by name: the built-in ones, and those that installed packages offer. A
class is imported when it is first asked for."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

from local_dp.errors import InputError, RefusedError, interrupted, unknown

T = TypeVar("T")
_SHOWN = 300  # characters of an error in a package


@dataclass(frozen=True)
class Registry(Mapping[str, type[T]]):
    """The classes of one kind by name: the built-in ones first, in the order of their written
    table.

    `built_in` has the home of each, "module:Class", by its name. Packages add classes by the entry
    points `group`. `check` refuses bad ones.
    """

    noun: str
    group: str
    base: type[T]
    built_in: Mapping[str, str]
    check: Callable[[type[T]], object] = lambda kind: None  # every class will do

    @cached_property
    def _points(self) -> dict[str, EntryPoint]:
        built_in = {
            name: EntryPoint(name, home, self.group) for name, home in self.built_in.items()
        }
        # a package cannot take the name of a built-in one
        return {**{point.name: point for point in entry_points(group=self.group)}, **built_in}

    @cached_property
    def _classes(self) -> dict[str, type[T]]:
        return {}

    def __iter__(self) -> Iterator[str]:
        return iter([*self.built_in, *sorted(self._points.keys() - self.built_in.keys())])

    def __len__(self) -> int:
        return len(self._points)

    def __contains__(self, name: object) -> bool:
        return name in self._points

    def __getitem__(self, name: str) -> type[T]:
        """The class called `name`, imported the first time. Raises RefusedError("unknown-NOUN")."""
        kind = self._classes.get(name)
        if kind is None:
            kind = self._classes[name] = self._load(name)
        return kind

    def find(self, name: str | type[T]) -> type[T]:
        """The class of this name, at "package.module:Class", at "path/file.py:Class", or given
        itself.

        Raises InputError, or RefusedError for an unknown name.
        """
        if isinstance(name, str) and ":" not in name:
            return self[name]
        try:
            kind: type[T] = _import_object(name) if isinstance(name, str) else name
        # the code is somebody else's, and may raise anything
        except (Exception, SystemExit) as error:  # noqa: BLE001
            raise InputError(f"{name!r} cannot be imported: {cause_of(error)}") from None
        if not self._is_kind(kind):
            home = f"{self.base.__module__}.{self.base.__qualname__}"
            raise InputError(
                f"{name!r} is no {self.noun}; derive a class from {home} or one of its kinds"
            )
        return kind

    def _is_kind(self, kind: Any) -> bool:
        return isinstance(kind, type) and issubclass(kind, self.base)

    def _load(self, name: str) -> type[T]:
        point = self._points.get(name)
        if point is None:
            raise self._refusal(
                unknown(
                    f"there is no {self.noun} named",
                    name,
                    self,
                    f"local-dp {self.group.rpartition('.')[2]}",
                )
            )
        try:
            kind: type[T] = point.load()
        except BaseException as error:
            # the code is somebody else's, and may raise anything while it is imported
            if interrupted(error):
                raise
            cause = cause_of(error)[:_SHOWN]
            raise self._refusal(
                f"the package that offers {name!r} cannot be imported: {cause}; reinstall or "
                "remove it"
            ) from error
        if not self._is_kind(kind):
            raise self._refusal(
                f"{point.value} is no class derived from {self.base.__name__}; correct that "
                f"package's entry point {name!r}"
            )
        if (own := getattr(kind, "name", None)) != name:
            raise self._refusal(
                f"{point.value} is named {own!r}, and its entry point {name!r}; make them equal"
            )
        try:
            self.check(kind)
        except InputError as error:
            raise self._refusal(
                f"{point.value} cannot be used as a {self.noun}: {error}"
            ) from error
        return kind

    def build(self, name: str, params: Mapping[str, Any]) -> T:
        """`name` with these parameters. Raises RefusedError("unknown-NOUN" or "bad-parameters")."""
        kind = self[name]
        try:
            return kind(**params)
        except (
            TypeError,
            ValueError,
            ArithmeticError,
            LookupError,
            AttributeError,
            RecursionError,
            InputError,
        ) as error:
            raise RefusedError(
                "bad-parameters",
                f"{name} does not accept {dict(params)}: {str(error).removeprefix(f'{name}: ')}",
            ) from error

    def usable(self) -> list[str]:
        """The names whose class can be imported and used."""
        names = []
        for name in self:
            with suppress(RefusedError):
                self[name]
                names.append(name)
        return names

    def load_all(self) -> None:
        """Imports every built-in class: a process does so once before it forks its children."""
        for name in self.built_in:
            self[name]

    def _refusal(self, message: str) -> RefusedError:
        return RefusedError(f"unknown-{self.noun}", message)


def cause_of(error: BaseException) -> str:
    """An error of foreign code, in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def _import_object(place: str) -> Any:
    """The object at "package.module:Name", on the path or in the working folder, or at
    "path/file.py:Name"."""
    module, _, attribute = place.rpartition(":")
    file = Path(module).resolve()
    is_file = file.suffix == ".py"
    folder = str(file.parent if is_file else Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)  # last: an installed module of the same name comes first
    home = import_module(file.stem if is_file else module)
    if is_file and Path(str(home.__file__)).resolve() != file:
        raise ImportError(f"{file.stem!r} is already a module of another file; rename the file")
    return getattr(home, attribute)
