"""A person's own table, made up."""

from pathlib import Path

import numpy as np

from local_dp.records import Records


def people(n: int = 4000) -> Records:
    generator = np.random.default_rng(7)
    age = generator.integers(18, 90, n)
    job = generator.choice(["baker", "smith", "clerk"], n, p=[0.6, 0.3, 0.1])
    job[:2] = "astronaut"
    return Records(
        {
            "age": age,
            "income": np.exp(generator.normal(10, 1, n)),
            "job": job,
            "old": (age >= 65).astype(np.int64),
        }
    )


def written(folder: Path, records: Records | None = None) -> Path:
    """A table as a file: these people, or others."""
    import polars

    path = folder / "people.csv"
    polars.DataFrame(
        {name: values.tolist() for name, values in (records or people()).columns.items()}
    ).write_csv(path)
    return path
