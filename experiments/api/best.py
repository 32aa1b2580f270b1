"""The best randomizer for a task: for a person and as plain data."""

from dataclasses import asdict, dataclass
from typing import Any

from local_dp.bounds import best
from local_dp.checks import check_whole
from local_dp.experiments.api.told import WIDTH, Told
from local_dp.experiments.text.layout import paragraph, table
from local_dp.experiments.text.notation import number


@dataclass(frozen=True, repr=False)
class BestFor(Told):
    """The randomizer, its parameters, n times its variance, the reason, and the others."""

    def text(self, width: int = WIDTH) -> str:
        data = self.data
        given = ", ".join(f"{name}={value}" for name, value in data["parameters"].items())
        error = "" if data["clients"] is None else f" With {data['clients']:,} clients the standard error is {number(data['error'])}."
        head = paragraph(f"{data['randomizer']}({given}): {data['reason']}.{error}", width, "  ")
        rows = [(name, number(variance)) for name, variance in [(data["randomizer"], data["variance"]), *data["others"]]]
        headings = "randomizer", f"n times the variance of {data['of']}"
        return f"{head}\n\n{table(headings, rows, width)}"


def best_for(task: str, *, epsilon: float = 1.0, k: int = 2, clients: int | None = None) -> BestFor:
    """The best known randomizer for a task at this epsilon, by closed form, with its reason.

    "survey": the share of a yes; "frequency": the shares of `k` symbols; "mean": the mean in [0, 1] of the distribution that the clients are drawn from;
    "table-mean": that of the clients' own numbers; "mean-vector": of vectors in [-1, 1]^k, all coordinates' variances together; "ball-vector": of those in the
    unit ball; "strings": the share of one of all strings of `k` bits. With `clients`, the standard error of so many.
    Raises InputError.
    """
    found = best.best_for(task, epsilon, k)
    if clients is not None:
        check_whole("clients", clients, 1, 10**15)
    told: dict[str, Any] = {"task": task, "clients": clients, **asdict(found), "error": None if clients is None else found.error(clients)}
    return BestFor({**told, "others": [list(pair) for pair in found.others]})
