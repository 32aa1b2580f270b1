"""The result of a run for a person: one block of text."""

from itertools import compress
from typing import Any

from local_dp.api.release_text import MOVED, interval_of
from local_dp.bounds.attacks import ALPHA
from local_dp.domains import MAX_SYMBOLS
from local_dp.protocols.local_protocol import PlainData
from local_dp.simulation.outcome import estimates, stamp_of
from local_dp.text.layout import bound, grain, held, number, paragraph
from local_dp.text.widgets import table

MOST_SHOWN = 40  # estimates in a summary
_FAULTS = {
    "lost": "messages lost",
    "repeated": "repeated",
    "delayed": "delayed",
    "killed": "members killed",
    "lied": "clients lied",
}
_ALWAYS = ("asked", "answered", "missing")  # counts of clients that are shown even if they are 0
_REPEATED = ("duplicate",)  # identical replies after a repeated question: no fault
_UNKNOWN = "no interval: too few answers"
_PLACES = 12  # of a true error: further digits are rounding errors of the sums


def summary(data: PlainData, width: int) -> str:
    """A run for a person; a learned hypothesis is explained in the last line."""
    result = data["result"]
    head = (
        f"{data['protocol']} ({data['model']}, {data['interaction']}) in tier {data['tier']}, "
        f"epsilon {number(data['epsilon'])}; {held(stamp_of(data))}"
    )
    degradation = _degradation(data) if "degraded" in data else ""
    lines = (
        f"NOT PRIVATE AS STATED: {'; '.join(data['unverified'])}" if "unverified" in data else "",
        _faults(data["faults"]) if "faults" in data else "",
        _LABELS if data["parameters"].get("labels_from_data") else "",
        result.get("choice", {}).get("explanation", ""),
        MOVED if result.get("moved") else "",
        f"{withheld(data)}." if "withheld" in result else "",
        _independence(result["independence"]) if "independence" in result else "",
        _error(result),
        _clients(data),
        _influence(data),
        _irregular(data),
        _flood(data["silenced"]) if "silenced" in data else "",
        _accounts(data) if "reconciliation" in data else "",
        _cost(data),
        _shuffled(data["shuffled"]) if "shuffled" in data else "",
        result["explanation"],
    )
    worst = data.get("influence", {}).get("worst_case")
    of_worst_case = degradation and "influence" in data
    interval = "worst-case interval" if of_worst_case else "95 % interval"
    parts = [paragraph(line, width) for line in (head, degradation) if line]
    parts += ["", result_table(result, width, worst, interval), ""]
    return "\n".join((*parts, *(paragraph(line, width) for line in lines if line)))


_LABELS = "The labels were read from the table, so they are published."
_LARGEST = (
    "The largest estimates, which noise has made larger: an interval of one that was picked so "
    "covers its share less often. The others are smaller."
)


def withheld(data: PlainData) -> str:
    """The groups below the minimum, by name."""
    names = "; ".join(map(held, data["result"]["withheld"]))
    return f"Withheld below a count of {number(data['parameters']['minimum'])}: {names}"


def _degradation(data: PlainData) -> str:
    """Why the result is no plain one, and what its interval allows for."""
    bounded = (
        "The interval allows for any answers of the missing clients."
        if "influence" in data
        else "No interval is known that allows for the missing clients."
    )
    return f"DEGRADED: {'; '.join(data['degraded'])}. {bounded}"


def _faults(faults: dict[str, int]) -> str:
    counts = [
        held(f"{number(faults[name])} {label}") for name, label in _FAULTS.items() if faults[name]
    ]
    return f"FAULTS ON PURPOSE: {', '.join(counts) or 'none happened'}"


def _independence(test: dict[str, float]) -> str:
    value, mean, p = (number(test[name]) for name in ("chi_square", "if_independent", "p_value"))
    return (
        f"chi-square {value}; if the columns are independent, {mean} on average under this noise, "
        f"and at least {value} with probability {p}"
    )


