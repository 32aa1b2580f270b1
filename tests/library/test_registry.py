"""The one registry: its tables are whole, and a class is found by name, in a module, in a file or
as it is."""

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import isabstract
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import pytest

from local_dp import masked, protocols, queries, randomizers
from local_dp.errors import InputError, RefusedError
from local_dp.experiments import claims
from local_dp.experiments.lab import catalogue
from local_dp.learners import tabular
from local_dp.protocols.local_protocol import PROTOCOLS
from local_dp.queries.query import QUERIES
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.registry import Registry

# channels inside others, which no request names
PARTS = {"affine-blocks", "loloha-code", "noisy-bit", "signed-place", "signed-places", "translates"}
ROOMS = [
    (RANDOMIZERS, (randomizers, masked)),
    (QUERIES, (queries, tabular, masked)),
    (PROTOCOLS, (protocols, masked)),
]


def _modules(room: Any) -> Iterator[Any]:
    yield room
    for entry in walk_packages(getattr(room, "__path__", []), f"{room.__name__}."):
        yield import_module(entry.name)


def _classes(registry: Registry[Any], rooms: tuple[Any, ...]) -> dict[str, type[Any]]:
    """Every concrete class of the rooms with a name of its own, by that name."""
    classes = {}
    for room in rooms:
        kinds: list[Any] = [
            each
            for module in _modules(room)
            for each in vars(module).values()
            if isinstance(each, type)
        ]
        for kind in kinds:
            if (
                issubclass(kind, registry.base)
                and not isabstract(kind)
                and "name" in vars(kind)
                and kind.__module__.startswith(room.__name__)
            ):
                classes[kind.name] = kind
    return classes


@pytest.mark.parametrize(("registry", "rooms"), ROOMS, ids=lambda each: getattr(each, "noun", ""))
def test_the_table_has_every_class_of_its_room(
    registry: Registry[Any], rooms: tuple[Any, ...]
) -> None:
    """Every concrete class with a name is in the written table or a part of another; every entry
    loads, and bears its name."""
    classes = _classes(registry, rooms)
    assert set(registry.built_in) == classes.keys() - PARTS
    for name, kind in classes.items():
        assert name in PARTS or registry[name] is kind


def test_the_catalogue_has_every_claim() -> None:
    """Every module of the claims with an experiment is in the written table, and no other; an
    experiment bears its name."""
    modules = [
        entry.name
        for entry in walk_packages(claims.__path__, f"{claims.__name__}.")
        if not entry.ispkg
    ]
    assert {name for name in modules if hasattr(import_module(name), "EXPERIMENT")} == set(
        catalogue.chosen("all")
    )
    assert [catalogue.load(module).name for module in catalogue.chosen("all")] == list(
        catalogue.NAMES
    )


def test_names_are_listed_without_an_import() -> None:
    """Names need no class: to list them all imports nothing, and to know one neither."""
    program = (
        "import sys; from local_dp.randomizers.registry import RANDOMIZERS; from "
        "local_dp.queries.query import QUERIES\n"
        "before = set(sys.modules); names = [*RANDOMIZERS, *QUERIES]; assert 'grr' in RANDOMIZERS\n"
        "assert not any(name.startswith('local_dp') for name in set(sys.modules) - before)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


OWN = """
from local_dp.randomizers.frequencies.grr import GRR

class Mine(GRR):
    name = "mine"
"""


def test_a_class_is_found_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By name, in a module of the working folder, in a file elsewhere, or given itself; anything
    else is refused in one line."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    Path("found_here.py").write_text(OWN)
    Path("deep").mkdir()
    Path("deep", "found_there.py").write_text(OWN)
    Path("deep", "found_here.py").write_text(OWN)
    assert RANDOMIZERS.find("grr") is RANDOMIZERS.find(GRR) is GRR
    assert [
        RANDOMIZERS.find(place).name for place in ("found_here:Mine", "deep/found_there.py:Mine")
    ] == ["mine", "mine"]
    with pytest.raises(
        InputError, match="found_here' is already a module of another file; rename the file"
    ):
        RANDOMIZERS.find("deep/found_here.py:Mine")
    for wrong, words in (
        ("found_here:Yours", "has no class 'Yours'"),
        ("deep/none.py:Mine", "there is no file"),
        (dict, "is no randomizer"),
    ):
        with pytest.raises(InputError, match=words):
            RANDOMIZERS.find(wrong)  # type: ignore[arg-type]
    with pytest.raises(RefusedError, match="did you mean 'grr'"):
        RANDOMIZERS.find("grrr")
    sys.modules.pop("found_here")
    sys.modules.pop("found_there")


def test_a_plug_in_has_a_name_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given once, a class is known by its name, with parameters as they are typed; a class that is
    defined again replaces itself, and none takes the name of another."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    Path("two_here.py").write_text(OWN + OWN.replace("mine", "ours").replace("Mine", "Ours"))
    assert "ours" not in RANDOMIZERS
    kind, params = RANDOMIZERS.resolve("two_here.py:Mine(epsilon=2, k=4)")
    assert (kind.name, params) == ("mine", {"epsilon": 2, "k": 4})
    assert RANDOMIZERS["ours"].name == "ours"
    five = kind(epsilon=1.0, k=5)  # type: ignore[call-arg]
    assert RANDOMIZERS.text(five) == "mine(epsilon=1.0, word_bits=32, k=5)"
    assert RANDOMIZERS.place(kind) == f"{tmp_path / 'two_here.py'}:Mine"
    again = type("Mine", (GRR,), {"name": "mine", "__module__": "two_here"})
    assert RANDOMIZERS.resolve(again) == (again, {})
    assert RANDOMIZERS["mine"] is again
    for wrong, words in (
        ("two_here.py", "has 2 classes of a randomizer: Mine, Ours; name one"),
        ("two_here.py:Mine(2)", "does not name its parameters"),
        ("two_here.py:Mine(k=open)", "does not name its parameters"),
        (type("Third", (GRR,), {"name": "ours"}), "is named 'ours', as another randomizer is"),
        (type("Third", (GRR,), {"name": "grr"}), "is named 'grr', as another randomizer is"),
        (type("Third", (GRR,), {}), "give it a `name`"),
        (3, "a name, a place, a class or an object of one, and not int"),
    ):
        with pytest.raises(InputError, match=re.escape(words)):
            RANDOMIZERS.resolve(wrong)  # type: ignore[arg-type]
    Path("a:b").mkdir()
    Path("a:b", "two:there.py").write_text(f"print('hello'){OWN.replace('mine', 'apart')}")
    assert RANDOMIZERS.resolve("a:b/two:there.py")[0].name == "apart"
    assert capsys.readouterr().out == ""
    Path("thrice.py").write_text(OWN.replace("mine", "apart"))
    with pytest.raises(InputError, match="is named 'apart', as another randomizer is"):
        RANDOMIZERS.resolve("thrice.py")
    for name in ("two_here", "two:there", "thrice"):
        sys.modules.pop(name)
