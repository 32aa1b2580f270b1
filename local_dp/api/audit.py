"""Audits a randomizer: a built-in one, one of an installed package, or a class in your own
module."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from local_dp.api.declare import WIDTH, Printable, by_name, settings_of
from local_dp.domains import Parameter
from local_dp.errors import InputError, RefusedError, unknown
from local_dp.randomizers.evidence import PROVEN
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.registry import cause_of, is_place, split_call
from local_dp.text.layout import paragraph
from local_dp.text.widgets import table
from local_dp.verification.audit import audit as _audited

GRADES = {
    "exact": (
        "exact: the loss is computed from the whole channel, and the sampler is enumerated and "
        "compared with it"
    ),
    "declared": (
        "declared: the loss is computed from the declared channel; the sampler is compared with "
        "it at some words and by drawing"
    ),
    "black box": (
        "black box: no channel is declared; reports can reveal a violation, but cannot prove that "
        "there is none"
    ),
}


@dataclass(frozen=True, repr=False)
class Audited(Printable):
    """The findings of an audit."""

    @property
    def holds(self) -> bool:
        """True if no check found a fault."""
        return bool(self.data["holds"])

    def text(self, width: int = WIDTH) -> str:
        """The verdict first, then each check."""
        data = self.data
        faults = [each for each in data["findings"] if not each["holds"]]
        verdict = "no fault was found"
        if not data["holds"]:
            proven = any(each["check"] != "loss" or each["witness"] is not None for each in faults)
            verdict = "IT DOES NOT HOLD" if proven else "NOT VERIFIED"
        loss = "" if data["loss"] is None else f", exact loss {data['loss']:.12g}"
        head = paragraph(
            f"{data['randomizer']}, epsilon {data['epsilon']:g}{loss}: {verdict}", width, "  "
        )
        acceptance = (
            "which clients accept"
            if data["evidence"] in PROVEN
            else "which clients refuse unless their policy accepts it"
        )
        rows = [("evidence", f"{data['evidence']}, {acceptance}"), ("grade", GRADES[data["grade"]])]
        for each in data["findings"]:
            fails = "" if each["holds"] else "FAILS: "
            kind = "exact" if each["exact"] else "not exhaustive"
            rows.append((each["check"], f"{fails}{each['said']} ({kind})"))
            if each["witness"] is not None:
                label = "  witness" if each["holds"] else "  WITNESS"
                rows.append((label, _witness(each["witness"])))
        return f"{head}\n\n{table(('', ''), rows, width)}"


Which: TypeAlias = str | type[Randomizer] | Randomizer


@by_name
def audit(name: Which, *, epsilon: float = 1.0, **parameters: Parameter) -> Audited:
    """Audits a randomizer: by name or place, with an epsilon and parameters, a class, or one that
    is made already. Raises InputError or RefusedError."""
    return Audited(_audited(built(name, epsilon, parameters)).describe())


def built(which: Which, epsilon: float, parameters: Mapping[str, Parameter]) -> Randomizer:
    """The randomizer of this name, with parameters in parentheses too, of this class, at this
    place, or itself where it is made already. Raises InputError, or RefusedError for an unknown
    name."""
    if isinstance(which, Randomizer):
        if parameters or epsilon not in (1.0, which.epsilon):
            raise InputError(
                f"{which.name} is made already, with epsilon {which.epsilon:g}; give its class to "
                "set epsilon or parameters"
            )
        return which
    name, own = (
        split_call(which)
        if isinstance(which, str)
        else (str(getattr(which, "__name__", which)), {})
    )
    kind = RANDOMIZERS.find(name if isinstance(which, str) else which)
    epsilon, parameters = own.pop("epsilon", epsilon), {**own, **parameters}
    names = [each.name for each in fields(kind) if each.name != "epsilon"]
    if "epsilon" in parameters:
        raise InputError(
            f"epsilon is set to {parameters['epsilon']!r}; it has an option of its own: give "
            "--epsilon"
        )
    if wrong := parameters.keys() - set(names):
        raise InputError(unknown(f"{name} has no parameter", min(wrong), names))
    try:
        randomizer = kind(epsilon, **parameters)  # type: ignore[arg-type]
        facts = (randomizer.name, randomizer.evidence, randomizer.domain, randomizer.report_dtype)
    except InputError as error:
        raise InputError(f"{name} cannot be made: {str(error).removeprefix(f'{name}: ')}") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code may raise anything
        raise InputError(
            f"{name} cannot be made with epsilon {epsilon!r} and {dict(parameters)}: "
            f"{cause_of(error)}"
        ) from None
    if not all(isinstance(each, str) for each in facts[:2]):
        raise InputError(f"{name} must have a name and an evidence, each a text")
    return randomizer


def parameters_of(settings: tuple[str, ...]) -> dict[str, Parameter]:
    """The parameters in NAME=VALUE: a whole number, a number, text, or with a semicolon several
    texts. Raises InputError."""
    return {
        key: tuple(value.split(";")) if ";" in value else _number(value)
        for key, value in settings_of(settings).items()
    }


def _number(text: str) -> int | float | str:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def refuse_unknown(name: str) -> None:
    """Raises InputError for a name that is neither known nor of the form module:Class."""
    name = split_call(name)[0]
    if not is_place(name) and name not in RANDOMIZERS:
        try:
            RANDOMIZERS[name]
        except RefusedError as error:
            raise InputError(f"{error}; write a class of your own as module:Class") from None


def _witness(witness: dict[str, Any]) -> str:
    ratio = "infinite" if witness["ratio"] is None else f"{witness['ratio']:.9g}"
    return (
        f"inputs {witness['inputs'][0]} and {witness['inputs'][1]}, {witness['output']}, public "
        f"coin {witness['cell']}: ratio {ratio}"
    )
