"""What a respondent's page does without a browser: it refuses what it does not show, and shows the
coin that was really used."""

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from local_dp.masked.queries import MaskedIndex, MaskedList
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.cells import Below
from local_dp.queries.query import STEPS
from local_dp.randomizers.frequencies.signed import SignedBlocks
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.server.pages import LOOPBACK
from local_dp.server.poll.place import listening, site_of
from local_dp.server.poll.plan import Plan
from local_dp.server.poll.questions import Question, Questions
from local_dp.server.poll.run import Poll
from local_dp.server.remote import Journal
from local_dp.wire import Ask, Request, encode
from tests.support import web
from tests.support.runs.polls import THREE, plan
from tests.support.web import needs_node, node
from tests.support.wrong import wrong

pytestmark = needs_node
# scripts
FUZZ = [
    60,
    pytest.param(300, marks=pytest.mark.long),
    pytest.param(10_000, marks=pytest.mark.slow),
]
ASKS = tuple(Ask.of(query, bytes(16)) for query in THREE.asks(100))
THRESHOLD = Ask.of(
    LocalQuery(Below("q3", 4.5, STEPS // 2), OneBitMean(0.5), Cohort(0, 100)), bytes(16)
)


def _public(settings: Plan, folder: Path) -> dict[str, Any]:
    """The poll as the server describes it to a page."""
    with (
        closing(Journal.begin(folder, settings.run, settings.to_dict())) as journal,
        listening(LOOPBACK, settings.port) as listener,
    ):
        return Poll(settings, journal, site_of(settings), listener).public()


def _run(program: str, folder: Path, **parameters: Any) -> Any:
    """What a program in Node prints, beside the files as they are served."""
    files = folder / "served"
    shutil.copytree(web.ROOT / "server" / "poll" / "pages", files)
    client = web.ROOT / "clients" / "web"
    shutil.copytree(client, files / "client")
    shutil.copy(client / "package.json", files)
    return node(f"../poll/{program}", data={"folder": str(files), **parameters}, timeout=1200)


def _page(
    folder: Path,
    *requests: tuple[int, tuple[Ask, ...]],
    record: dict[str, int] | None = None,
    **options: Any,
) -> Any:
    """What the page's client made of these requests, each with its round."""
    settings = plan(**options)
    rounds = [
        encode(Request(run=settings.run, round=number, asks=asks, missing=())).hex()
        for number, asks in requests
    ]
    return _run("pages.mjs", folder, poll=_public(settings, folder), requests=rounds, record=record)


@wrong(
    "server/poll/pages/methods.js",
    "edge: share(randomizer.edge(value), randomizer.total)",
    "edge: share(randomizer.edge(0), randomizer.total)",
    "the page shows a coin that is not the one that was used",
)
def test_the_coin_on_the_page_is_the_one_that_was_used(tmp_path: Path) -> None:
    """The zone in which the coin fell is what happened to the answer; the bits on the page are
    those of the stored reply, now and after a reload."""
    page = _page(tmp_path, (1, ASKS), (1, ASKS))
    (yes, label, number), again = page["answers"]
    assert again == []
    in_first = [each["coin"]["at"] < each["coin"]["edge"] for each in (yes, label, number)]
    assert [yes["answer"], label["answer"], number["answer"]] == [1, 1, 7]
    assert in_first == [yes["meaning"] == "no", label["meaning"] != "green", number["bits"] == "1"]
    assert abs(yes["coin"]["edge"] - 0.26894) < 1e-4
    # 7 of 0 to 10, at epsilon 0.5
    assert abs(number["coin"]["edge"] - (0.5 + 0.4 * (0.5 - 0.37754))) < 1e-4
    assert [[each[name] for name in ("text", "bits", "meaning")] for each in page["kept"]] == [
        [each[name] for name in ("text", "bits", "meaning")] for each in (yes, label, number)
    ]
    assert all(each["answer"] is None and each["coin"] is None for each in page["kept"])
    assert (
        page["chances"][0]
        == "In 27 of 100 cases your phone will say the opposite, and nobody can know when."
    )
    assert page["budget"]["run"] == 2_500_000_000


@wrong(
    "server/poll/pages/respondent.js",
    "return again && isAnswered ?",
    "return again ?",
    "a second question is answered in place of the first",
)
def test_a_later_round_asks_what_was_announced(tmp_path: Path) -> None:
    """A threshold of the announced number, at its epsilon, in an announced round: answered once, in
    words. Any other request of a later round is refused."""
    other = Ask.of(
        LocalQuery(Below("q1", 4.5, STEPS // 2), OneBitMean(0.5), Cohort(0, 100)), bytes(16)
    )
    cheaper = Ask.of(
        LocalQuery(Below("q3", 4.5, STEPS // 2), OneBitMean(0.25), Cohort(0, 100)), bytes(16)
    )
    asks = (
        (2, (THRESHOLD,)),
        (1, ASKS),
        (2, (other,)),
        (2, (cheaper,)),
        (2, ASKS[2:]),
        (3, (THRESHOLD,) * 2),
        (4, (THRESHOLD,)),
        (2, (THRESHOLD,)),
    )
    page = _page(tmp_path, *asks, ask_again=True)
    early, first, *codes, (second,), more = page["answers"]
    assert (early, len(first), codes, more) == (
        "bad-query",
        3,
        [*["bad-query"] * 3, "budget"],
        "budget",
    )
    assert page["kept"][3]["text"] == second["text"]
    # it is 7
    assert (second["text"], second["answer"]) == (
        "How many hours? Is your number below 4.5?",
        0,
    )
    assert second["meaning"] == {"0": "no", "1": "yes"}[second["bits"]]
    assert (second["coin"]["at"] < second["coin"]["edge"]) == (second["bits"] == "1")
    assert abs(second["coin"]["edge"] - 0.37754) < 1e-4


@wrong(
    "server/poll/pages/game.js",
    "asked: free",
    'asked: given.get("asked")',
    "a phone reports another bit than the page names",
)
def test_a_phone_plays_the_game_that_was_announced(tmp_path: Path) -> None:
    """Either round of the game, once and at its epsilon, in words that fit the bits; nothing else,
    in no round."""
    index, list_ = MaskedIndex(8), MaskedList(8, r=0b10100000, free=0b11, asked=0b11)
    ours, other = (
        Ask.of(LocalQuery(index, SignedBlocks(epsilon, k=8), Cohort(0, 100)), bytes(16))
        for epsilon in (5.0, 4.0)
    )
    wrong = Ask.of(LocalQuery(MaskedIndex(4), SignedBlocks(5.0, k=4), Cohort(0, 100)), bytes(16))
    second = Ask.of(LocalQuery(list_, SignedBlocks(5.0, k=6), Cohort(0, 100)), bytes(16))
    game: dict[str, Any] = {
        "questions": Questions("a game", ()),
        "game": 5.0,
        "record": {"x": 0b10100110, "i": 5, "b": 1, "y": -1},
    }
    other_bit = second.model_copy(update={"query_params": {**second.query_params, "asked": 0b110}})
    requests = [
        (1, (other,)),
        (1, (wrong,)),
        (1, ASKS),
        (2, (other_bit,)),
        (3, (ours,)),
        (2, (ours,)),
        (1, (ours, ours)),
    ]
    *codes, (first,), more = _page(
        tmp_path / "one", *requests, (1, (ours,)), (2, (second,)), **game
    )["answers"]
    assert (codes, more) == (["bad-query"] * 6 + ["budget"], "budget")
    assert (first["text"], first["question"]["labels"][first["answer"]]) == (
        "Round 1: which bit of r does your label show?",
        "bit 5 is 1",
    )
    assert first["meaning"] == first["question"]["labels"][int(first["bits"], 2)]
    game["record"] |= {"b": 0}
    ((last,),) = _page(tmp_path / "two", (2, (second,)), **game)["answers"]
    # two common ones, and the label -1
    assert last["question"]["labels"][last["answer"]] == "x is 01, and the label does not fit"
    assert "x at the places 0, 1, and does the label fit r = 00000101?" in last["text"]


@wrong(
    "server/poll/pages/respondent.js",
    "asks.length !== shown.length || ",
    "",
    "a page answers a part of its questions, chosen by the server",
)
def test_round_one_is_what_the_page_shows(tmp_path: Path) -> None:
    """Exactly the questions on the page, in order, once each and without a label: a repeat, another
    order, a part and a label are refused, and cost nothing."""
    labelled = tuple(ask.model_copy(update={"once": "label"}) for ask in ASKS)
    requests = [
        (1, ASKS[:1] * 2),
        (1, ASKS[::-1]),
        (1, ASKS[:2]),
        (1, (*ASKS, ASKS[0])),
        (1, labelled),
        (1, ASKS),
    ]
    *codes, answers = _page(tmp_path, *requests)["answers"]
    assert codes == ["bad-query"] * 5
    assert [each["text"] for each in answers] == [question.text for question in THREE.questions]


def test_the_page_builds_the_asks_that_the_server_sends(tmp_path: Path) -> None:
    """Sixteen questions of all kinds, by either method of labels, at whole and broken epsilons and
    bounds: all are answered."""
    sizes = (2, 3, 5, 9, 17, 33, 64, 100)
    labels = [
        Question(f"q{place}", "Which?", 0.04 * place, labels=tuple(map(str, range(k))))
        for place, k in enumerate(sizes, start=1)
    ]
    numbers = [
        Question(f"q{place}", "How many?", epsilon, low=low, high=12.75)
        for place, (epsilon, low) in enumerate([(1, 0), (0.3, -0.1), (0.7, 0.0)], start=9)
    ]
    yes = [
        Question(f"q{place}", "Did you?", epsilon)
        for place, epsilon in enumerate((1, 0.123456789, 1 / 3, 0.001, 1e-6), start=12)
    ]
    questions = Questions("many", (*labels, *numbers, *yes))
    asks = tuple(Ask.of(query, bytes(16)) for query in questions.asks(100))
    assert {ask.randomizer for ask in asks[:8]} == {"grr", "subset-selection"}
    (answers,) = _page(tmp_path, (1, asks), questions=questions)["answers"]
    assert len(answers) == len(asks)


@wrong(
    "clients/web/client.js",
    "(totals) => check(planned, totals, this.policy)",
    "() => {}",
    "two pages of one browser spend the same budget at once",
    at="60",
)
@wrong(
    "server/poll/pages/shown.js",
    "play(bits, round, ask.query_params)",
    'play(bits, ask.query === "masked-list" ? 2 : 1, ask.query_params)',
    "a phone makes a move that its page names otherwise",
    at="60",
)
@wrong(
    "server/poll/pages/shown.js",
    " && !TURNED.test(text);",
    ";",
    "a label is shown in another order of letters",
    at="60",
)
@wrong(
    "server/poll/pages/shown.js",
    'const isItself = kind !== "labels" ||',
    "const isItself = true ||",
    "an answer beyond the length of a column counts as the first one",
    at="60",
)
@wrong(
    "server/poll/pages/shown.js",
    "new Set(own.map(visible)).size === own.length",
    "new Set(own).size === own.length",
    "two answers look the same and count differently",
    at="60",
)
@wrong(
    "server/poll/pages/shown.js",
    "return { ...made, name, text, kind, labels: own, low, high };",
    (
        "return { ...made, name, text, kind, labels: own, low, high, "
        "...(arguments[0].query_params && { query_params: new "
        "Map(Object.entries(arguments[0].query_params)) }) };"
    ),
    "a harmless text stands over the query of another question",
    at="60",
)
@wrong(
    "server/poll/pages/respondent.js",
    "const { kind, text } = question,",
    "const { kind } = question, text = this.poll.questions[ask]?.text ?? question.text,",
    "sent bits are shown under a question that was not asked",
    at="60",
)
@wrong(
    "server/poll/pages/respondent.js",
    "Math.min(LIMITS.perRun, poll.cost)",
    "LIMITS.perRun",
    "a page answers thresholds beyond the announced cost",
    at="60",
)
@wrong(
    "server/poll/pages/respondent.js",
    "isAnswered = String(first?.asks?.map(written)) === String(questions.map(written))",
    "isAnswered = first !== undefined",
    "a second question follows the answers to another description of the poll",
    at="60",
)
@wrong(
    "server/poll/pages/respondent.js",
    " && (place === at || !isFirst)",
    "",
    "an answer has the number of another question",
    at="60",
)
@wrong(
    "server/poll/pages/respondent.js",
    " && !ask.once",
    "",
    "an answer is kept for other polls, by a name that no page shows",
    at="60",
)
@wrong(
    "server/poll/pages/respondent.js",
    "if (round === 1) return questions;",
    (
        "if (round === 1) return asks.map(({ ask }) => questions.find((each) => written(each) === "
        "written(ask)) ?? null);"
    ),
    "a page answers one of its questions eight times",
    at="60",
)
@wrong(
    "server/poll/pages/respondent.js",
    "written(ask) === written(question)",
    "ask.query === question.query",
    "a page answers another question than the one on it",
    at="60",
)
@pytest.mark.parametrize("scripts", FUZZ)
def test_no_script_of_a_server_gets_more_than_was_shown(scripts: int, tmp_path: Path) -> None:
    """Hostile polls and requests, in two tabs with reloads and races: no report beyond the
    questions shown, at the shown law; honest scripts get all theirs.

    An account that shares no code with the page checks each report, the sum of later rounds, and
    the texts of "What your phone sent".
    """
    figures = _run("fuzz.mjs", tmp_path, seeds=scripts, first=1)
    print(f"{scripts:,} scripts: {figures}")
    assert (figures["faults"], figures["violations"]) == (0, [])
    assert (figures["scripts"], figures["unclear"]) == (scripts, 240)
    assert figures["honest"] > scripts / 4
    assert figures["reports"] > 1.5 * scripts
    assert min(figures["later"], figures["games"]) > scripts / 20
    assert figures["refused"] > 3 * scripts
