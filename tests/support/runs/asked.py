"""Questions to a trusted curator about the people of `people`, in Python and as typed in a shell;
and a table of edges."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import local_dp as ldp

Asked = Callable[..., Any]


def asked(name: str, *words: Any, **options: Any) -> Asked:
    """A question by its name, with these words."""
    return lambda rows, **how: getattr(ldp.curate, name)(rows, *words, **options, **how)


QUESTIONS: dict[str, tuple[Asked, str]] = {
    "median": (asked("median", "income"), "--column income"),
    "mean": (
        asked("mean", "age", bounds=(10, 80), outside="clip"),
        "--column age --low 10 --high 80 --outside clip",
    ),
    "intervals": (
        asked("intervals", "age", bounds=(10, 90), bins=4096),
        "--column age --low 10 --high 90 --bins 4096",
    ),
    "learn": (
        asked("learn", "old", features=["age"], bounds={"age": (18, 90)}),
        "--label old --feature age --bound age=18..90",
    ),
    "histogram": (asked("histogram", "job"), "--column job"),
    "quantiles": (asked("quantiles", "income", levels=2), "--column income --levels 2"),
    "threshold": (asked("threshold", "age", "old"), "--column age --label old"),
    "point": (asked("point", "job", "age > 20"), "--column job --label 'age > 20'"),
    "rectangle": (
        asked("rectangle", ["age", "income"], "old == 1", epsilon=8),
        "--column age --column income --label 'old == 1' --epsilon 8",
    ),
}
COLUMNS: dict[str, Any] = {
    "columns": ["old == 1"],
    "cuts": {"age": [30, 50, 65]},
    "labels": {"job": ["baker", "smith"]},
    "other": "category",
}
TYPED = "--column 'old == 1' --cuts 'age=30;50;65' --labels 'job=baker;smith' --other category"
EVERY_QUESTION: dict[str, tuple[Asked, str]] = {
    **QUESTIONS,
    **{name: (asked(name, **COLUMNS), TYPED) for name in ("marginals", "synthetic")},
    "triangles": (
        asked("triangles", "from", "to", nodes=60),
        "--source from --target to --nodes 60",
    ),
}


def edges(folder: Path) -> tuple[Path, int]:
    """The edges of a random graph as a file, and its triangles by the trace of the cube of its
    matrix."""
    import polars

    generator = np.random.default_rng(3)
    matrix = np.triu(generator.random((60, 60)) < 0.3, 1)
    pairs = np.argwhere(matrix)
    path = folder / "edges.csv"
    polars.DataFrame(
        {"from": [f"n{a}" for a in pairs[:, 0]], "to": [f"n{b}" for b in pairs[:, 1]]}
    ).write_csv(path)
    both = (matrix | matrix.T).astype(np.int64)
    return path, int(np.trace(both @ both @ both)) // 6
