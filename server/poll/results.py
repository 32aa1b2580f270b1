"""The result of a poll: as plain data, as a table, and as a page to keep; each with the promises
that held and those that did not."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from local_dp.errors import InputError
from local_dp.foreign import shown
from local_dp.server.poll.plan import Plan
from local_dp.server.poll.run import Result
from local_dp.server.poll.scene import Standing, rows_of
from local_dp.simulation.installation import provenance, stamp_of
from local_dp.text.layout import as_csv, grain, number

FORMAT = 1


def data_of(result: Result) -> dict[str, Any]:
    """The result as JSON has it."""
    plan, round, accounts = result.plan, result.round, result.accounts
    epsilon = plan.questions.epsilon + (result.again.epsilon if result.again else 0.0)
    questions = []
    for question, part in zip(plan.questions.questions, round.parts, strict=False):
        tally = part.tally()
        rows = rows_of(question, Standing(question, plan.people).estimate(tally))
        estimates = [
            {name: row[name] for name in ("label", "value", "low", "high")} for row in rows
        ]
        questions.append(
            {
                **question.to_dict(),
                "randomizer": part.query.randomizer.name,
                "answered": tally.n,
                "estimates": estimates,
            }
        )
    return {
        "format": FORMAT,
        "run": plan.run,
        "title": plan.questions.title,
        "began": _date(plan.began),
        "ended": _date(result.end),
        "private": plan.seed is None and not plan.demo,
        "demo": plan.demo,
        "epsilon": epsilon,
        "joined": result.places,
        "refused": round.counts.refused,
        "late": round.counts.late,
        "repeated": round.counts.duplicate,
        "accounts": {
            "given": accounts.members - accounts.silent,
            "agree": accounts.accepted_not_charged == 0,
        },
        "questions": questions,
        "again": result.again and result.again.state(),
        "promised": promised(plan, epsilon, result.places),
        "not_promised": list(NOT_PROMISED[: 2 if plan.game else None]),
    }


def promised(plan: Plan, epsilon: float, people: int) -> list[str]:
    """The promises that held."""
    made_up = (
        [
            (
                f"{min(plan.demo, people):,} of these people were made up by this program, for a "
                "rehearsal."
            )
        ]
        if plan.demo
        else []
    )
    if plan.game:
        return [
            *made_up,
            (
                "The server dealt each phone a made-up record and knows it: such a record is "
                "about nobody, and not private."
            ),
            (
                f"Each phone randomized its one report, with epsilon {number(epsilon)}. The class "
                "found its rule from these reports alone."
            ),
            "One key counted once, however often its page was opened.",
        ]
    return [
        *made_up,
        (
            "Each phone flipped its answers at random before it sent them: all reports of one "
            f"person together have epsilon {number(epsilon)}."
        ),
        "The server stored these random reports and no true answer. It stored no address.",
        "One key counted once, however often its page was opened.",
    ]


NOT_PROMISED = (
    "One person with two devices could answer twice.",
    (
        "People trusted the program that this page sent to their browsers, unless they used "
        "another client."
    ),
    (
        "People who answered are not a random sample of all people; the intervals are about those "
        "who would answer."
    ),
)


def text_of(data: Mapping[str, Any]) -> str:
    """For a terminal."""
    lines = [
        data["title"],
        f"{data['joined']:,} people joined; epsilon {number(data['epsilon'])} each.",
    ]
    for question in data["questions"]:
        lines += ["", f"{question['text']} ({question['answered']:,} answers)"]
        lines += [f"  {row['label']}: {_row(row)}" for row in question["estimates"]]
    if data["again"] is not None:
        again = data["again"]
        lines += [
            "",
            again["title"],
            *(f"  {line}" for line in (*again["steps"], again["text"], again["beside"]) if line),
        ]
    lines += [
        "",
        *data["promised"],
        "Not promised:",
        *(f"  {line}" for line in data["not_promised"]),
    ]
    return "\n".join(lines)


def _row(row: dict[str, Any]) -> str:
    if row["value"] is None:
        return "no answer"
    value, low, high = _numbers(row)
    return f"{value} (95 % interval {low} to {high})"


def _numbers(row: dict[str, Any]) -> list[str]:
    """An estimate and the ends of its interval, to the digits that this shows."""
    each = row["value"], row["low"], row["high"]
    return ["none" if end is None else number(end, grain(None, each[1:], each[0])) for end in each]


def table_of(data: dict[str, Any]) -> str:
    """As CSV, a line for each estimate."""
    of_question = itemgetter("text", "kind", "epsilon", "answered")
    of_row = itemgetter("label", "value", "low", "high")
    rows = [
        (*of_question(question), *of_row(row))
        for question in data["questions"]
        for row in question["estimates"]
    ]
    if data["again"] is not None:
        again = {**data["again"], "epsilon": "", "answered": "", "label": data["again"]["text"]}
        rows.append((again["question"], *of_question(again)[1:], *of_row(again)))
    return as_csv(
        ("question", "kind", "epsilon", "answered", "label", "value", "low", "high"), rows
    )


_STYLE = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 "
    "1rem;color-scheme:light dark}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem "
    ".6rem;border-bottom:1px solid #8888}td+td,th+th{text-align:right}"
)


def page_of(data: dict[str, Any]) -> str:
    """As a page without a script."""
    dates = f"{_safe(data['began'])} to {_safe(data['ended'])}"
    people = f"<p>{data['joined']:,} people joined, {dates}.</p>"
    parts = [f"<h1>{_safe(data['title'])}</h1>{people}"]
    for question in data["questions"]:
        rows = "".join(map(_cells, question["estimates"]))
        about = f"<p>{question['answered']:,} answers, epsilon {number(question['epsilon'])}.</p>"
        head = (
            "<tr><th scope=col>answer</th><th scope=col>estimate</th><th scope=col>95 % "
            "interval</th></tr>"
        )
        parts.append(
            f"<section><h2>{_safe(question['text'])}</h2>{about}<table>{head}{rows}</table></section>"
        )
    if data["again"] is not None:
        again = data["again"]
        steps = "".join(f"<li>{_safe(step)}</li>" for step in again["steps"])
        about = f"<p>{_safe(again['question'])}</p><ol>{steps}</ol>"
        outcome = f"<p>{_safe(again['text'])}</p><p>{_safe(again['beside'])}</p>"
        parts.append(f"<section><h2>{_safe(again['title'])}</h2>{about}{outcome}</section>")
    for heading, lines in (("Promised", data["promised"]), ("Not promised", data["not_promised"])):
        items = "".join(f"<li>{_safe(line)}</li>" for line in lines)
        parts.append(f"<h2>{heading}</h2><ul>{items}</ul>")
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src '
        f"'unsafe-inline'\"><title>{_safe(data['title'])}</title>"
    )
    return (
        "<!DOCTYPE html>\n<html "
        f'lang="en"><head>{head}<style>{_STYLE}</style></head><body><main>{"".join(parts)}</main></body></html>\n'
    )


def _safe(text: str) -> str:
    return shown(text, "page")


def _cells(row: dict[str, Any]) -> str:
    return (
        f"<tr><td>{_safe(row['label'])}</td><td>{_numbers(row)[0]}</td><td>{_ends(row)}</td></tr>"
    )


def _ends(row: dict[str, Any]) -> str:
    return "none" if row["value"] is None else " to ".join(_numbers(row)[1:])


def check_out(folder: Path) -> None:
    """Makes the folder of a result. Raises InputError unless files may be written there."""
    with _writing(folder), TemporaryFile(dir=folder):
        pass


def write(data: dict[str, Any], folder: Path) -> None:
    """Writes result.json, result.csv and result.html, and how they came about as provenance.json.
    Raises InputError."""
    about = json.dumps(provenance(None, stamp_of()), indent=1) + "\n"
    files = {
        "result.json": json.dumps(data, indent=1) + "\n",
        "result.csv": table_of(data),
        "result.html": page_of(data),
        "provenance.json": about,
    }
    with _writing(folder):
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise InputError(
            f"cannot write the result to {str(folder)!r}: {error.strerror or error}; give another "
            "--out"
        ) from None


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
