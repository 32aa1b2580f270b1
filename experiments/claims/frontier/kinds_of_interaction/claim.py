"""Kinds of interaction: a path that is found by asking once, in turn, and the same people again."""

import math
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

from local_dp.bounds.interaction import ladder_one_round_least
from local_dp.experiments.claims.frontier.kinds_of_interaction import runs
from local_dp.experiments.claims.frontier.kinds_of_interaction.runs import AGAIN, BELOW, BETA, BY_SUM, EPSILON, IN_TURN, ONE_ROUND, WAYS, Way
from local_dp.experiments.lab.chapters import FRONTIER, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table
from local_dp.experiments.lab.cross_check import cross_check_shown
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.minimal_clients import reached_check

LEVELS = (2, 4, 8, 12, 16)
AT, ROUNDS = 12, (1, 2, 3, 4, 6, 12)  # levels, and rounds allowed, of the first figure
LOST = (1, 2, 3, 4, 6)  # rounds of which all transcripts are enumerated
SMALL, LARGE = 4, 16  # levels at which runs are made client by client
TIMES = 200  # how many times fewer than any one round takes
SLACK = 0.06
TRIALS: dict[Scale, int] = {"quick": 12_000, "full": 120_000}
USERS: dict[Scale, int] = {"quick": 300, "full": 2000}
NAMES = {AGAIN: "fully interactive", BY_SUM: "fully interactive", IN_TURN: "sequentially interactive", BELOW: "sequentially interactive"}
BOUND = "one round, no protocol with fewer"
Measured = list[tuple[Point, Measurement]]


def rounds_of(way: str, k: int) -> int:
    """All that there may be: one a level, or one."""
    return 1 if way == ONE_ROUND else k


