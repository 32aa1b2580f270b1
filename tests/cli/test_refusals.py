"""Wrong input at the command line: one line on standard error, with the value, the nearest name or
what to type; the documented exit code."""

import shlex
import sys
from pathlib import Path

import pytest

from local_dp.cli.inspect.listing import Protocols
from tests.support.runs.command import local_dp

pytestmark = pytest.mark.usefixtures("warm", "impatient")

LONG = "x" * 300
REFUSED = {  # by the exit code: the command, and what its line says
    2: {
        "run telepathy": "telepathy",
        "run survey --epsilon 0": "epsilon is 0",
        "run survey --epsilon nan": "epsilon is 'nan'; give a number",
        "run survey --epsilon inf": "epsilon is inf",
        "run survey --clients 0": "clients is 0",
        "run survey --hosts 0": "hosts is 0",
        "run frequency --k 1": "k is 1",
        "run masked-parity --d 65": "d is 65",
        "run survey --randomizer rounded-grr": (
            "takes the grouped levels 0 to 2 and estimates averages; survey needs averages of the"
        ),
        "run survey --q 1": "no option '--q'",
        "audit grr --set k": "NAME=VALUE",
        "audit grr --set epsilon=3": (
            "epsilon is set to 3; it has an option of its own: give --epsilon"
        ),
        "shuffle grr --set epsilon=2 --clients 100": "epsilon is set to 2",
        "audit grr --set name=x": "grr has no parameter 'name'; there are word_bits, k",
        "audit grr --set epsilom=3": "no parameter 'epsilom'; there are word_bits, k",
        "audit grr --set k=2 --set k=3": "k is set to '2' and to '3'; give one",
        "audit quitter:Quit": "quitter:Quit cannot be made with epsilon 1.0 and {}: SystemExit: 0",
        "audit quitter:Angry": "ZeroDivisionError: no way",
        "audit nowhere_at_all:Class": "No module named",
        "shuffle quitter:Quit": "SystemExit: 0",
        "run survey --p 1.5": "p is 1.5",
        "run survey --question 'yes >'": "cannot read the question",
        "run survey --quorum 2": "the quorum is 2",
        "run survey --deadline -1": "the deadline is -1",
        "run survey --seed 1 --private": "takes no seed",
        "run survey --tier aggregate --private": "cannot be private",
        "run survey --seed -1": "seed is -1",
        "run survey --records nowhere.csv --question 'a > 1'": "no file 'nowhere.csv'",
        "run survey --broker http://x": "cannot use the broker 'http://x'",
        "run survey --plot figure.txt": "figure.txt",
        "run learn --plot figure.png": "is a hypothesis",
        (
            "curate threshold --records nowhere.csv --column a --label b --plot figure.png"
        ): "is a rule: there is no number to draw",
        "curate median --records nowhere.csv --column a --plot figure.txt": "figure.txt",
        "compare survey --size 99": "size is 99",
        "compare survey --size 1": "size is 1",
        "experiment map --font 1": "font is 1",
        "experiment map --font 41": "font is 41",
        "run survey --clients 1e6 --hosts 1e5": "from 1 to",
        "run survey --epsilon 0.0001": "use --tier aggregate",
        "run survey --tier population --clients 100000000000": "at most 10,000,000,000",
        "run survey --tier aggregate --clients 10000000000000000": "use fewer clients",
        "run survey --tier processes --clients 100000": "too many",
        "rnu": "no command 'rnu'; did you mean 'run'?",
        "median": "'median' is a command of curate: type `local-dp curate median`",
        "run survy": "did you mean 'survey'?",
        "run survey --qestion x": (
            "no option '--qestion'; did you mean '--question'? `local-dp run survey --help`"
        ),
        "curate mean --table x.csv": "no option '--table'; did you mean '--records'?",
        "run survey --tolerence 1": "no option '--tolerence'; did you mean '--tolerance'?",
        "experiment masked-party": "did you mean 'masked-parity'?",
        "describe hadamrd": "did you mean 'hadamard'?",
        "export fare x.csv": "did you mean 'fair'?",
        "run mean --column agee --low 0 --high 9 --records people.csv": "did you mean 'age'?",
        "run survey --question \"smoke == 'yes'\" --records people.csv": "did you mean 'smokes'?",
        "run survey --records people.csv": "survey of a table needs --question: ",
        "run mean --low 0 --high 9 --records people.csv": "mean of a table needs --column: ",
        "run sq --records people.csv": "sq of a table needs --question: ",
        "run survey --question 'age = 30' --records people.csv": "write it as 'age == 30'",
        "run survey --clients 1.5": "clients is '1.5'; give a whole number",
        "run survey --epsilon much": "epsilon is 'much'; give a number",
        "server survey": "Missing option '--broker'",
        "--show-completion fsh": "did you mean 'fish'?",
        "price 'nope 1'": "no kind of mechanism 'nope'",
        "price 'pure 1 x'": "of the form 'pure EPSILON'",
        "price 'pure 1' --delta 0": "delta is 0",
        "price 'pure 1' --epsilon -1": "epsilon is -1",
        "price 'gaussian -3'": "sigma is -3",
        "attack reconstruct --records people.csv --question 'age > 30'": "give either noise",
        (
            "attack reconstruct --records people.csv --question 'age > 30' --noise 1 --epsilon 1"
        ): "give either noise",
        "attack reconstruct --records people.csv --question 'age > 30' --noise -1": "0 or more",
        (
            "attack reconstruct --records people.csv --question 'age > 30' --epsilon 99"
        ): "epsilon is 99",
        "attack reconstruct --records people.csv --question 'income > 3' --noise 1": "no column",
        (
            "attack reconstruct --records people.csv --question 'age >' --noise 1"
        ): "cannot read the question",
        "shuffle nobody": "no randomizer named",
        "shuffle grr --clients 1": "clients is 1",
        "shuffle wide-hashing": "no finite channel",
        "run survey --records empty.csv --question 'a > 1'": "0 rows",
        "run survey --records twins.csv --question 'a > 1'": "two columns of 'twins.csv'",
        f"run survey --records {LONG}.csv --question 'a > 1'": "File name too long",
        f"certify {LONG}": "File name too long",
        f"dimension {LONG}.csv": "File name too long",
        f"run survey --clients 9 --broker 'mqtts://localhost?ca={LONG}'": "certificate file",
        "run survey --clients 9 --broker mqtt://a..b": "no host name",
        "run survey --clients 9 --deadline nan": "give a number",
        "run survey --tolerance 1e-300": (
            "tolerance is '1e-300', too small to compute with; give a number of at least 1e-150"
        ),
        "run survey --records table.xlsx --question 'a > 1'": "cannot read 'table.xlsx'",
        "run survey --records people.csv --csv 'sep=x' --question 'age > 1'": "decimal is . or ,",
        "run survey --records broken.parquet --question 'a > 1'": "cannot read 'broken.parquet'",
        "run survey --records people.csv --question 'income > 1'": "no column 'income'",
        "run survey --records people.csv --question 'smokes > 1'": "compare like with like",
        "run mean --records people.csv --column age": "public bounds",
        "run mean --records people.csv --column smokes --low 0 --high 1": "is text",
        "run frequency --records people.csv --column smokes --private": "list them",
        (
            "run frequency --records people.csv --column smokes --private --labels-from-data"
        ): "declare the labels",
        "run survey --records people.csv --question 'age > 1' --clients 501": "has 500 rows",
        "run masked-parity --records people.csv": "leave out --records",
        (
            "server survey --clients 9 --private --broker mqtt://127.0.0.1:1 --run first"
        ): "is signed: give --key",
        (
            "host survey --clients 9 --private --broker mqtt://127.0.0.1:1 --run first"
        ): "is signed: give --key",
        (
            "server survey --clients 9 --private --broker mqtt://127.0.0.1:1 --run first --key "
            "nowhere"
        ): "go together",
        (
            "host survey --clients 9 --private --broker mqtt://127.0.0.1:1 --run first --key "
            "nowhere"
        ): "go together",
        "server survey --broker mqtt://127.0.0.1:1 --run 'a b'": "'a b'",
    },
    4: {
        "run survey --clients 20 --allow grr": "not on the clients' list",
        "run survey --randomizer binry-rr": "did you mean 'binary-rr'?",
    },
    5: {"run survey --broker mqtt://127.0.0.1:1": "cannot reach the broker mqtt://127.0.0.1:1"},
}

