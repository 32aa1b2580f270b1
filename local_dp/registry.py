"""The classes of one kind by name: the built-in ones, and those that installed packages offer. A
class is imported when it is first asked for."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

from local_dp.errors import InputError, RefusedError, interrupted, unknown

T = TypeVar("T")
_SHOWN = 300  # characters of an error in a package
_LIBRARY = Path(__file__).parent
_NAMED = re.compile(
    r'^class (\w+)|^    name: ClassVar\[str\] = "([a-z0-9-]+)"|^(\w+) = [a-z_]+\("([a-z0-9-]+)"\)$',
    re.MULTILINE,
)


@dataclass(frozen=True)
class Registry(Mapping[str, type[T]]):
    """The classes of one kind by name: the built-in ones first, in the order of their files.

    The `files` are patterns from the folder of the library. In them each class with
    `name: ClassVar[str] = "..."` is built in, and each constant made by a function of its name;
    `parts` are names that no request may use. Packages add classes by the entry points `group`.
    `check` refuses bad ones.
    """

    noun: str
    group: str
    base: type[T]
    files: tuple[str, ...]
    parts: frozenset[str] = frozenset()
    check: Callable[[type[T]], object] = lambda kind: None  # every class will do

    @cached_property
    def built_in(self) -> Mapping[str, str]:
        """The home of each built-in class, "module:Class", by its name. Files are read, not
        imported."""
        homes: dict[str, str] = {}
        for file in (file for pattern in self.files for file in sorted(_LIBRARY.glob(pattern))):
            module, kind = (
                ".".join(("local_dp", *file.relative_to(_LIBRARY).with_suffix("").parts)),
                "",
            )
            for opened, name, made, made_name in _NAMED.findall(file.read_text(encoding="utf-8")):
                kind = opened or made or kind
                if name or made_name:
                    homes[name or made_name] = f"{module}:{kind}"
        return {name: home for name, home in homes.items() if name not in self.parts}

    @cached_property
    def _points(self) -> dict[str, EntryPoint]:
        built_in = {
            name: EntryPoint(name, home, self.group) for name, home in self.built_in.items()
        }
        return {
            **{point.name: point for point in entry_points(group=self.group)},
            **built_in,
        }  # a package cannot take the name of a built-in one

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
            raise self._unknown(
                unknown(
                    f"there is no {self.noun} named",
                    name,
                    self,
                    f"local-dp {self.group.rpartition('.')[2]}",
                )
            )
        try:
            kind = point.load()
        except (
            BaseException
        ) as error:  # the code is somebody else's, and may raise anything while it is imported
            if interrupted(error):
                raise
            cause = " ".join(f"{type(error).__name__}: {error}".split())[:_SHOWN]
            raise self._unknown(
                f"the package that offers {name!r} cannot be imported: {cause}; reinstall or "
                "remove it"
            ) from error
        if not (isinstance(kind, type) and issubclass(kind, self.base)):
            raise self._unknown(
                f"{point.value} is no class derived from {self.base.__name__}; correct that "
                f"package's entry point {name!r}"
            )
        if (own := getattr(kind, "name", None)) != name:
            raise self._unknown(
                f"{point.value} is named {own!r}, and its entry point {name!r}; make them equal"
            )
        try:
            self.check(kind)
        except InputError as error:
            raise self._unknown(
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

    def _unknown(self, message: str) -> RefusedError:
        return RefusedError(f"unknown-{self.noun}", message)
