"""Which code runs, by its source."""

from importlib import import_module
from pathlib import Path

import pytest

from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.verification import sources
from local_dp.verification.sources import code_digest


class Named(BinaryRR):
    """Of a package, or of a notebook."""


def test_code_is_known_by_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class has another digest after any file of its package, or a version in the environment,
    has changed; code without a file has none."""
    (tmp_path / "coined").mkdir()
    for name in ("__init__.py", "loaded.py", "tables.py"):
        (tmp_path / "coined" / name).write_text("class Loaded: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    classes = [import_module("coined.loaded").Loaded]
    digests = [code_digest(classes), code_digest(()), code_digest([BinaryRR])]
    assert digests[0] == code_digest(classes) != digests[1] == digests[2]
    (tmp_path / "coined" / "tables.py").write_text("class Loaded: pass  # of another form\n")
    for cache in (sources.source_digest, sources._digest):
        cache.cache_clear()
    digests.append(code_digest(classes))
    monkeypatch.setattr(sources, "distributions", list)
    sources._digest.cache_clear()
    digests.append(code_digest(classes))
    sources._digest.cache_clear()
    monkeypatch.setattr(Named, "__module__", "__main__")
    assert code_digest([Named]) == b""
    assert len(set(digests)) == 4
