"""Requests that a client refuses: the code, and that nothing is charged."""

from typing import Any

from local_dp.queries.tables import Bounded, Category, Question
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.wire import Ask
from tests.support.vectors.clients import answers, client
from tests.support.vectors.files import Case, File
from tests.support.vectors.messages import ask
from tests.support.vectors.replies import YES, asked, of, one

GRADE = Category("grade", ("good", "so so", "bad"))


def cases() -> dict[str, Case]:
    def rr(**params: Any) -> Ask:
        return ask(randomizer_params={"epsilon": 1.0, "word_bits": 32, **params})

    yes = ask()
    refused: dict[str, list[Ask]] = {
        "more than the run's budget": [rr(epsilon=2.000000001)],
        "three asks beyond the run's budget": [yes, yes, rr(epsilon=0.000001)],
        "a charge below the least": [rr(epsilon=9.98e-7)],
        "epsilon 0": [rr(epsilon=0.0)],
        "epsilon below 0": [rr(epsilon=-1.0)],
        "epsilon beyond 24": [rr(epsilon=24.000001)],
        "epsilon as text": [rr(epsilon="1")],
        "no epsilon": [ask(randomizer_params={"word_bits": 32})],
        "a parameter that there is not": [rr(more=1)],
        "words of 33 bits": [rr(word_bits=33)],
        "words of -1 bits": [rr(word_bits=-1)],
        "words as a fraction": [rr(word_bits=32.0)],
        "words too narrow": [rr(word_bits=1)],
        "a randomizer that there is not": [
            ask(randomizer="truth", randomizer_params={"epsilon": 1.0})
        ],
        "a randomizer that is only a part": [
            ask(randomizer="translates", randomizer_params={"epsilon": 1.0, "k": 3, "w": 1})
        ],
        "a query that there is not": [ask(query="horoscope", query_params={})],
        "a question that is none": [ask(query_params={"text": "cheated = 1", "spare": ()})],
        "no question": [ask(query_params={})],
        "a column that there is not": [ask(query_params={"text": "weight > 3", "spare": ()})],
        "text against a number": [ask(query_params={"text": "cheated == 'yes'", "spare": ()})],
        "three values for a bit": [asked(GRADE, BinaryRR(1.0))],
        "a bit for three values": [asked(YES, GRR(1.0, k=3))],
        "another lattice": [asked(Bounded("hours", 0.0, 40.0), OneBitMean(0.5, steps=100))],
        "one label": [
            ask(
                query="category", query_params={"column": "grade", "labels": ("good",), "spare": ()}
            )
        ],
        "labels twice": [
            ask(
                query="category",
                query_params={"column": "grade", "labels": ("good", "good"), "spare": ()},
            )
        ],
        "bounds upside down": [
            ask(query="bounded", query_params={"column": "hours", "low": 2.0, "high": 1.0})
        ],
        "a number of text": [asked(Bounded("grade", 0.0, 40.0), OneBitMean(0.5))],
        "k = 1": [
            asked(GRADE, GRR(1.0, k=3)).model_copy(
                update={"randomizer_params": {"epsilon": 1.0, "word_bits": 32, "k": 1}}
            )
        ],
        "k = 4097": [
            asked(GRADE, GRR(1.0, k=3)).model_copy(
                update={"randomizer_params": {"epsilon": 1.0, "word_bits": 64, "k": 4097}}
            )
        ],
        "the second ask is wrong": [yes, ask(query="horoscope", query_params={})],
        "the query before the randomizer": [
            ask(query="horoscope", query_params={}, randomizer="truth")
        ],
        "the first ask before the second": [
            ask(randomizer="truth"),
            ask(query="horoscope", query_params={}),
        ],
        "the question before the budget": [
            rr(epsilon=3.0),
            ask(query="horoscope", query_params={}),
        ],
    }
    made = {name: one(of(*asks), []) for name, asks in refused.items()}
    another = asked(Question("cheated == 1", ("missing",)), GRR(0.5, k=3))
    return {
        **made,
        "not on the list": {
            **made["more than the run's budget"],
            "request": of(another).hex(),
            "policy": {"allowed": ["binary-rr"]},
        },
        "an unknown one that is not on the list": {
            **made["a randomizer that there is not"],
            "policy": {"allowed": ["binary-rr"]},
        },
        "an empty list": {**one(of(yes), []), "policy": {"allowed": []}},
        "more than for life": {
            **one(of(yes), []),
            "limits": {"run": 1_000_000_000, "life": 999_999_999},
        },
        "no more rounds": {**one(of(yes), []), "policy": {"rounds": 0}},
        "no more bytes": {**one(of(yes, yes), []), "policy": {"kept": 1}},
        "a higher least": {**one(of(yes), []), "policy": {"least": 1_000_000_001}},
        "host: all are refused": {
            **one(of(rr(epsilon=2.5)), []),
            "records": [{"cheated": ["whole", "0"]}] * 3,
            "member": "host-7",
        },
    }


def expected(given: Case) -> Case:
    role, noise = client(given)
    return answers(role, noise, bytes.fromhex(given["request"]), given["words"])


REFUSALS = File(
    "refusals",
    "Requests that a client refuses by a code. The text of a refusal is the client's own.",
    cases,
    expected,
)
