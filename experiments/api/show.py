"""What a run gave, as a person reads it: one block of text."""

from typing import Any

from local_dp.bounds.attacks import ALPHA
from local_dp.experiments.text.layout import held, paragraph, table
from local_dp.experiments.text.notation import bound, number
from local_dp.experiments.tiers.outcome import estimates, stamp_of

SHOWN = 40  # estimates in a summary
_HAPPENED = {"lost": "messages lost", "repeated": "repeated", "delayed": "delayed", "killed": "members killed", "lied": "clients lied"}
_PLACES = 12  # of a true error: what lies behind them is rounding of the sums


def summary(data: dict[str, Any], width: int) -> str:
    """A run's outcome for a person; where a hypothesis was learned, it ends in what that says."""
    result = data["result"]
    what = f"{data['protocol']} ({data['model']}, {data['interaction']}) in tier {data['tier']}, epsilon {number(data['epsilon'])}; {held(stamp_of(data))}"
    chosen = result.get("choice", {}).get("explanation", "")
    lines = (
        _unverified(data),
        _faults(data),
        _read_from_the_table(data),
        chosen,
        _independence(result),
        _error(result),
        _who_answered(data),
        _influence(data),
        _irregular(data),
        _silenced(data),
        _reconciled(data),
        _cost(data),
        _shuffled(data),
        result["explanation"],
    )
    worst = data.get("influence", {}).get("worst_case")
    return "\n".join((paragraph(what, width), "", result_table(result, width, worst), "", *(paragraph(line, width) for line in lines if line)))


def _unverified(data: dict[str, Any]) -> str:
    """What is wrong with a randomizer that was used all the same."""
    return f"NOT PRIVATE AS STATED: {'; '.join(data['unverified'])}" if "unverified" in data else ""


def _faults(data: dict[str, Any]) -> str:
    """What went wrong on purpose."""
    faults = data.get("faults")
    if faults is None:
        return ""
    happened = [held(f"{number(faults[name])} {told}") for name, told in _HAPPENED.items() if faults[name]]
    return f"FAULTS ON PURPOSE: {', '.join(happened) or 'none happened'}"


def _read_from_the_table(data: dict[str, Any]) -> str:
    """That something public was not declared."""
    return "the labels were read from the table, which publishes them" if data["parameters"].get("labels_from_data") else ""


def _independence(result: dict[str, Any]) -> str:
    """What the test of two columns' independence says."""
    test = result.get("independence")
    if test is None:
        return ""
    seen, chance = number(test["chi_square"]), number(test["if_independent"])
    return f"chi-square {seen}; independent columns give {chance} on average under this noise, and as much as seen with probability {number(test['p_value'])}"


def _error(result: dict[str, Any]) -> str:
    """The true error, and the truth where it is one thing."""
    if result["true_error"] is None:
        return ""
    truth = result["truth"]
    beside = "" if truth is None or isinstance(truth, list) else f"; the truth is {_plain(truth)}"
    error = round(float(result["true_error"]), _PLACES)
    return held(f"true error {number(error)}") + beside


def _plain(value: Any) -> str:
    """A truth: a number, or a hypothesis by its parts."""
    return ", ".join(held(f"{key} = {part}") for key, part in value.items()) if isinstance(value, dict) else number(value)


def _who_answered(data: dict[str, Any]) -> str:
    clients = data["clients"]
    told = [held(f"{number(value)} {name.replace('_', ' ')}") for name, value in clients.items() if value or name in ("asked", "answered", "missing")]
    wrong = [held(f"{number(times)} {kind}") for kind, times in data.get("rejections", {}).items()]
    whose = "reports" if data["interaction"] == "fully interactive" else "clients"  # who is asked in two rounds owes two reports
    return f"{whose}: {', '.join(told)}" + (f" ({', '.join(wrong)})" if wrong else "")


def _named(randomizer: dict[str, Any]) -> str:
    """Its name, and that of the one whose coin it sends along."""
    return f"{randomizer['name']} ({randomizer['inner']})" if "inner" in randomizer else str(randomizer["name"])


def _influence(data: dict[str, Any]) -> str:
    """What the clients that are missing may have changed."""
    influence = data.get("influence", {"missing": 0})
    if "worst_case" in influence:
        lying = influence["worst_case"]["lying"]
        return f"the worst case: whatever {number(influence['missing'])} missing clients would have said, and if {number(100 * lying)} % of all clients lie"
    if not influence["missing"]:
        return ""
    ends, estimate = influence["had_all_answered"], data["result"]["estimate"]
    pairs, estimates = (ends, estimate) if isinstance(estimate, list) else ([ends], [estimate])
    most = max(max(value - low, high - value) for value, (low, high) in zip(estimates, pairs, strict=True))
    return (
        f"the intervals take the {number(influence['missing'])} clients that are missing to be like the others; were they not, an estimate "
        f"could be off by up to {held(number(most))} more: --worst-case 0 shows it"
    )


