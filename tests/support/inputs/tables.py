"""Real tables that ship inside installed packages: nothing is downloaded."""

import json
from pathlib import Path

import numpy as np

from local_dp.records import Records


def fair() -> Records:
    """6,366 women's marriages (statsmodels): eight features and `affairs`."""
    # not statsmodels.api, which imports everything
    from statsmodels.datasets import (
        fair as shipped,
    )

    frame = shipped.load_pandas().data
    return Records({name: frame[name].to_numpy() for name in frame.columns})


def breast_cancer() -> Records:
    """569 tumours (scikit-learn): 30 measurements with spaces in their names, `target` 1 for
    benign."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    return Records(
        {
            **dict(zip(data.feature_names.tolist(), data.data.T.copy(), strict=True)),
            "target": data.target,
        }
    )


def diabetes() -> Records:
    """442 patients (scikit-learn): ten features and `target`, a year's progression, 25 to 346, with
    median 140.5."""
    from sklearn.datasets import load_diabetes

    data = load_diabetes()
    return Records(
        {**dict(zip(data.feature_names, data.data.T.copy(), strict=True)), "target": data.target}
    )


def cars() -> Records:
    """406 cars (vega_datasets), of which 392 are complete: six numbers, of which some are missing,
    and `Origin`."""
    from vega_datasets import data

    rows = json.loads(Path(data.cars.filepath).read_text())
    names = (
        "Miles_per_Gallon",
        "Cylinders",
        "Displacement",
        "Horsepower",
        "Weight_in_lbs",
        "Acceleration",
    )
    numbers = {
        name: np.array([np.nan if row[name] is None else float(row[name]) for row in rows])
        for name in names
    }
    return Records({**numbers, "Origin": np.array([row["Origin"] for row in rows])})


def bounds(records: Records) -> tuple[str, ...]:
    """The least and the greatest value of every number column, as the bounds that `learn` takes: in
    a test they are public."""
    numbers = {name: values for name, values in records.columns.items() if values.dtype.kind != "U"}
    return tuple(
        f"{name}={np.nanmin(values)}..{np.nanmax(values)}" for name, values in numbers.items()
    )


def real_columns() -> dict[str, np.ndarray]:
    """Ten columns that nobody made up: shares of zeros, long tails, missing numbers, whole
    numbers."""
    affairs, patients, vehicles, tumours = fair(), diabetes(), cars(), breast_cancer()
    columns = (
        (affairs, "affairs", "children", "educ"),
        (patients, "s5", "target"),
        (vehicles, "Horsepower", "Weight_in_lbs"),
        (tumours, "mean area", "area error"),
    )
    return {name: table.numbers(name) for table, *names in columns for name in names} | {
        "benign": tumours.numbers("target")
    }
