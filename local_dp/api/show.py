"""The result of a run for a person: one block of text."""

from typing import Any

from local_dp.bounds.attacks import ALPHA
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
_PLACES = 12  # of a true error: further digits are rounding errors of the sums


def summary(data: dict[str, Any], width: int) -> str:
    """A run for a person; a learned hypothesis is explained in the last line."""
    result = data["result"]
    head = (
        f"{data['protocol']} ({data['model']}, {data['interaction']}) in tier {data['tier']}, "
        f"epsilon {number(data['epsilon'])}; {held(stamp_of(data))}"
    )
    lines = (
        f"NOT PRIVATE AS STATED: {'; '.join(data['unverified'])}" if "unverified" in data else "",
        _faults(data["faults"]) if "faults" in data else "",
        "The labels were read from the table, so they are published."
        if data["parameters"].get("labels_from_data")
        else "",
        result.get("choice", {}).get("explanation", ""),
        "Impossible estimates were moved to the nearest possible value; the option raw shows them."
        if result.get("moved")
        else "",
        _independence(result["independence"]) if "independence" in result else "",
        _error(result),
        _clients(data),
        _influence(data),
        _irregular(data),
        _silenced(data["silenced"]) if "silenced" in data else "",
        _reconciled(data) if "reconciliation" in data else "",
        _cost(data),
        _shuffled(data["shuffled"]) if "shuffled" in data else "",
        result["explanation"],
    )
    worst = data.get("influence", {}).get("worst_case")
    marked = (*([paragraph(_degraded(data), width)] if "degraded" in data else []), "")
    shown = result_table(
        result,
        width,
        worst,
        "worst-case interval" if "degraded" in data and "influence" in data else "95 % interval",
    )
    return "\n".join(
        (
            paragraph(head, width),
            *marked,
            shown,
            "",
            *(paragraph(line, width) for line in lines if line),
        )
    )


def _degraded(data: dict[str, Any]) -> str:
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


def _error(result: dict[str, Any]) -> str:
    if result["true_error"] is None:
        return ""
    truth, several = result["truth"], isinstance(result.get("estimate"), list)
    unit = result.get("error_unit") or (
        "the largest distance of an estimate from the truth" if several else ""
    )
    error = held(f"true error {number(round(float(result['true_error']), _PLACES))}") + (
        f" ({unit})" if unit else ""
    )
    whole = (
        (
            "; the mean of the column, unclipped, is "
            f"{number(result['mean_of_column'], result['standard_error'])}"
        )
        if "mean_of_column" in result
        else ""
    )
    parts = (
        "; the truth is " + ", ".join(held(f"{key} = {part}") for key, part in truth.items())
        if isinstance(truth, dict)
        else ""
    )
    return f"{error}{whole}{parts}"


def unit(data: dict[str, Any]) -> str:
    """What a run counts: a client that is asked in two rounds owes two reports."""
    return "reports" if data["interaction"] == "fully interactive" else "clients"


def _clients(data: dict[str, Any]) -> str:
    counts = [
        (name, value)
        for name, value in data["clients"].items()
        if name not in _REPEATED and (value or name in _ALWAYS)
    ]
    rejected = [
        held(f"{number(times)} {kind}") for kind, times in data.get("rejections", {}).items()
    ]
    listed = ", ".join(held(f"{number(value)} {name.replace('_', ' ')}") for name, value in counts)
    return f"{unit(data)}: {listed}" + (f" ({', '.join(rejected)})" if rejected else "")


def _influence(data: dict[str, Any]) -> str:
    influence = data.get("influence", {"missing": 0})
    if "worst_case" in influence:
        lying = number(100 * influence["worst_case"]["lying"])
        return (
            f"Worst case: any answers of the {number(influence['missing'])} missing clients, and "
            f"{lying} % of all clients lie."
        )
    if not influence["missing"] or "degraded" in data:
        return ""
    ends, estimate = influence["had_all_answered"], data["result"]["estimate"]
    pairs, values = (ends, estimate) if isinstance(estimate, list) else ([ends], [estimate])
    most = max(
        max(value - low, high - value) for value, (low, high) in zip(values, pairs, strict=True)
    )
    return (
        f"The intervals assume that the {number(influence['missing'])} missing clients resemble "
        f"the others. If not, an estimate can be off by up to {held(number(most))} more: "
        "--worst-case 0 shows it."
    )


def _irregular(data: dict[str, Any]) -> str:
    """A warning of reports that honest clients hardly send."""
    rare = [
        (place, each["irregularity"])
        for place, each in enumerate(data["rounds"], 1)
        if each.get("irregularity", 1.0) < ALPHA
    ]
    rounds = ", ".join(f"round {place}: p {number(p)}" for place, p in rare)
    return (
        (
            "NOT ALL HONEST: honest clients hardly send so many reports with the same number of "
            f"ones ({rounds}); some clients choose their bits"
        )
        if rare
        else ""
    )


def _silenced(silenced: dict[str, Any]) -> str:
    """A warning of members that sent too much."""
    names = silenced["members"]
    some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    floods = (
        [
            (
                f"{number(len(names))} member{'s' if len(names) > 1 else ''} ({some}), ignored "
                "for a while"
            )
        ]
        if names
        else []
    )
    floods += ["strangers, shut out"] if silenced["strangers"] else []
    return f"FLOODED by {' and by '.join(floods)}: reports that arrived meanwhile are missing"


