"""Attacks on a table of your own: how much do noisy answers reveal?

`import local_dp as ldp; ldp.attack.reconstruct(table, "affairs > 0", noise=40)`. Each attack takes
the noise of the answers, or the epsilon of a curator, and a seed.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from local_dp.accounting.rules import optimal_part
from local_dp.api.declare import WIDTH, Printable, by_name
from local_dp.api.tables import Dates, Table, records_of
from local_dp.arrays import Bools, Column, Floats
from local_dp.attacks import (
    Traced,
    least_squares,
    random_subsets,
    reconstruction,
    traced_share,
    tracing,
)
from local_dp.bounds.attacks import wrong_bits
from local_dp.curator.account import Account, TrustedOracle
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.experiments.lab.intervals import wilson
from local_dp.interaction import Nonadaptive, run
from local_dp.loss import Pure, approximate
from local_dp.oracles.statistical.oracles import NoisyOracle, StatisticalQuery
from local_dp.populations.finite import Rows
from local_dp.protocols.local_protocol import PlainData
from local_dp.queries.encoded import packed
from local_dp.queries.grammar import parse
from local_dp.queries.questions import answers_of
from local_dp.queries.subsets import secret_bits
from local_dp.records import Records, absent
from local_dp.simulation.outcome import STAMP
from local_dp.simulation.settings import Randomness
from local_dp.text.layout import held, number, paragraph
from local_dp.theorems.curated import curated_from_sq

R = TypeVar("R")
DELTA = 1e-6
MOST_ROWS, RATIO = 400, 4  # rows to reconstruct, counts per row
# attributes of a column; groups; strangers that may score above
MOST_CUTS, GROUPS, RATE = (16, 20, 0.01)
LEAST = 200  # strangers, so that one in a hundred is measurable


@dataclass(frozen=True)
class Answers:
    """The noise of the counts: normal with standard deviation `noise`, in rows, or that of a
    curator with `epsilon` and delta 1e-6 for all."""

    noise: float | None
    epsilon: float | None
    chance: Randomness

    def __post_init__(self) -> None:
        if (self.noise is None) == (self.epsilon is None):
            raise InputError(
                "give either noise, the standard deviation of each count in rows, or epsilon, for "
                "a curator"
            )
        if self.noise is not None and not 0 <= self.noise < 1e9:
            raise InputError(
                f"the noise is {self.noise:g}; give a standard deviation of 0 or more, in rows"
            )
        if self.epsilon is not None:
            approximate(self.epsilon, DELTA)

    def part(self, counts: int) -> Pure:
        """The loss of each of the curator's counts, by optimal composition."""
        assert self.epsilon is not None
        return optimal_part(approximate(self.epsilon, DELTA), counts)

    def sd(self, counts: int) -> float:
        """The standard deviation of a count, in rows; for a curator, of Laplace noise."""
        return float(np.sqrt(2) / self.part(counts).epsilon) if self.noise is None else self.noise

    def to(
        self,
        attack: Nonadaptive[StatisticalQuery, float, R],
        table: Records,
        *,
        scale: float = 1.0,
        round: int = 0,
    ) -> R:
        """The result of the attack; `scale` is a factor of the noise."""
        counts, n = len(attack.queries), len(table)
        if self.noise is not None:
            generator = np.random.default_rng([self.chance.seed, round, 1])
            return run(attack, NoisyOracle(Rows(table), 2 * scale * self.noise / n, generator))
        part = self.part(counts)
        trusted = TrustedOracle[Records](
            table, Account(Pure(counts * part.nano)), Draws(self.chance.noise(), round)
        )
        return run(curated_from_sq(attack, part.epsilon, n), trusted)


def _yes(records: Records, question: str) -> Bools:
    """The rows that answer yes. Raises InputError if a missing value leaves the answer open."""
    answers = answers_of(parse(question), records)
    if answers.unknown.any():
        raise InputError(
            f"{int(answers.unknown.sum()):,} rows have no answer to {question!r}: a value is "
            "missing; ask a question that every row answers"
        )
    return answers.yes


@dataclass(frozen=True, repr=False)
class Attacked(Printable):
    """The result of an attack."""

    def text(self, width: int = WIDTH) -> str:
        data = self.data
        noise = (
            f"noise of standard deviation {data['sd']:g}"
            if data["sd"] is not None
            else f"a curator with epsilon {data['epsilon']:g} and delta {DELTA:g}"
        )
        head = (
            f"{data['attack']}: {data['question']!r}, {number(data['n'])} rows, {held(noise)}; "
            f"{held(data['stamp'])}, {held('seed ' + str(data['seed']))}"
        )
        lines = _rows_text(data) if data["attack"] == "reconstruct" else _members_text(data)
        return "\n".join(paragraph(line, width) for line in (head, "", *lines))


@by_name
def reconstruct(
    table: Table,
    question: str,
    *,
    noise: float | None = None,
    epsilon: float | None = None,
    seed: int | None = None,
    csv: str = "",
    dates: Dates = None,
) -> Attacked:
    """Guesses every row's answer to a yes/no question from many noisy counts of random groups of
    rows: 4 n counts.

    Of a larger table 400 rows are sampled, and the noise is scaled to their square root: the share
    of wrong guesses depends only on the noise in units of sqrt(n) (`bounds.attacks.wrong_bits`).
    """
    records = records_of(table, csv=csv, dates=dates)
    answers = Answers(noise, epsilon, Randomness.choose(seed, False))
    generator = np.random.default_rng(answers.chance.seed)
    yes = _yes(records, question)
    n, sample = len(yes), min(len(yes), MOST_ROWS)
    bits = generator.permutation(yes)[:sample]
    scale = float(np.sqrt(sample / n))
    counts = RATIO * sample
    attack = reconstruction(random_subsets(counts, sample, generator), 0.5, least_squares)
    wrong = int(np.sum(answers.to(attack, secret_bits(bits), scale=scale) != bits))
    low, high = wilson(wrong, sample)
    sd = answers.sd(counts) * (scale if noise is not None else 1.0)
    return Attacked(
        {
            **_about("reconstruct", question, answers),
            "n": n,
            "tried": sample,
            "counts": counts,
            "wrong": wrong / sample,
            "low": low,
            "high": high,
            "noise": sd,
            "noise_in_roots": sd / sample**0.5,
            "expected": wrong_bits(sample, counts, sd) if sd else 0.0,
            "guessing": float(min(bits.mean(), 1 - bits.mean())),
        }
    )


