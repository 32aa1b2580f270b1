"""The result of a run."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local_dp.errors import InputError
from local_dp.experiments.api.printable import WIDTH, Printable
from local_dp.experiments.api.show import summary
from local_dp.experiments.tiers.outcome import Shown, estimates
from local_dp.protocols.local_protocol import LocalProtocol

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True)
class Picture:
    """A figure as PNG: a notebook shows it."""

    png: bytes

    def _repr_png_(self) -> bytes:
        return self.png


@dataclass(frozen=True, repr=False)
class Result(Printable):
    """A run's result: prints itself as one block, and is plain data by `to_dict`.

    `value` is an `Estimate` (value, standard error, interval) or a hypothesis. `data` is the JSON of `local-dp run --json`: randomizer, parameters, model,
    counts of clients, spent budget, and in a simulation the truth.
    """

    protocol: LocalProtocol[Any]
    value: Any

    def text(self, width: int = WIDTH) -> str:
        return summary(self.data, width)

    @property
    def estimate(self) -> Any:
        """The estimate, a number or a list of them; None for a hypothesis."""
        return self.data["result"].get("estimate")

    @property
    def interval(self) -> Any:
        """The 95 % interval (low, high) of the estimate, or a list of them; None for a hypothesis."""
        return self.data["result"].get("interval")

    @property
    def truth(self) -> Any:
        """The truth, in a simulation; None in a private run."""
        return self.data["result"]["truth"]

    def to_polars(self) -> "polars.DataFrame":
        """The estimates as a frame: label, estimate, standard_error, low, high. Raises InputError for a hypothesis."""
        import polars

        rows = [(label, value, error, low, high) for label, value, error, (low, high) in self._estimates()]
        numbers = dict.fromkeys(("estimate", "standard_error", "low", "high"), polars.Float64)
        return polars.DataFrame(rows, schema={"label": polars.String, **numbers}, orient="row")

    def plot(self, path: str | Path | None = None) -> Picture | None:
        """Draws the estimates with their intervals and, where known, the truth: into `path` (.png, .svg or .pdf), else as a picture for a notebook."""
        from local_dp.experiments.api.picture import draw

        self._estimates()
        if path is not None:
            draw(self.data, Path(path))
            return None
        with tempfile.TemporaryDirectory() as folder:
            drawn = Path(folder) / "estimates.png"
            draw(self.data, drawn)
            return Picture(drawn.read_bytes())

    def _estimates(self) -> list[Shown]:
        if "estimate" not in self.data["result"]:
            raise InputError(f"{self.protocol.name} learns a hypothesis: there is no estimate to show; print the result")
        return estimates(self.data["result"])
