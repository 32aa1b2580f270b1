"""`local-dp export`: a real table to try things on."""

from pathlib import Path
from typing import Annotated

import typer

from local_dp.errors import InputError

TABLES = ("fair",)


def export(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="fair: 6,366 women's answers about their marriages (Fair 1978).")],
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="Where to write it.")],
) -> None:
    """Writes a real table that an installed package ships, as CSV; needs the extra `[examples]`."""
    if table not in TABLES:
        raise InputError(f"no table named {table!r}; there is {', '.join(TABLES)}")
    try:
        from statsmodels.datasets import fair
    except ImportError:
        raise InputError("the table ships inside statsmodels, which is not installed; run: pip install 'local-dp[examples]'") from None
    fair.load_pandas().data.to_csv(file, index=False)
