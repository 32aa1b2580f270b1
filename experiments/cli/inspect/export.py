"""`local-dp export`: a real table to try things on."""

from dataclasses import dataclass
from pathlib import Path

from local_dp.errors import InputError, unknown
from local_dp.experiments.cli.fields import argument
from local_dp.experiments.text.screen import SCREEN

TABLES = ("fair",)


@dataclass(frozen=True)
class Export:
    """Writes a real table that an installed package ships, as CSV; needs the extra `[examples]`."""

    table: str = argument("fair: 6,366 women's answers about their marriages (Fair 1978).", metavar="TABLE")
    file: Path = argument("Where to write it.", metavar="FILE.csv")

    def __call__(self) -> None:
        if self.table not in TABLES:
            raise InputError(unknown("no table named", self.table, TABLES))
        SCREEN.working("loading statsmodels, which ships the table")
        try:
            from statsmodels.datasets import fair
        except ImportError:
            raise InputError("the table ships inside statsmodels, which is not installed; run: pip install 'local-dp[examples]'") from None
        fair.load_pandas().data.to_csv(self.file, index=False)
