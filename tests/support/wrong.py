"""Wrong twins: a test runs once more with one text of the source replaced, and must then fail.

`@wrong("local_dp.wire:decode", "old", "new", "why")` above a test adds such a run to the long
suite. The texts are Python as `ast.unparse` writes it, so that a formatter cannot break them.
"""

import ast
import builtins
import functools
import gc
import inspect
import shutil
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from tests.support import web

SCRIPTS = ("clients/web", "server/poll/pages", "tests/web", "tests/poll", "docs/vectors")
_LAYERS = ("fget", "func", "__func__", "__wrapped__")  # what may lie around a function


@dataclass(frozen=True)
class Text:
    """`old` occurs once in a function, "module:name", in a script, "folder/name.js", or is an
    assignment of a module; a twin has `new` in its place. Of a parametrised test the run named `at`
    must fail."""

    target: str
    old: str
    new: str
    why: str
    at: str = ""


def wrong(target: str, old: str, new: str, why: str, at: str = "") -> pytest.MarkDecorator:
    """Marks a test that must fail for this twin. See `Text`."""
    return pytest.mark.wrong(Text(target, old, new, why, at))


def twins_of(item: pytest.Function) -> Iterator[pytest.Function]:
    """The further runs of a test, one for each of its twins."""
    case = item.callspec.id if hasattr(item, "callspec") else ""
    for mark in item.iter_markers("wrong"):
        twin: Text = mark.args[0]
        if twin.at != case:
            continue
        run = pytest.Function.from_parent(
            item.parent,
            name=f"{item.name}[wrong: {twin.why}]",
            callspec=getattr(item, "callspec", None),
            callobj=item.obj,
            fixtureinfo=item._fixtureinfo,
            originalname=item.originalname,
        )
        run.stash[TWIN] = twin
        run.add_marker(pytest.mark.long)
        yield run


def check_twins(items: Iterable[pytest.Item]) -> None:
    """Raises pytest.UsageError for a twin of a case, `at`, that its test does not have."""
    twins = {mark.args[0] for item in items for mark in item.iter_markers("wrong")}
    cases = {item.stash.get(TWIN, None) for item in items}
    missing = [f"{twin.why!r} has no case {twin.at!r}" for twin in twins - cases]
    if missing:
        raise pytest.UsageError("; ".join(sorted(missing)))


TWIN = pytest.StashKey[Text]()


def fails(twin: Text) -> Iterator[None]:
    """Runs a test where its twin is in place, as a hook's wrapper: what it raises is expected."""
    with in_place(twin):
        try:
            yield
        except (Exception, pytest.fail.Exception):  # noqa: BLE001 - a test may fail in any way
            return
    pytest.fail(f"no one notices: {twin.why}", pytrace=False)


@contextmanager
def in_place(twin: Text) -> Iterator[None]:
    """Replaces the text until the end of the block; values that functions remember are dropped."""
    if twin.target.endswith(".js"):
        with _scripts(twin):
            yield
        return
    name, _, path = twin.target.partition(":")
    module = import_module(name)
    place: Any = module
    if path:
        place = _function(functools.reduce(getattr, path.split("."), place))
        key, value = "__code__", _recompile(place, twin)
    else:
        key, value = _assign(module, twin)
    right = getattr(place, key)
    _forget()
    setattr(place, key, value)
    try:
        yield
    finally:
        setattr(place, key, right)
        _forget()


@contextmanager
def _scripts(twin: Text) -> Iterator[None]:
    """Has Node and the browser read a copy of the scripts, with the text of one file replaced."""
    right = web.ROOT
    with TemporaryDirectory() as folder:
        for part in SCRIPTS:
            shutil.copytree(right / part, Path(folder) / part)
        file = Path(folder) / twin.target
        file.write_text(_replace(file.read_text(encoding="utf-8"), twin), encoding="utf-8")
        web.ROOT = Path(folder)
        try:
            yield
        finally:
            web.ROOT = right


def _replace(text: str, twin: Text) -> str:
    assert text.count(twin.old) == 1, f"{twin.target} has {twin.old!r} {text.count(twin.old)} times"
    return text.replace(twin.old, twin.new)


def _forget() -> None:
    for each in gc.get_objects():
        if isinstance(each, functools._lru_cache_wrapper):
            each.cache_clear()


def _function(target: Any) -> FunctionType:
    """The function inside a property, a method, a cache or another wrapper."""
    while layer := next((name for name in _LAYERS if hasattr(target, name)), ""):
        target = getattr(target, layer)
    assert isinstance(target, FunctionType), target
    return target


def _recompile(function: FunctionType, twin: Text) -> CodeType:
    """The code of a function with the text replaced, and with the same free variables."""
    text = ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(function))))
    definition = ast.parse(_replace(text, twin)).body[0]
    assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
    missing = _names(definition) - _names(ast.parse(text)) - {*function.__globals__, *dir(builtins)}
    assert not missing, f"the twin of {twin.target} fails by {missing}, whatever it does"
    definition.decorator_list = []
    free = function.__code__.co_freevars
    if free:
        uses = ast.parse(f"if False: ({', '.join(free)},)").body
        definition.body += uses
        inner = textwrap.indent(ast.unparse(definition), "    ")
        text = f"def outer({', '.join(free)}):\n{inner}"
    else:
        text = ast.unparse(definition)
    code = compile(text, function.__code__.co_filename, "exec", dont_inherit=True)
    waiting = [code]
    while waiting:
        code = waiting.pop()
        if code.co_name == function.__code__.co_name and code.co_freevars == free:
            return code
        waiting += [each for each in code.co_consts if isinstance(each, CodeType)]
    raise AssertionError(f"{twin.target} cannot be compiled with its twin")


def _names(tree: ast.AST) -> set[str]:
    """The names that are read and never bound inside."""
    read, bound = set[str](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
    return read - bound


def _assign(module: ModuleType, twin: Text) -> tuple[str, Any]:
    """The name and the wrong value of a module's constant."""
    _replace(ast.unparse(ast.parse(inspect.getsource(module))), twin)
    scope = dict(vars(module))
    before = dict(scope)
    exec(compile(twin.new, str(module.__file__), "exec"), scope)
    names = [name for name in scope if scope[name] is not before.get(name)]
    (name,) = [name for name in names if name != "__builtins__"]
    return name, scope[name]
