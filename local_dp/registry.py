"""The classes of one kind by name: the built-in ones, those that installed packages offer, and
plug-ins, which are named by their place or given as an object. A class is imported when it is first
asked for."""

import ast
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, fields
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import isabstract
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

from local_dp.errors import InputError, RefusedError, interrupted, unknown
from local_dp.foreign import listed

T = TypeVar("T")
_SHOWN = 300  # characters of an error in a package
PLUG_INS: dict[str, str] = {}
"""The place of each module of plug-ins by its name: "package.module" or "path/file.py"."""
_CLASSES: list[type[Any]] = []  # plug-ins that were given as a class or an object


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

    @property
    def plug_ins(self) -> dict[str, type[T]]:
        """The plug-ins by name: those that loaded modules define or import, and those that were
        given."""
        return {vars(kind)["name"]: kind for kind in self._plug_ins()}

    def _plug_ins(self) -> list[type[T]]:
        modules = [sys.modules[name] for name in PLUG_INS if name in sys.modules]
        kinds = [kind for module in modules for kind in self._classes_in(module)]
        return [*kinds, *filter(self._is_kind, _CLASSES)]

    def _classes_in(self, module: ModuleType) -> list[type[T]]:
        """The classes of this kind in a module, other than ours, with a name of their own."""
        return [
            kind
            for kind in vars(module).values()
            if self._is_kind(kind) and not is_ours(kind) and self._is_usable(kind)
        ]

    def _is_usable(self, kind: type[T]) -> bool:
        return isinstance(vars(kind).get("name"), str) and not isabstract(kind)

    def __iter__(self) -> Iterator[str]:
        installed = sorted(self._points.keys() - self.built_in.keys())
        return iter(dict.fromkeys([*self.built_in, *installed, *self.plug_ins]))

    def __len__(self) -> int:
        return sum(1 for _ in iter(self))

    def __contains__(self, name: object) -> bool:
        return name in self._points or name in self.plug_ins

    def __getitem__(self, name: str) -> type[T]:
        """The class called `name`, imported the first time. Raises RefusedError("unknown-NOUN")."""
        kind = self._classes.get(name)
        if kind is None:
            kind = self._load(name)
            if name in self._points:
                self._classes[name] = kind
        return kind

    def find(self, name: str | type[T]) -> type[T]:
        """The class of this name, at "package.module:Class", at "path/file.py:Class", at
        "path/file.py" that defines one, or given itself.

        Raises InputError, or RefusedError for an unknown name.
        """
        if isinstance(name, str) and not is_place(name):
            return self[name]
        kind = self._at(name) if isinstance(name, str) else name
        if not self._is_kind(kind):
            home = f"{self.base.__module__}.{self.base.__qualname__}"
            what = repr(name) if isinstance(name, str | type) else f"a {type(name).__name__}"
            raise InputError(
                f"{what} is no {self.noun}; derive a class from {home} or one of its kinds"
            )
        return kind

    def _at(self, place: str) -> Any:
        """The object at a place."""
        # of a path with a colon too
        home, separator, attribute = (
            ("", "", "") if place.endswith(".py") else place.rpartition(":")
        )
        module = load(home or place)
        if separator and hasattr(module, attribute):
            return getattr(module, attribute)
        kinds = [each for each in self._classes_in(module) if each.__module__ == module.__name__]
        names = [kind.__name__ for kind in kinds]
        if separator:
            raise InputError(unknown(f"{home} has no class", attribute, names))
        if len(kinds) != 1:
            raise InputError(
                f"{place!r} has {len(kinds)} classes of a {self.noun}: {listed(names) or 'none'}; "
                f"name one, as {place}:Class"
            )
        return kinds[0]

    def resolve(self, which: str | type[T] | T) -> tuple[type[T], dict[str, Any]]:
        """The class and the parameters of a name or a place, "shrug(share=0.25)" or
        "path/file.py:Shrug(share=0.25)"; of a class, or of an object.

        From now on the class is known by its name. Raises InputError or RefusedError.
        """
        if isinstance(which, self.base):
            values = {each.name: getattr(which, each.name) for each in fields(cast(Any, which))}
            return self._adopt(type(which)), values
        if not isinstance(which, str | type):
            raise InputError(
                f"a {self.noun} is a name, a place, a class or an object of one, and not "
                f"{type(which).__name__}"
            )
        name, params = split_call(which) if isinstance(which, str) else (which, {})
        return self._adopt(self.find(name)), params

    def text(self, which: str | type[T] | T) -> str:
        """A class or an object as a text that `resolve` reads in this process."""
        if isinstance(which, str):
            return which
        kind, params = self.resolve(which)
        defaults = {each.name: each.default for each in fields(cast(Any, kind))}
        settings = [f"{name}={v!r}" for name, v in params.items() if v != defaults[name]]
        name = str(vars(kind)["name"])
        return f"{name}({', '.join(settings)})" if settings else name

    def name_of(self, which: str | type[T]) -> str:
        """The name of a class that is named, at a place, or given itself."""
        if isinstance(which, str) and not is_place(which):
            return which
        return str(vars(self.resolve(which)[0])["name"])

    def place(self, kind: type[T]) -> str:
        """The text by which a later process finds the class: its name, or a plug-in's place."""
        name, home = str(vars(kind)["name"]), PLUG_INS.get(kind.__module__, "")
        return name if name in self._points else f"{absolute(home)}:{kind.__qualname__}"

    def _adopt(self, kind: type[T]) -> type[T]:
        """A class that is known by its name from now on. Raises InputError where it has none of its
        own, or one of another class."""
        name = str(vars(kind).get("name"))
        if not self._is_usable(kind):
            raise InputError(
                f"{kind.__qualname__} cannot be used as a {self.noun}: give it a `name`, and each "
                "method of its base that has none"
            )
        if name not in self._points:
            self.check(kind)
            alike = [each for each in self._plug_ins() if vars(each)["name"] == name]
            if {(each.__module__, each.__qualname__) for each in [*alike, kind]} == {
                (kind.__module__, kind.__qualname__)
            }:
                note_module(kind)
                if self.plug_ins.get(name) is not kind:
                    _CLASSES.append(kind)  # defined again, it replaces the first
                return kind
        elif self[name] is kind:
            return kind
        raise InputError(
            f"{kind.__qualname__} is named {name!r}, as another {self.noun} is; rename it"
        )

    def _is_kind(self, kind: Any) -> bool:
        return isinstance(kind, type) and issubclass(kind, self.base)

    def _load(self, name: str) -> type[T]:
        point = self._points.get(name)
        if point is None:
            if (plug_in := self.plug_ins.get(name)) is not None:
                return plug_in
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


