"""One request and its answers: the replies of a client that draws given words, and what it keeps
afterwards."""

from typing import Any

from local_dp.masked.queries import MaskedIndex, MaskedList
from local_dp.queries.tables import Bounded, Category, Question
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.signed import SignedBlocks
from local_dp.randomizers.frequencies.subset_selection import SubsetSelection
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.wire import Ask, Request, encode
from tests.support.vectors.clients import answers, client, member
from tests.support.vectors.files import Case, File
from tests.support.vectors.messages import COINS, RUN, ask

YES = Question("cheated == 1")
GRADES = (*(f"grade {at}" for at in range(11)), "so so")
WORDS = (0, 1 << 30, 1 << 31, (1 << 32) - 1)


def asked(query: Any, randomizer: Any, **changes: Any) -> Ask:
    return ask(
        query=query.name,
        query_params=query.params(),
        randomizer=randomizer.name,
        randomizer_params=randomizer.params(),
        **changes,
    )


def of(*asks: Ask, round: int = 1, run: str = RUN, **changes: Any) -> bytes:
    """The bytes of a request."""
    return encode(Request(run=run, round=round, asks=asks, **changes))


def one(request: bytes, words: list[list[int]], **more: Any) -> Case:
    return {
        **member(**more),
        "request": request.hex(),
        "words": [list(map(str, each)) for each in words],
    }


def _game() -> dict[str, Case]:
    """Both queries of masked parity on examples of every kind."""
    index = asked(MaskedIndex(8), SignedBlocks(1.5, k=8, size=2), coins=COINS)
    listed = asked(
        MaskedList(8, r=0b10100100, free=0b00010010, asked=0b00010010), SignedBlocks(1.5, k=6)
    )
    examples = [
        (0b10110110, i, b, y)
        for i, b, y in ((0, 0, 1), (0, 0, -1), (4, 1, 1), (1, 1, -1), (7, 1, -1))
    ] + [(0b00100001, 2, 0, 1)]
    rows = [
        {name: ["whole", str(value)] for name, value in zip("xiby", example, strict=True)}
        for example in examples
    ]
    return {
        f"{name}, x {row['x'][1]}, i {row['i'][1]}, b {row['b'][1]}, y {row['y'][1]}": one(
            of(question), [[(1 << 32) - 1]], records=[row]
        )
        for name, question in (("masked-index", index), ("masked-list", listed))
        for row in rows
    }


def cases() -> dict[str, Case]:
    yes, grade = (
        asked(YES, BinaryRR(1.0)),
        asked(Category("grade", ("good", "so so", "bad")), GRR(0.5, k=3)),
    )
    sets = [
        asked(Category("grade", GRADES), SubsetSelection(epsilon, k=12), coins=coins)
        for epsilon in (0.5, 1.0)
        for coins in (bytes(16), COINS)
    ]
    hours = asked(Bounded("hours", 0.0, 40.0), OneBitMean(0.5))
    wide = asked(
        Category("grade", (*(f"grade {at}" for at in range(299)), "so so")), GRR(2.0, k=300)
    )
    elsewhere = yes.model_copy(update={"start": 50})
    row, other = {"cheated": ["whole", "0"]}, {"cheated": ["whole", "1"]}
    return {
        **{f"binary-rr, word {word}": one(of(yes), [[word]]) for word in WORDS},
        **{f"grr, word {word}": one(of(grade), [[word]]) for word in WORDS},
        **{f"one-bit-mean, word {word}": one(of(hours), [[word << 32]]) for word in WORDS},
        **{
            f"subset-selection {at}, word {word}": one(of(each), [[word]])
            for at, each in enumerate(sets)
            for word in WORDS
        },
        **_game(),
        "reports of two bytes": one(of(wide), [[12345]]),
        "three asks": one(of(yes, grade, hours), [[5], [1 << 20], [1 << 60]]),
        "the second of two asks": one(of(elsewhere, grade), [[], [1 << 20]]),
        "no ask": one(of(elsewhere), []),
        "an ask that ends before": one(of(yes.model_copy(update={"start": 3, "stop": 7})), []),
        "an ask of nobody": one(of(yes.model_copy(update={"start": 9, "stop": 3})), []),
        "twice the same": one(of(yes, yes), [[0], [1 << 31]]),
        "later round, another run": one(of(yes, round=(1 << 32) - 1, run="r" * 64), [[1 << 31]]),
        "addressed to it": one(of(yes, missing=((3, 8),)), [[1 << 31]]),
        "addressed to others": one(of(yes, missing=((0, 7), (8, 100))), [[1 << 31]]),
        "a missing value": one(
            of(asked(Question("gap > 1", ("missing",)), GRR(0.5, k=3))), [[1 << 31]]
        ),
        "epsilon a whole number": one(
            of(ask(randomizer_params={"epsilon": 1, "word_bits": 32})), [[1 << 31]]
        ),
        "the client of the highest number": one(
            of(yes.model_copy(update={"stop": (1 << 48) - 1})), [[1 << 31]], start=(1 << 48) - 2
        ),
        "host: three clients": {
            **one(of(yes), [[0, 1 << 31, 1 << 30]]),
            "records": [row, other, other],
            "member": "host-7",
        },
        "host: at the end of an ask": {
            **one(of(yes.model_copy(update={"stop": 9})), [[0, 1 << 31]]),
            "records": [row, other, other],
            "member": "host-7",
        },
    }


def expected(given: Case) -> Case:
    role, noise = client(given)
    return answers(role, noise, bytes.fromhex(given["request"]), given["words"])


REPLIES = File(
    "replies",
    (
        "The replies of a client that draws these words for each ask, and what it has spent "
        "afterwards. Cases of hosts are of several clients."
    ),
    cases,
    expected,
)
