"""Exports the extramarital-affairs table (Fair 1978; 6,366 rows) that ships inside statsmodels: `python -m experiments.export_fair FILE.csv`."""

import sys


def main() -> None:
    """Writes the table to the file named on the command line."""
    from statsmodels.datasets import fair

    fair.load_pandas().data.to_csv(sys.argv[1], index=False)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m experiments.export_fair FILE.csv")
    main()