def is_place(text: str) -> bool:
    """True for "package.module:Class", "path/file.py:Class" and "path/file.py"."""
    return ":" in text or text.endswith(".py")


def split_call(text: str) -> tuple[str, dict[str, Any]]:
    """The name and the parameters of "NAME" or "NAME(parameter=value, ...)", each value a literal
    of Python. Raises InputError."""
    name, bracket, rest = text.partition("(")
    if not bracket:
        return text, {}
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if isinstance(call, ast.Call) and not call.args:
            return name, {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    raise InputError(f"{text!r} does not name its parameters; write NAME(parameter=value, ...)")


def load(place: str) -> ModuleType:
    """The module "package.module", on the path or in the working folder, or of "path/file.py"; its
    plug-ins are known by their names from now on. Raises InputError."""
    file = Path(place).resolve()
    is_file = file.suffix == ".py"
    if is_file and not file.is_file():
        raise InputError(f"there is no file {place!r}; correct its path")
    folder = str(file.parent if is_file else Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)  # last: an installed module of the same name comes first
    try:
        with redirect_stdout(sys.stderr):  # what it prints is no part of a result
            module = import_module(file.stem if is_file else place)
    # the code is somebody else's, and may raise anything
    except (Exception, SystemExit) as error:  # noqa: BLE001
        raise InputError(f"{place!r} cannot be imported: {cause_of(error)}") from None
    if is_file and Path(str(module.__file__)).resolve() != file:
        raise InputError(
            f"{place!r} cannot be imported: {file.stem!r} is already a module of another file; "
            "rename the file"
        )
    PLUG_INS.setdefault(module.__name__, place)
    return module


def is_ours(kind: type[Any]) -> bool:
    """True for a class of this library."""
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def absolute(place: str) -> str:
    """A place whose file, if there is one, does not depend on the working folder."""
    home, separator, attribute = place.partition(".py")
    file = Path(home + separator)
    return f"{file.absolute()}{attribute}" if separator and file.is_file() else place


def note_module(kind: type[Any]) -> None:
    """Notes the module of a class as one of plug-ins, where other processes can import it."""
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    if is_ours(kind) or module is None or module.__name__ == "__main__" or file is None:
        return
    if getattr(module, kind.__qualname__, None) is kind:
        is_alone = "." not in module.__name__ and Path(file).suffix == ".py"
        PLUG_INS.setdefault(module.__name__, file if is_alone else module.__name__)