def _error(result: PlainData) -> str:
    if result["true_error"] is None:
        return ""
    truth, unit = result["truth"], result.get("error_unit", "")
    if not unit and isinstance(result.get("estimate"), list):
        unit = "the largest distance of an estimate from the truth"
    text = held(f"true error {number(round(float(result['true_error']), _PLACES))}")
    text += f" ({unit})" if unit else ""
    if "mean_of_column" in result:
        mean = number(result["mean_of_column"], result["standard_error"])
        text += f"; the mean of the column, unclipped, is {mean}"
    if isinstance(truth, dict):
        parts = (held(f"{key} = {part}") for key, part in truth.items())
        text += f"; the truth is {', '.join(parts)}"
    return text


def unit(data: PlainData) -> str:
    """What a run counts: a client that is asked in two rounds owes two reports."""
    return "reports" if data["interaction"] == "fully interactive" else "clients"


def _clients(data: PlainData) -> str:
    counts = [
        (name, value)
        for name, value in data["clients"].items()
        if name not in _REPEATED and (value or name in _ALWAYS)
    ]
    rejections = [
        held(f"{number(times)} {kind}") for kind, times in data.get("rejections", {}).items()
    ]
    text = ", ".join(held(f"{number(value)} {name.replace('_', ' ')}") for name, value in counts)
    return f"{unit(data)}: {text}" + (f" ({', '.join(rejections)})" if rejections else "")


def _influence(data: PlainData) -> str:
    influence = data.get("influence", {"missing": 0})
    if "worst_case" in influence:
        lying = number(100 * influence["worst_case"]["lying"])
        return (
            f"Worst case: any answers of the {number(influence['missing'])} missing clients, and "
            f"{lying} % of all clients lie."
        )
    if not influence["missing"] or "degraded" in data:
        return ""
    values, pairs = (
        _as_list(data["result"], part)
        for part in (data["result"]["estimate"], influence["had_all_answered"])
    )
    most = max(
        max(value - low, high - value) for value, (low, high) in zip(values, pairs, strict=True)
    )
    return (
        f"The intervals assume that the {number(influence['missing'])} missing clients resemble "
        f"the others. If not, an estimate can be off by up to {held(number(most))} more: "
        "--worst-case 0 shows it."
    )


def _irregular(data: PlainData) -> str:
    """A warning of reports that honest clients hardly send."""
    rare = [
        (place, each["irregularity"])
        for place, each in enumerate(data["rounds"], 1)
        if each.get("irregularity", 1.0) < ALPHA
    ]
    if not rare:
        return ""
    rounds = ", ".join(f"round {place}: p {number(p)}" for place, p in rare)
    return (
        "NOT ALL HONEST: honest clients hardly send so many reports with the same number of "
        f"ones ({rounds}); some clients choose their bits"
    )


def _flood(flood: PlainData) -> str:
    """A warning of members that sent too much."""
    names = flood["members"]
    some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    floods = []
    if names:
        members = f"{number(len(names))} member{'s' if len(names) > 1 else ''}"
        floods.append(f"{members} ({some}), ignored for a while")
    floods += ["strangers, shut out"] if flood["strangers"] else []
    return f"FLOODED by {' and by '.join(floods)}: reports that arrived meanwhile are missing"


def _accounts(data: PlainData) -> str:
    """The accepted reports beside the members' own accounts of their budgets."""
    accounts = data["reconciliation"]
    strays, losses, silent, members = (
        accounts[name]
        for name in ("accepted_not_charged", "charged_not_accepted", "silent", "members")
    )
    answers = data["clients"]["answered"]
    checks = sum(each["accepted"] for each in accounts["rounds"])
    gap = f"{number(answers - checks)} of {number(answers)} accepted reports were not checked"
    if silent == members:
        return (
            f"Budgets were not checked: none of the {number(members)} members gave an account, "
            f"and {gap}."
        )
    of = (
        ""
        if not silent
        else f" {number(silent)} of {number(members)} members gave no account, so {gap}."
    )
    if strays:
        rounds = ", ".join(
            str(each["round"]) for each in accounts["rounds"] if each["accepted_not_charged"]
        )
        return (
            f"NOT RECONCILED: {number(strays)} reports were accepted that their members did "
            f"not charge or send, in round {rounds}.{of}"
        )
    if losses:
        return (
            f"Budgets: {number(losses)} reports were charged and not accepted; all "
            f"{number(checks)} accepted reports that were checked were charged.{of}"
        )
    return (
        f"Budgets match: {'all ' if checks == answers else ''}{number(checks)} reports are "
        f"accounted for.{of}"
    )