def _irregular(data: dict[str, Any]) -> str:
    """That some clients seem to send what no randomizer made."""
    found = [(place, each["irregularity"]) for place, each in enumerate(data["rounds"], 1) if each.get("irregularity", 1.0) < ALPHA]
    rounds = ", ".join(f"round {place}: p {number(p)}" for place, p in found)
    return f"NOT ALL HONEST: so many reports with one number of ones are no chance ({rounds}); some clients send bits of their own making" if found else ""


def _silenced(data: dict[str, Any]) -> str:
    """Who sent so much that it was not heard."""
    told = data.get("silenced")
    if told is None:
        return ""
    names = told["members"]
    some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    members = [f"{number(len(names))} member{'s' if len(names) > 1 else ''} ({some}), not heard for a while"] if names else []
    return f"FLOODED by {' and by '.join([*members, *(['strangers, shut out'] if told['strangers'] else [])])}: what came meanwhile is missing"


def _reconciled(data: dict[str, Any]) -> str:
    """What was counted beside what the members say they have charged."""
    told = data.get("reconciliation")
    if told is None:
        return ""
    wrong, lost, silent = (told[name] for name in ("accepted_not_charged", "charged_not_accepted", "silent"))
    heard = f"reconciled with {number(told['members'] - silent)} of {number(told['members'])} members"
    if wrong:
        wrong_in = ", ".join(str(each["round"]) for each in told["rounds"] if each["accepted_not_charged"])
        return f"NOT RECONCILED: {number(wrong)} reports were accepted that their members did not charge or send, in round {wrong_in}; {heard}"
    return f"{heard}: every report accepted was charged, {number(lost)} charged and not accepted"


def _cost(data: dict[str, Any]) -> str:
    bits = sorted({round["bits_per_client"] for round in data["rounds"]})
    each = " or ".join(map(str, bits)) + (" bit" if bits == [1] else " bits")
    names = dict.fromkeys(_named(each) for round in data["rounds"] for each in round["randomizers"])
    rounds = f"{len(data['rounds'])} round{'s' if len(data['rounds']) > 1 else ''}"
    parts = (
        *(f"{rounds} by {' and '.join(names)}", f"{each} from each client asked"),
        *(f"most epsilon spent by one client {number(data['max_epsilon_spent'])}", f"{number(data['wall_s'])} s"),
    )
    return ", ".join(map(held, parts))


def _shuffled(data: dict[str, Any]) -> str:
    """What the reports lose alone and together."""
    lost = data.get("shuffled")
    if lost is None:
        return ""
    known = "" if lost["exact"] else f" (and at least {bound(lost['lower'], False)})"
    return (
        f"shuffled: a client loses {held('epsilon ' + number(lost['local']))} to who knows which reports are its own, and to the server "
        f"{held('epsilon ' + bound(lost['upper'], True))}{known} beside {held('delta ' + number(lost['delta']))}, if the shuffler keeps silent"
    )


def result_table(result: dict[str, Any], width: int, worst: dict[str, Any] | None = None) -> str:
    """Estimates with their intervals, or a hypothesis by its parts."""
    if "hypothesis" in result:
        cells = {name: number(value) if isinstance(value, float) else str(value) for name, value in result["hypothesis"].items()}
        return table(list(cells), [list(cells.values())], width)
    rows = estimates(result)
    wide: list[Any] = [(None, None)] * len(rows) if worst is None else worst["interval"] if isinstance(result["estimate"], list) else [worst["interval"]]
    shown = [
        (label, number(estimate, error), number(error, error), _interval(ends, error), _interval(wider, error))
        for (label, estimate, error, ends), wider in zip(rows[:SHOWN], wide, strict=False)
    ]
    if len(rows) > SHOWN:
        shown.append((f"... {len(rows) - SHOWN} more", "", "", "--json has all", ""))
    columns = [0, 1, *([2] if "standard_error" in result else []), 3, *([] if worst is None else [4])]
    names = ("", "estimate", "standard error", "95 % interval", "in the worst case")
    return table([names[column] for column in columns], [[row[column] for column in columns] for row in shown], width)


def _interval(ends: tuple[float | None, float | None], error: float | None) -> str:
    low, high = ends
    return held(f"{_end(low, error)} .. {_end(high, error)}")


def _end(value: float | None, error: float | None) -> str:
    """An end of an interval, which may be open."""
    return "open" if value is None else number(value, error)