class KindsOfInteraction(Experiment[Point, Measurement]):
    """A ladder of hidden tables, whose bits lead from one to the next."""

    name: ClassVar[str] = "kinds-of-interaction"
    chapter: ClassVar[Chapter] = FRONTIER
    title: ClassVar[str] = "Asked once, asked in turn, asked again"
    claim: ClassVar[str] = (
        "To find a path of k steps, each known to other people, one must ask in turn: all at once takes exponentially many. Asking the same people at every "
        "step costs no privacy, if each speaks in one round and tosses a coin in all others, and takes k times fewer."
    )
    source: ClassVar[str] = "Joseph, Mao, Neel, Roth 2019; Joseph, Mao, Roth 2020; docs/limits 12.1"

    def points(self, scale: Scale) -> list[Point]:
        counts = [(way, k, rounds_of(way, k)) for way in WAYS for k in LEVELS]
        counts += [(way, AT, rounds) for way in (AGAIN, IN_TURN) for rounds in ROUNDS if rounds < AT]
        users = [(way, SMALL, rounds_of(way, SMALL), USERS[scale]) for way in WAYS] + [(AGAIN, LARGE, LARGE, USERS[scale] // 2)]
        return [
            *({"kind": "loss", "rounds": rounds} for rounds in LOST),
            *({"kind": "users", "way": way, "k": k, "rounds": rounds, "users": many, "laws": 8 * many} for way, k, rounds, many in users),
            *({"kind": "count", "way": way, "k": k, "rounds": rounds, "trials": TRIALS[scale]} for way, k, rounds in counts),
        ]

    def measure(self, point: Point, seed: int) -> Measurement:
        if point["kind"] == "loss":
            return runs.measure_loss(point)
        return runs.measure_users(point, seed) if point["kind"] == "users" else runs.measure_count(point, seed)

    def conclude(self, measurements: Measured, scale: Scale) -> Finding:
        losses, users, counts = ([each for each in measurements if each[0]["kind"] == kind] for kind in ("loss", "users", "count"))
        found = [each for each in counts if "failed" not in each[1]]
        table, figures = _table(found), [_figure_over_rounds(found), _figure_over_levels(found)]
        checks = [
            _check_loss([each for each in losses if "refused" not in each[1]]),
            *(cross_check_shown(f"{point['way']}, k = {point['k']}", each) for point, each in users),
            _check_names(users),
            reached_check([(f"{point['way']}, k = {point['k']}, {point['rounds']} rounds", each) for point, each in counts]),
            _check_predicted(found),
            _check_k_times(found),
            _check_any_one_round(found),
            _check_bound(found),
            _check_rounds(found),
            figure_check(figures, table),
        ]
        notes = [
            f"Epsilon {EPSILON:g} for all that a client ever says; {1 - BETA:.0%} of runs find all k bits. Counts are of runs drawn from the law of the "
            "answers; what was run client by client agrees.",
            "The bound is proved for one round alone (docs/limits 12.1). Counts in turn and again are those of the best method known here.",
            "In a round that asks about several levels, the answers of the levels above all confirm the true path, so they vary less than coins: the last "
            "column is the count if they did not, as with a public coin that flips each level's answers.",
        ]
        return Finding(checks, [table, _loss_table([each for each in losses if "refused" not in each[1]])], figures, notes, headline=_headline(found))


def _of(found: Measured, way: str, k: int, rounds: int | None = None) -> Measurement:
    """The count of one way; of none, numbers that compare with nothing."""
    wanted = (way, k, rounds_of(way, k) if rounds is None else rounds)
    nothing = {"n": math.nan, "low": math.nan, "high": math.nan}
    return next((each for point, each in found if (point["way"], point["k"], point["rounds"]) == wanted), nothing)


def _headline(found: Measured) -> str:
    again, turn = _of(found, AGAIN, LARGE)["n"], _of(found, IN_TURN, LARGE)["n"]
    if math.isnan(again + turn):
        return "No path was found."
    least = ladder_one_round_least(LARGE, EPSILON, BETA)
    told = f"A path of {LARGE} steps: {again:,} people if all are asked at every step, {turn:,} if others are"
    return f"{told}, and in one round more than {least:,.0f}, whatever is asked."


def _check_loss(losses: Measured) -> Check:
    def exact(point: Point, found: Measurement) -> bool:
        alone, together = Fraction(*found["alone"]), Fraction(*found["ratio"])
        return together == alone == 3 and found["session"] and found["sum"] == (point["rounds"] == 1)

    told = [f"{point['rounds']} rounds: {Fraction(*found['ratio'])}" for point, found in losses]
    return Check(
        "All answers of a session lose exactly what one loses, whatever the server asks; their sum would be refused",
        len(losses) == len(LOST) and all(exact(*each) for each in losses),
        f"largest ratio of any transcript at E = 3: {', '.join(told)}",
    )


def _check_names(users: Measured) -> Check:
    seen = {point["way"]: (found.get("interaction"), found.get("model"), found.get("spent")) for point, found in users}
    models = {"non-interactive": "LNI", "sequentially interactive": "LI", "fully interactive": "FI"}
    right = {way: (NAMES.get(way, "non-interactive"), models[NAMES.get(way, "non-interactive")], EPSILON) for way in WAYS}
    told = ", ".join(f"{way}: {interaction}, {model}" for way, (interaction, model, _) in seen.items())
    return Check(f"Each way is of the kind that it says, as the server saw it, and nobody spends more than {EPSILON:g}", seen == right, told)


def _check_predicted(found: Measured) -> Check:
    def near(each: Measurement) -> bool:
        low, high = ((1 - SLACK) * each["predicted"], (1 + SLACK) * each["predicted"])
        return bool(each["low"] <= high and each["high"] >= low)

    parts = [each["n"] / each["predicted"] for _, each in found]
    wrong = [f"{point['way']}, k = {point['k']}, {point['rounds']} rounds" for point, each in found if not near(each)]
    told = f"{min(parts):.3f} to {max(parts):.3f} times in {len(parts)} counts" if parts else "nothing"
    return Check(f"The closed forms say how many, within {SLACK:.0%}", bool(found) and not wrong, "; ".join([told, *wrong]))


def _check_k_times(found: Measured) -> Check:
    parts = {k: k * _of(found, AGAIN, k)["n"] / _of(found, IN_TURN, k)["n"] for k in (4, 8, 16)}
    told = ", ".join(f"k = {k}: {part:.3f} of a k-th" for k, part in parts.items())
    return Check(
        f"Asking the same people again takes k times fewer than asking others in turn, within {SLACK:.0%}",
        all(abs(part - 1) <= SLACK for part in parts.values()),
        told,
    )


def _check_any_one_round(found: Measured) -> Check:
    least, again = ladder_one_round_least(LARGE, EPSILON, BETA), _of(found, AGAIN, LARGE)
    return Check(
        f"Asked again, k = {LARGE} takes {TIMES} times fewer people than any protocol of one round, whatever it asks",
        TIMES * again["high"] <= least,
        f"{again['n']:,} [{again['low']:,}, {again['high']:,}], one round at least {least:,.0f}: {least / again['n']:.0f} times",
    )


def _check_bound(found: Measured) -> Check:
    parts = {k: _of(found, ONE_ROUND, k)["low"] / ladder_one_round_least(k, EPSILON, BETA) for k in LEVELS}
    return Check(
        "One round takes more than the theorem's least, at every k",
        all(part > 1 for part in parts.values()),
        ", ".join(f"k = {k}: {part:.1f} times" for k, part in parts.items()),
    )


def _check_rounds(found: Measured) -> Check:
    turn, again = ([_of(found, way, AT, AT if rounds == AT else rounds) for rounds in ROUNDS] for way in (IN_TURN, AGAIN))
    best = min(turn, key=lambda each: each["n"])
    falls = all(fewer["high"] < more["low"] for more, fewer in pairwise(again))
    told = ", ".join(f"{each['n']:,}" for each in again)
    return Check(
        f"At k = {AT} every round more that the same people are asked in helps; in turn, all rounds are not the best",
        falls and best["high"] < turn[-1]["low"],
        f"in turn {best['n']:,} with {ROUNDS[turn.index(best)]} rounds, {turn[-1]['n']:,} with {AT}; again {told}",
    )


def _table(found: Measured) -> Table:
    ways = [(Way(point["way"], point["k"], point["rounds"]), each) for point, each in found]
    rows = [(way.name, way.k, way.rounds, each["n"], each["low"], each["high"], each["predicted"], way.apart) for way, each in ways]
    bounds = [(BOUND, k, 1, math.ceil(ladder_one_round_least(k, EPSILON, BETA)), None, None, None, None) for k in LEVELS]
    columns = ("way", "levels k", "rounds", "clients", "95 % from", "to", "predicted", "predicted, others as coins")
    return Table(f"Least clients for {1 - BETA:.0%} success", columns, [*rows, *bounds])


def _loss_table(losses: Measured) -> Table:
    rows = [
        (point["rounds"], str(Fraction(*found["ratio"])), str(Fraction(*found["alone"]) ** point["rounds"]), _said(found["session"]), _said(found["sum"]))
        for point, found in losses
    ]
    columns = ("rounds", "largest ratio of all transcripts", "by the sum of Definition 4.4", "a session within epsilon", "the sum within epsilon")
    return Table("What all rounds lose together, E = 3", columns, rows)


def _said(allowed: bool) -> str:
    return "answered" if allowed else "refused"


def _curve(label: str, points: list[tuple[int, Measurement]]) -> Curve:
    kept = [(x, each) for x, each in points if not math.isnan(each["n"])]
    return Curve(label, [x for x, _ in kept], [each["n"] for _, each in kept], low=[each["low"] for _, each in kept], high=[each["high"] for _, each in kept])


def _figure_over_rounds(found: Measured) -> Figure:
    curves = [_curve(way, [(rounds, _of(found, way, AT, rounds)) for rounds in ROUNDS]) for way in (IN_TURN, AGAIN)]
    least = ladder_one_round_least(AT, EPSILON, BETA)
    curves.append(Curve(BOUND, [1, ROUNDS[-1]], [least, least], "bound"))
    return Figure("kinds-of-interaction", f"Clients to find a path of {AT} steps, epsilon 1", "rounds allowed", "clients", curves, log_x=True, log_y=True)


def _figure_over_levels(found: Measured) -> Figure:
    curves = [_curve(way, [(k, _of(found, way, k)) for k in LEVELS]) for way in (ONE_ROUND, BY_SUM, IN_TURN, BELOW, AGAIN)]
    curves.append(Curve(BOUND, list(LEVELS), [ladder_one_round_least(k, EPSILON, BETA) for k in LEVELS], "bound"))
    return Figure("kinds-of-interaction-levels", "Clients to find a path of k steps, epsilon 1", "steps k", "clients", curves, log_y=True)


EXPERIMENT = KindsOfInteraction()
