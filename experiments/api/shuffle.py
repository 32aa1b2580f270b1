"""What the shuffled reports of a randomizer lose: for a person and as plain data."""

from dataclasses import dataclass
from typing import Any

from local_dp.domains import Parameter
from local_dp.experiments.api.audit import built
from local_dp.experiments.api.told import WIDTH, Told
from local_dp.experiments.text.layout import paragraph, table
from local_dp.experiments.text.notation import bound
from local_dp.shuffle.accountant import amplified, largest_local

TOLD = {
    "no shuffler": "the server knows who sent what",
    "closed form": "Feldman, McMillan, Talwar 2021",
    "clones": "the same, computed",
    "variation ratio": "any randomizer of this epsilon",
    "blanket": "this randomizer; Balle, Bell, Gascon, Nissim 2019",
    "all data sets": "the worst one, found and proved",
    "others hold one value": "a pair of data sets, its delta bounded from below",
}


@dataclass(frozen=True, repr=False)
class Shuffled(Told):
    """Bounds from both sides on the epsilon of shuffled reports."""

    def text(self, width: int = WIDTH) -> str:
        return shown(self.data, width)


def shuffled(name: str, *, clients: int, epsilon: float = 1.0, delta: float = 1e-6, together: float | None = None, **parameters: Parameter) -> Shuffled:
    """The epsilon of `clients` shuffled reports of a randomizer beside `delta`, by every rule. Raises InputError or RefusedError.

    With `together`, an epsilon after shuffling, that of one report is the largest at which the shuffled reports are proved to lose no more than this.
    """
    if together is not None:
        epsilon = largest_local(lambda local: built(name, local, parameters), clients, together, delta)
    found = amplified(built(name, epsilon, parameters), clients, delta)
    asked = {"randomizer": name, "parameters": dict(parameters), "epsilon": epsilon, "clients": clients, "delta": delta}
    return Shuffled({**asked, "upper": found.uppers, "lower": found.lowers, "least": found.lower, "most": found.upper, "exact": found.exact})


def shown(data: dict[str, Any], width: int) -> str:
    """Both sides for a person, the upper ones rounded up and the lower ones down."""
    named = " ".join([data["randomizer"], *(f"{key}={value}" for key, value in data["parameters"].items())])
    head = f"{named}: {data['clients']:,} shuffled reports of epsilon {data['epsilon']:.6g} each, delta {data['delta']:g}"
    rows = [(f"at most: {rule}", TOLD[rule], bound(most, True)) for rule, most in data["upper"].items()]
    rows += [(f"at least: {rule}", TOLD.get(rule, "the worst data set"), bound(least, False)) for rule, least in data["lower"].items()]
    verdict = "The epsilon of the worst data set is known from both sides." if data["exact"] else "The epsilon of the worst data set lies between the two."
    trust = "This holds if all of them answer, and if the shuffler does not tell who sent what; from the shuffler itself a report hides its own epsilon only."
    return "\n\n".join([paragraph(head, width, "  "), table(("epsilon", "by", "nats"), rows, width), paragraph(f"{verdict} {trust}", width, "  ")])