@by_name
def trace(
    table: Table,
    question: str,
    *,
    members: int = 25,
    noise: float | None = None,
    epsilon: float | None = None,
    seed: int | None = None,
    csv: str = "",
    dates: Dates = None,
) -> Attacked:
    """Identifies the members of a small random group of rows that answer yes, from the noisy means
    of all their attributes.

    One half of the others are the strangers; the other half is public knowledge. The attributes of
    a row are dependent, so p-values prove nothing here: members are compared with strangers.
    """
    records = records_of(table, csv=csv, dates=dates)
    answers = Answers(noise, epsilon, Randomness.choose(seed, False))
    bits = attributes(records)[_yes(records, question)]
    strangers = (len(bits) - members) // 2
    if members < 1 or strangers < LEAST:
        raise InputError(
            f"{len(bits):,} rows answer yes to {question!r}; a group of {members:,} needs at "
            f"least {members + 2 * LEAST:,}"
        )
    scores, error = [], 0.0
    for each in range(GROUPS):
        rows = np.random.default_rng([answers.chance.seed, each]).permutation(bits)
        suspects, public = rows[: members + strangers], rows[members + strangers :]
        shares = (public.sum(axis=0) + 0.5) / (len(public) + 1)  # of ones of each bit, never 0 or 1
        group = packed(rows[:members])
        means, result = answers.to(_with_means(tracing(shares, suspects, 0.5)), group, round=each)
        scores.append(result.scores)
        errors = np.abs((means + 1) / 2 - rows[:members].mean(axis=0))
        error = max(error, float(errors.max()))
    inside, outside = (
        np.concatenate([each[part] for each in scores])
        for part in (slice(members), slice(members, None))
    )
    return Attacked(
        {
            **_about("trace", question, answers),
            "n": len(bits),
            "members": members,
            "groups": GROUPS,
            "attributes": bits.shape[1],
            "found": traced_share(inside, outside, RATE),
            "by_chance": RATE,
            "largest_error": error,
        }
    )


def _with_means(
    attack: Nonadaptive[StatisticalQuery, float, Traced],
) -> Nonadaptive[StatisticalQuery, float, tuple[Floats, Traced]]:
    """The same attack; its result also holds the answers."""
    return Nonadaptive(attack.queries, lambda answers: (np.array(answers), attack.decode(answers)))


def _about(attack: str, question: str, answers: Answers) -> PlainData:
    return {
        "attack": attack,
        "question": question,
        "sd": answers.noise,
        "epsilon": answers.epsilon,
        "delta": None if answers.epsilon is None else DELTA,
        "private": False,
        "stamp": STAMP,
        "seed": answers.chance.seed,
    }


def attributes(records: Records) -> Bools:
    """Bits of each row, shape (n, d): at or above each of up to 16 values of a column of numbers,
    equal to each of up to 16 texts."""
    columns = [bit for name in records.columns for bit in _bits(records[name])]
    if not columns:
        raise InputError("every column has one value only, so all rows look the same")
    return np.stack(columns, axis=1)


def _bits(column: Column) -> list[Bools]:
    values, counts = np.unique(column[~absent(column)], return_counts=True)
    if len(values) < 2:
        return []
    if column.dtype.kind == "U":
        return [column == value for value in values[np.argsort(-counts)][:MOST_CUTS]]
    places = np.unique(np.linspace(0, len(values) - 2, MOST_CUTS).astype(np.int64))
    return [column >= value for value in values[1:][places]]


def _rows_text(data: PlainData) -> list[str]:
    sample = ""
    if data["tried"] != data["n"]:
        sample = f" of {data['tried']} sampled rows, with noise scaled to their square root,"
    wrong, low, high, expected, guessing = (
        held(_percent(data[name])) for name in ("wrong", "low", "high", "expected", "guessing")
    )
    return [
        f"From {data['counts']:,} random counts{sample} {wrong} of the guessed answers are wrong "
        f"({low}{held(' to ')}{high}; closed form {expected}).",
        f"The noise is {data['noise_in_roots']:.2g} times the square root of the number of rows. "
        f"Guessing the more common answer for everyone is wrong in {guessing}.",
        _comparison(data),
    ]


def _comparison(data: PlainData) -> str:
    if data["high"] < data["guessing"]:
        return "So many counts reveal single rows."
    if data["low"] < data["guessing"]:
        return "These guesses do not show that the attack does better."
    return "This attack guesses no better than that."


def _members_text(data: PlainData) -> list[str]:
    return [
        f"From the means of {data['attributes']} attributes of {data['members']:,} "
        f"row{'s' * (data['members'] != 1)}, {held(_percent(data['found']))} of these rows are "
        "distinguished from 99 % of the others that answer yes; by chance "
        f"{held(_percent(data['by_chance']))} are. {data['groups']} groups were tried.",
        f"The largest error of a mean is {data['largest_error']:.2g}.",
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def __dir__() -> list[str]:
    return ["Attacked", "reconstruct", "trace"]