def _reconciled(data: dict[str, Any]) -> str:
    """The accepted reports beside the members' own accounts of their budgets."""
    accounts = data["reconciliation"]
    uncharged, lost, silent, members = (
        accounts[name]
        for name in ("accepted_not_charged", "charged_not_accepted", "silent", "members")
    )
    answered, checked = (
        data["clients"]["answered"],
        sum(each["accepted"] for each in accounts["rounds"]),
    )
    unchecked = (
        f"{number(answered - checked)} of {number(answered)} accepted reports were not checked"
    )
    if silent == members:
        return (
            f"Budgets were not checked: none of the {number(members)} members gave an account, "
            f"and {unchecked}."
        )
    of = (
        ""
        if not silent
        else f" {number(silent)} of {number(members)} members gave no account, so {unchecked}."
    )
    if uncharged:
        rounds = ", ".join(
            str(each["round"]) for each in accounts["rounds"] if each["accepted_not_charged"]
        )
        return (
            f"NOT RECONCILED: {number(uncharged)} reports were accepted that their members did "
            f"not charge or send, in round {rounds}.{of}"
        )
    if lost:
        return (
            f"Budgets: {number(lost)} reports were charged and not accepted; all "
            f"{number(checked)} accepted reports that were checked were charged.{of}"
        )
    return (
        f"Budgets match: {'all ' if checked == answered else ''}{number(checked)} reports are "
        f"accounted for.{of}"
    )


def _cost(data: dict[str, Any]) -> str:
    bits = sorted({round["bits_per_client"] for round in data["rounds"]})
    each = " or ".join(map(str, bits)) + (" bit" if bits == [1] else " bits")
    names = dict.fromkeys(
        f"{each['name']} ({each['inner']})" if "inner" in each else str(each["name"])
        for round in data["rounds"]
        for each in round["randomizers"]
    )
    rounds = f"{len(data['rounds'])} round{'s' if len(data['rounds']) > 1 else ''}"
    over = f" over {data['broker']}" if "broker" in data else ""
    spent, seconds = number(data["max_epsilon_spent"]), number(data["wall_s"])
    return ", ".join(
        map(
            held,
            (
                f"{rounds} by {' and '.join(names)}{over}",
                f"{each} per client asked",
                f"at most epsilon {spent} spent by a client",
                f"{seconds} s",
            ),
        )
    )


def _shuffled(loss: dict[str, Any]) -> str:
    """The epsilon of one report, and of all shuffled reports together."""
    known = "" if loss["exact"] else f" (at least {bound(loss['lower'], False)})"
    together = (
        f"{held('epsilon ' + bound(loss['upper'], True))}{known} at "
        f"{held('delta ' + number(loss['delta']))}"
    )
    return (
        f"Shuffled: a report alone has {held('epsilon ' + number(loss['local']))}; the server "
        f"sees {together}, if the shuffler keeps the senders secret."
    )


def result_table(
    result: dict[str, Any],
    width: int,
    worst: dict[str, Any] | None = None,
    interval: str = "95 % interval",
) -> str:
    """Estimates with their intervals, and a warning of those that are no better than a guess; or a
    hypothesis by its parts."""
    if "hypothesis" in result:
        cells = {
            name: number(value) if isinstance(value, float) else str(value)
            for name, value in result["hypothesis"].items()
        }
        return table(list(cells), [list(cells.values())], width)
    rows = estimates(result)
    if not rows:
        return "Nothing was found."
    truth = truths(result, len(rows))
    wide: list[Any] = (
        [(None, None)] * len(rows)
        if worst is None
        else worst["interval"]
        if isinstance(result["estimate"], list)
        else [worst["interval"]]
    )
    shown = [
        (
            label,
            number(estimate, fine),
            number(error, error),
            _interval(ends, fine),
            _interval(wider, fine),
            number(true, fine),
        )
        for (label, estimate, error, ends), wider, true in zip(
            rows[:MOST_SHOWN], wide, truth or [None] * len(rows), strict=False
        )
        for fine in [grain(error, ends, estimate)]
    ]
    if len(rows) > MOST_SHOWN:
        shown.append((f"... {len(rows) - MOST_SHOWN} more", "", "", "--json prints all", "", ""))
    columns = [
        0,
        1,
        *([2] if "standard_error" in result else []),
        3,
        *([] if worst is None else [4]),
        *([5] if truth else []),
    ]
    names = ("", "estimate", "standard error", interval, "in the worst case", "truth")
    drawn = table(
        [names[column] for column in columns],
        [[row[column] for column in columns] for row in shown],
        width,
    )
    guesses = len(result.get("uninformative", ()))
    if not guesses:
        return drawn
    which = f"{guesses} of {len(rows)} intervals {'is' if guesses == 1 else 'are'}"
    if len(rows) == 1:
        which = "This interval is"
    warning = f"{which} no better than a guess. Ask more people, or give more epsilon."
    return f"{drawn}\n\n{paragraph(warning, width)}"


def truths(result: dict[str, Any], count: int) -> list[float | None]:
    """The truth beside each estimate, in a simulation that knows it; else empty."""
    truth = result["truth"]
    each = truth if isinstance(truth, list) else [truth]
    return (
        each if len(each) == count and any(isinstance(value, int | float) for value in each) else []
    )


def _interval(ends: tuple[float | None, float | None], fine: float | None) -> str:
    """An interval; None is an open end."""
    low, high = ends
    if low is None and high is None:
        return "no interval: too few answers"
    return held(" .. ".join("open" if end is None else number(end, fine) for end in (low, high)))
