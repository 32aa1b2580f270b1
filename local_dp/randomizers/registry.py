"""Every randomizer by name, built-in or of an installed package; and randomizers made from a name
and parameters as data."""

import json
from dataclasses import fields

from local_dp.domains import Parameter
from local_dp.errors import InputError, unknown
from local_dp.randomizers import BUILT_IN
from local_dp.randomizers.randomizer import Randomizer
from local_dp.registry import Registry

RANDOMIZERS = Registry("randomizer", "local_dp.randomizers", Randomizer, BUILT_IN)


def made_for(which: str, epsilon: float, **own: Parameter) -> Randomizer:
    """The randomizer of this name or place, with parameters in parentheses if there are any, at
    this epsilon. Of the parameters that its protocol decides, `own`, it has those that it has
    fields for. Raises InputError or RefusedError."""
    kind, params = RANDOMIZERS.resolve(which)
    if params.get("epsilon", epsilon) != epsilon:
        raise InputError(
            f"{which} has epsilon {params['epsilon']!r}, and the clients {epsilon!r}; leave out "
            "its epsilon, or give the clients the same"
        )
    names = [each.name for each in fields(kind)]
    if wrong := params.keys() - set(names):
        raise InputError(unknown(f"{kind.name} has no parameter", min(wrong), names))
    settings = {name: value for name, value in own.items() if name in names}
    return RANDOMIZERS.build(kind.name, {**settings, **params, "epsilon": epsilon})


_OUTER = ("epsilon", "word_bits")  # what the outer one says


def build_named(name: str, setting: tuple[str, ...], **outer: Parameter) -> Randomizer:
    """The randomizer of this name with the parameters "name=value" in `setting` and those in
    `outer`. Raises InputError or RefusedError."""
    params = dict(outer)
    for each in setting if type(setting) is tuple else (setting,):
        field, separator, text = str(each).partition("=")
        if not separator:
            raise InputError(f"{each!r} is not a setting; write name=value")
        params[field] = _value(text)
    return RANDOMIZERS.build(name, params)


def setting_of(randomizer: Randomizer) -> tuple[str, ...]:
    """Its parameters but epsilon and the width of words, as `build_named` reads them."""
    return tuple(
        f"{name}={json.dumps(value)}"
        for name, value in randomizer.params().items()
        if name not in _OUTER
    )


def _value(text: str) -> Parameter:
    """A whole number, a number, a quoted text or a list of them in brackets; anything else is a
    text as it stands."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if text[:1] in ('"', "["):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
        # what is no parameter is refused by whom it is given to
        return tuple(value) if type(value) is list else value
    return text