def _cost(data: PlainData) -> str:
    bits = sorted({round["bits_per_client"] for round in data["rounds"]})
    each = " or ".join(map(str, bits)) + (" bit" if bits == [1] else " bits")
    randomizers = (each for round in data["rounds"] for each in round["randomizers"])
    names = dict.fromkeys(
        f"{each['name']} ({each['inner']})" if "inner" in each else str(each["name"])
        for each in randomizers
    )
    rounds = f"{len(data['rounds'])} round{'s' if len(data['rounds']) > 1 else ''}"
    over = f" over {data['broker']}" if "broker" in data else ""
    parts = (
        f"{rounds} by {' and '.join(names)}{over}",
        f"{each} per client asked",
        f"at most epsilon {number(data['max_epsilon_spent'])} spent by a client",
        f"{number(data['wall_s'])} s",
    )
    return ", ".join(map(held, parts))


def _shuffled(loss: PlainData) -> str:
    """The epsilon of one report, and of all shuffled reports together."""
    least = "" if loss["exact"] else f" (at least {bound(loss['lower'], False)})"
    together = (
        f"{held('epsilon ' + bound(loss['upper'], True))}{least} at "
        f"{held('delta ' + number(loss['delta']))}"
    )
    return (
        f"Shuffled: a report alone has {held('epsilon ' + number(loss['local']))}; the server "
        f"sees {together}, if the shuffler keeps the senders secret."
    )


def result_table(
    result: PlainData,
    width: int,
    worst: PlainData | None = None,
    interval: str = "95 % interval",
) -> str:
    """Estimates with their intervals, and a warning of those that are no better than a guess; or a
    hypothesis by its parts."""
    if "hypothesis" in result:
        values = result["hypothesis"]
        texts = [number(each) if isinstance(each, float) else str(each) for each in values.values()]
        return table(list(values), [texts], width)
    rows = estimates(result)
    if not rows:
        return "Nothing was found."
    columns = ["", "estimate", "standard error", interval, "in the worst case", "truth"]
    truth = truths(result, len(rows))
    present = (True, True, "standard_error" in result, True, worst is not None, bool(truth))
    wide = [(None, None)] * len(rows) if worst is None else _as_list(result, worst["interval"])
    table_rows = [*zip(rows, wide, truth or [None] * len(rows), strict=False)]
    largest = len(rows) > MAX_SYMBOLS  # of a frequency alone
    if largest:
        table_rows.sort(key=lambda row: -(row[0][1] or 0.0))
    lines = [columns, *(_line(*row) for row in table_rows[:MOST_SHOWN])]
    if len(rows) > MOST_SHOWN:
        lines.append([f"... {len(rows) - MOST_SHOWN} more", "", "", "--json prints all", "", ""])
    heading, *cells = [list(compress(line, present)) for line in lines]
    grid = table(heading, cells, width)
    if largest:
        grid += "\n\n" + paragraph(_LARGEST, width)
    guesses = len(result.get("uninformative", ()))
    if not guesses:
        return grid
    which = f"{guesses} of {len(rows)} intervals {'is' if guesses == 1 else 'are'}"
    if len(rows) == 1:
        which = "This interval is"
    warning = f"{which} no better than a guess. Ask more people, or give more epsilon."
    return f"{grid}\n\n{paragraph(warning, width)}"


def _as_list(result: PlainData, part: Any) -> list[Any]:
    """One part for each estimate."""
    return part if isinstance(result["estimate"], list) else [part]


def _line(row: tuple[Any, ...], wider: Any, truth: float | None) -> list[str]:
    """An estimate, its error and intervals, and the truth, to the digits that the error shows."""
    label, estimate, error, ends = row
    fine = grain(error, ends, estimate)
    intervals = [
        interval_of(each, fine) if any(end is not None for end in each) else _UNKNOWN
        for each in (ends, wider)
    ]
    return [label, number(estimate, fine), number(error, error), *intervals, number(truth, fine)]


def truths(result: PlainData, count: int) -> list[float | None]:
    """The truth beside each estimate, in a simulation that knows it; else empty."""
    truth = result["truth"]
    each = truth if isinstance(truth, list) else [truth]
    return (
        each if len(each) == count and any(isinstance(value, int | float) for value in each) else []
    )