QUITTER = (
    "import sys\nfrom local_dp.randomizers.frequencies.grr import GRR\n\n\nclass Quit(GRR):\n    "
    "def prepare(self):\n        sys.exit(0)\n\n\nclass Angry(GRR):\n    "
    "def prepare(self):\n        raise ZeroDivisionError('no\\nway')\n"
)


def test_no_foreign_code_ends_a_command_with_success(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a plug-in calls sys.exit(0), the command has failed, in one line."""
    monkeypatch.setattr(Protocols, "__call__", lambda self: sys.exit(0))
    done = local_dp("protocols")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "local-dp: foreign code, such as a plug-in's, ended the program with SystemExit(0) and no "
        "result; correct or remove it\n"
    )


@pytest.mark.parametrize(
    ("code", "line"), [(code, line) for code, lines in REFUSED.items() for line in lines]
)
def test_wrong_input_gets_one_line(
    code: int, line: str, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the notice that the clients are few; no traceback, and nothing on standard output."""
    monkeypatch.chdir(table.parent)
    for name, text in {"empty": "a,b\n", "twins": "a,a\n1,2\n"}.items():
        table.with_name(f"{name}.csv").write_text(text)
    table.with_name("quitter.py").write_text(QUITTER)
    table.with_name("table.xlsx").write_text("x")
    table.with_name("broken.parquet").write_bytes(b"PAR1 not really")
    done = local_dp(*shlex.split(line))
    assert done.returncode == code, done.stderr
    assert done.stdout == "", done.stderr
    (notices,) = (
        each
        for each in done.stderr.strip().splitlines()
        if not each.startswith(("round ", "You have "))
    )
    assert REFUSED[code][line] in notices
