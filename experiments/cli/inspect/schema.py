"""`local-dp schema`: the form of a run's JSON."""

from dataclasses import dataclass
from importlib.resources import files

from local_dp.experiments.text.screen import SCREEN


@dataclass(frozen=True)
class Schema:
    """Prints the JSON schema of what `run --json` and `server --json` print."""

    def __call__(self) -> None:
        SCREEN.tell(files("local_dp.experiments.tiers").joinpath("outcome.schema.json").read_text().rstrip())
