"""Whatever a table, a results folder or another file holds, a terminal, a page and a spreadsheet
get text alone; a malformed file is a line."""

import ast
import csv
import re
import sys
import unicodedata
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars
import pytest

from local_dp.bus.blocking import BlockingBus
from local_dp.bus.mqtt import MqttBus
from local_dp.errors import InputError, LocalDPError, RefusedError, reading, unknown
from local_dp.experiments.lab.catalogue import load
from local_dp.experiments.lab.claim import Check, Curve, Figure, Finding, Table
from local_dp.experiments.lab.report import build_pages
from local_dp.experiments.lab.runner import run_experiments
from local_dp.experiments.lab.store import MeasurementStore, code_stamp, plain
from local_dp.foreign import LONGEST, Place, shown
from local_dp.text.screen import Screen
from tests.support.figures import figure
from tests.support.inputs.malformed import (
    KINDS,
    RED,
    TITLE,
    TURNED,
    WORDS,
    damaged,
    write_all,
    write_toy,
)
from tests.support.long import short
from tests.support.runs.command import Done, local_dp

ROOT = Path(__file__).parents[2]
OURS = ["local_dp", "clients", "server", "experiments"]
TOY = "tests.support.inputs.toy_experiment"
PLACES: tuple[Place, ...] = ("line", "block", "page", "cell")


def raw(text: str, kept: str = "\n") -> list[str]:
    """The characters of a text that a terminal or a reader would obey, not see."""
    return [
        letter
        for letter in text
        if letter not in kept
        and unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        and letter not in "\u200c\u200d"
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the files are and the commands typed, with a broker that nobody waits for."""
    monkeypatch.chdir(tmp_path)
    for bus in (MqttBus, BlockingBus):
        monkeypatch.setattr(
            bus,
            "messages",
            lambda bus, patience, messages=bus.messages: messages(bus, min(patience, 0.05)),
        )
    return tmp_path


@pytest.mark.slow(only=("1",))
@pytest.mark.parametrize("step", short([1, 257], (257).__eq__))
def test_every_character_is_shown_and_none_obeyed(step: int) -> None:
    """Of all 1,114,112 characters none is raw in any place; what is shown once stays as it is."""
    every = "".join(map(chr, [*range(0x2100), *range(0x2100, sys.maxunicode + 1, step)]))
    for place in PLACES:
        text = shown(every, place)
        assert not raw(text, "\n" if place in ("block", "page") else "")
        assert text.encode()
        assert place == "page" or shown(text, place) == text


def test_text_stays_text_in_each_place() -> None:
    """Letters, spaces and emoji stay; beyond an encoding there are escapes; no text is a formula,
    and numbers stay numbers."""
    assert shown("Ω é 数 \xa0 🙂", "line") == "Ω é 数 \xa0 🙂"
    assert (shown("é→", encoding="latin-1"), shown("a\nb"), shown("a\nb", "block")) == (
        "é\\u2192",
        "a\\nb",
        "a\nb",
    )
    formulas = [
        "=1+1",
        "+1+1",
        "-1+1",
        "@SUM(A1)",
        "=cmd|' /C calc'!A0",
        "-",
        "＝1",
        "-2+3+cmd|' /C calc'!A0",
    ]
    assert [shown(text, "cell") for text in formulas] == [f"'{text}" for text in formulas]
    assert [shown(text, "cell")[0] for text in ("\t=1", "\r=1", "\n=1")] == ["\\"] * 3
    for text in ("-1", "+0.5", "-1e-05", "-1,000", "-.5", "-12 %", "a=b", "", "− 1"):
        assert shown(text, "cell") == text


def test_an_error_is_one_short_line() -> None:
    """Whatever is put into it; of 50,000 names it lists ten."""
    for kind in (LocalDPError, InputError, lambda text: RefusedError("store", text)):
        text = str(kind(f"a{TITLE}b{RED}\nc{TURNED}\r" + "x" * 10**5))
        assert not raw(text, "")
        assert len(text) <= LONGEST
    names = [f"a column of name {place}" for place in range(50_000)]
    text = unknown("no column", names[7][:-1] + "77777", names)
    assert len(text) < 700
    assert "and 49,990 more" in text
    assert (
        unknown("no column", "agee", ["age", "sex"])
        == "no column 'agee'; did you mean 'age'? there are age, sex"
    )
    assert len(unknown("no column", "x" * 10**6, ["y" * 10**6] * 30)) < 4000


@pytest.mark.parametrize(
    "error",
    [
        ValueError("two\nlines"),
        KeyError("x"),
        RecursionError(),
        OSError(5, "input"),
        AssertionError(),
    ],
)
def test_no_reader_has_a_traceback(error: Exception) -> None:
    with (
        pytest.raises(InputError, match=r"^cannot read 'f': [^\n]+; give another$"),
        reading("f", "give another"),
    ):
        raise error


def test_a_parser_that_panics_is_a_line() -> None:
    class PanicException(BaseException):
        """As polars raises it."""

    with pytest.raises(InputError), reading("f", "give another"):
        raise PanicException("index out of bounds")
    with pytest.raises(KeyboardInterrupt), reading("f", "give another"):
        raise KeyboardInterrupt


def test_foreign_text_has_no_other_way_out() -> None:
    """The search for relatives: who prints, escapes markup, writes CSV, parses SVG or reads a
    format of a file."""
    only = {
        "print": {"local_dp/text/screen.py", "server/relay.py", "server/receiver.py",
                  "experiments/lab/runner.py", "experiments/bench/bare_clients.py"},
            "console.print": {"local_dp/text/widgets.py"},
        "html.escape": {"local_dp/foreign.py"}, "csv.writer": {"local_dp/text/layout.py"},
        "ElementTree.fromstring": {"experiments/lab/stored.py"},
        "sys.stdout.write": set(), "sys.stderr.write": set(), "shutil.copyfile": set(),
        "webbrowser.open": {"local_dp/cli/run/run.py"},
    }  # fmt: skip
    found: dict[str, set[str]] = {name: set() for name in only}
    bare = []
    for path in sorted(each for room in OURS for each in (ROOT / room).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name.split("/")[0] == "local_dp" and name.split("/")[1] in OURS[1:]:
            continue  # a link to a room that is searched by its own name
        text = path.read_text()
        if not _SEARCHED.search(text):
            continue
        tree = ast.parse(text)
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            called = ast.unparse(call.func)
            if called in found:
                found[called].add(name)
        found["html.escape"] |= (
            {name} if re.search(r"from html import .*\bescape\b", text) else set()
        )
        bare += [f"{name}:{line}" for line in _unguarded(tree)]
    assert found == only
    assert bare == []


_SEARCHED = re.compile(
    r"\bprint\(|escape|writer\(|fromstring|\.write\(|copyfile|webbrowser|read_csv|read_excel|read_parquet|loadtxt|json\.loads"
)
READERS = {
    "polars.read_csv",
    "polars.read_excel",
    "polars.read_parquet",
    "np.loadtxt",
    "ElementTree.fromstring",
}


def _unguarded(tree: ast.Module) -> list[int]:
    """The lines that parse a file outside every `with reading(...)`."""
    guarded = {
        id(inside)
        for node in ast.walk(tree)
        if isinstance(node, ast.With)
        and any(ast.unparse(item.context_expr).startswith("reading(") for item in node.items)
        for inside in ast.walk(node)
    }
    parsing = (
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and id(node) not in guarded
    )
    return [
        node.lineno
        for node in parsing
        if ast.unparse(node.func) in READERS
        or (ast.unparse(node.func) == "json.loads" and "read_text" in ast.unparse(node))
    ]


def test_labels_and_names_are_text_on_a_screen(folder: Path) -> None:
    """A table of labels and column names with control sequences: what is printed, drawn and written
    has none, in results and in errors."""
    labels = [each for each in WORDS if len(each) < 100 and each.strip("\x00\r\n")]
    frame = polars.DataFrame({f"n{TITLE}": labels * 30, "n": range(30 * len(labels))})
    frame.write_parquet(folder / f"t{TITLE[:3]}.parquet")
    table = ["--records", f"t{TITLE[:3]}.parquet"]
    lines = [
        [
            "curate",
            "histogram",
            *table,
            "--column",
            f"n{TITLE}",
            "--epsilon",
            "5",
            "--seed",
            "1",
            "--out",
            "out.csv",
            "--plot",
            "out.svg",
        ],
        [
            "run",
            "frequency",
            *table,
            "--column",
            f"n{TITLE}",
            "--labels-from-data",
            "--tier",
            "population",
            "--seed",
            "1",
            "--plot",
            "run.svg",
        ],
        [
            "run",
            "frequency",
            *table,
            "--column",
            TURNED,
            "--labels-from-data",
            "--tier",
            "population",
        ],
        ["curate", "histogram", *table, "--column", RED, "--epsilon", "1"],
        ["run", "survey", *table, "--question", f"{TITLE} == 1", "--tier", "population"],
        ["run", "frequency", "--records", f"{TITLE[:3]}.csv"],
    ]
    for words in lines:
        done = local_dp(*words)
        assert not raw(done.stdout + done.stderr), (words, done)
        assert done.returncode == (0 if words in lines[:2] else 2), done.stderr
        assert "owned" in done.stdout or words not in lines[:2]
    written = (folder / "out.csv").read_bytes().decode()
    assert not raw(written, "\r\n")
    cells = [row[0] for row in csv.reader(written.splitlines())]
    assert "'=1+1" in cells
    assert not any(each.startswith(("=", "+", "@", "\t", "\r")) for each in cells)
    for drawn in ("out.svg", "run.svg"):
        assert not raw((folder / drawn).read_text())
        assert "<script" not in (folder / drawn).read_text()


def test_the_screen_is_the_last_net(capsys: pytest.CaptureFixture[str]) -> None:
    """Results, notes, errors and the line of work, whoever wrote them: no control character; lines
    stay lines, but of an error one."""
    screen, text = Screen(), f"a{TITLE}b\r{RED}\n{TURNED}"
    screen.tell(text)
    screen.note(text)
    screen.complain(text)
    screen.working(text)
    screen._draw()
    assert screen._line is not None
    done = capsys.readouterr()
    assert not raw(done.out + done.err + screen._line.tasks[0].description)
    assert (done.out.count("\n"), done.err.count("\n")) == (2, 3)


class _Tags(HTMLParser):
    """The elements of a page, and attributes that would run or fetch something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.active: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attributes:
            fetches = name in (
                "src",
                "href",
                "xlink:href",
                "srcset",
                "data",
                "action",
            ) and not re.match(r"#|data:,$|[\w./-]+(#[\w-]+)?$", value or "")
            if (
                name.startswith("on")
                or fetches
                or "javascript:" in (value or "")
                or "url(" in (value or "").replace("url(#", "")
            ):
                self.active.append(f"{tag} {name}={value}")


def check_page(page: str, good: set[str]) -> None:
    """No element that a good page lacks, nothing that runs or fetches, no control character."""
    found = _Tags(page)
    assert found.tags <= good, found.tags - good
    assert found.active == []
    assert not raw(page)
    assert page.count("<script") == page.count("<style") == 1
    assert page.count("http-equiv") == 1


SVG = {
    "script": "<script>alert(1)</script>", "event": '<path d="M 0 0" onload="alert(1)"/>',
    "link": '<a xlink:href="https://example.org"><path d="M 0 0"/></a>',
    "javascript": '<use xlink:href="javascript:alert(1)"/>',
    "fetched": '<use xlink:href="https://example.org/x.svg#a"/>',
    "image": '<image xlink:href="https://example.org/x.png"/>',
    "html": ('<foreignObject><meta http-equiv="refresh" '
    'content="0;url=https://example.org"/></foreignObject>'),
    "animation": '<set attributeName="href" to="javascript:alert(1)"/>',
    "style": '<path style="fill: url(https://example.org/x)" d="M 0 0"/>',
    "position": '<g style="position: fixed"/>', "class": '<g class="badge"/>',
    "clip": '<g clip-path="url(https://example.org/x#a)"/>',
    "text": "<text>shown</text>", "entity": "<path d='&a;'/>",
    "namespace": '<x:script xmlns:x="http://www.w3.org/1999/xhtml">alert(1)</x:script>',
    "bomb": ('<g id="b0"><path d="M 0 0"/></g><g id="b1"><use xlink:href="#b0"/><use '
    'xlink:href="#b0"/></g>'), "root": "<svg><path d='M 0 0'/></svg>",
    "instruction": '<?xml-stylesheet href="https://example.org/x.css"?>',
    "data": "<![CDATA[</svg><script>alert(1)</script>]]>", "note": "<!-- --><script> -->",
    "sheet": "<style>* { display: none }</style>", "deep": "<g>" * 5000 + "</g>" * 5000,
}  # fmt: skip
# these are left out of the new drawing, the others are refused
HARMLESS = (
    "instruction",
    "data",
    "sheet",
)


def test_a_drawing_of_a_results_folder_is_made_again(folder: Path) -> None:
    """Scripts, events, links, style sheets, fetched files, animations and bombs in a stored figure:
    refused, or not in the page."""
    good = write_all(folder)["out/toy/error.svg"].decode()
    tags = set().union(*(_Tags(page).tags for page in build_pages(folder / "out").values()))
    for name, part in SVG.items():
        (folder / "out/toy/error.svg").write_text(good.replace("</svg>", f"{part}</svg>"))
        done = local_dp("report", "out")
        assert done.returncode == (0 if name in HARMLESS else 2), (name, done)
        assert not raw(done.stderr)
        if name in HARMLESS:
            for page in (folder / "out").glob("*.html"):
                check_page(page.read_text(), tags)


def test_no_name_leads_out_of_a_results_folder(folder: Path) -> None:
    """A path upwards, an absolute one, a link to a file or a folder: not read; what is written
    replaces a link and does not follow it."""
    write_all(folder)
    secret, results = folder / "outside.svg", folder / "out/toy/results.json"
    good, drawn = results.read_text(), (folder / "out/toy/error.svg").read_text()
    secret.write_text(drawn)
    for path in (
        "../../outside.svg",
        str(secret),
        "./error.svg",
        "..\\\\outside.svg",
        "error.svg/../../outside.svg",
        "error.svg\\n",
    ):
        results.write_text(good.replace('"error.svg"', f'"{path}"'))
        assert local_dp("report", "out").returncode == 2, path
    results.write_text(good)
    for name, target in (
        ("error.svg", secret),
        ("results.json", results.rename(folder / "moved.json")),
    ):
        kept = (folder / "out/toy" / name).read_bytes() if name == "error.svg" else b""
        (folder / "out/toy" / name).unlink(missing_ok=True)
        (folder / "out/toy" / name).symlink_to(target)
        if name == "error.svg":
            (folder / "moved.json").rename(results)
        assert "leads out of its folder" in local_dp("report", "out").stderr
        (folder / "out/toy" / name).unlink()
        (folder / "out/toy" / name).write_bytes(kept or good.encode())
        if name == "error.svg":
            results.rename(folder / "moved.json")
    assert local_dp("report", "out").returncode == 0
    (folder / "out/report.html").unlink()
    (folder / "out/report.html.partial").symlink_to(secret)
    assert local_dp("report", "out").returncode == 0
    assert secret.read_text() == drawn
    (folder / "elsewhere").mkdir()
    (folder / "out/toy").rename(folder / "elsewhere/toy")
    (folder / "out/toy").symlink_to(folder / "elsewhere/toy")
    assert "leads out of its folder" in local_dp("report", "out").stderr


def test_results_of_an_experiment_are_text(folder: Path) -> None:
    """Control characters, markup and formulas in every text of a finding: none in its pages, its
    figures' markup and its CSV files."""
    write_all(folder)
    tags = set().union(*(_Tags(page).tags for page in build_pages(folder / "out").values()))
    bad = "".join((TITLE, RED, TURNED, "<script>", '"onload="x', "&amp;"))
    drawn = Figure(
        "error",
        bad,
        bad,
        bad,
        [Curve(bad, [1.0, 2.0], [1.0, 2.0]), Curve("b", [1.0], [1.0], "bound")],
    )
    table = Table(bad, ("n", bad), [("=1+1", bad), ("-5", "@x")])
    write_toy(
        folder / "out/toy",
        Finding(
            [Check(bad, True, bad, 1e-5, bad)],
            [table],
            [drawn, replace(drawn, name="other")],
            [bad],
            headline=bad,
        ),
    )
    assert local_dp("report", "out").returncode == 0
    for page in (folder / "out").glob("*.html"):
        check_page(page.read_text(), tags)
    (stored,) = (folder / "out/toy").glob("*.csv")
    assert not raw(stored.read_text())
    assert stored.read_text().splitlines()[1].startswith("'=1+1,")
    assert stored.read_text().splitlines()[2].startswith("-5,'@x")


@pytest.mark.parametrize(
    "measurement",
    [
        {"error": TITLE, "half": 0.1},
        {"error": 0.1},
        [],
        {"error": {}, "half": [[]]},
        {"a": 1, TITLE: 2},
    ],
)
def test_stored_measurements_are_of_their_form(measurement: object, folder: Path) -> None:
    """Measurements that somebody else wrote, under the right stamp, and lines that are none: one
    error, and no traceback."""
    store, toy = MeasurementStore(folder / "toy", code_stamp(TOY)), load(TOY)
    for point in plain(toy.points("quick")):
        store.add(point, 1, measurement)  # type: ignore[arg-type]
    with store.path.open("ab") as file:
        file.write(
            b'\xff{"a": '
            + b"[" * 10**5
            + b'\n{"code": "'
            + store.stamp.encode()
            + b'", "seed": [], "point": 1, "measurement": 1}\n'
        )
    with pytest.raises(
        InputError, match=r"measurements\.jsonl.*remove it to measure again"
    ) as raised:
        run_experiments([TOY], "quick", 1, folder, workers=1)
    assert not raw(str(raised.value), "")
    assert any(
        word in str(raised.value)
        for word in ("the fields are ", "error: Input should", "half: Input should")
    ), "which says what is wrong"


def check_fuzzed(done: Done, words: tuple[str, ...], data: bytes) -> None:
    told = f"{words} {done} {data[:400]!r}"
    assert not any(word in done.stderr for word in ("Traceback", "panicked")), told
    assert done.returncode in (0, 2, 4, 5), told
    assert done.returncode != 4 or words[0] in ("certify", "curate", "run"), told
    assert done.returncode != 5 or words[0] == "host", told
    assert len([line for line in done.stderr.splitlines() if line.startswith("local-dp: ")]) == (
        done.returncode != 0
    ), told
    assert not raw(done.stdout + done.stderr), told


def fuzz(folder: Path, seeds: range) -> dict[int, int]:
    """So many damaged files, each read by a command; how many ended with each code."""
    good = write_all(folder)
    tags = set().union(*(_Tags(page).tags for page in build_pages(folder / "out").values()))
    codes: dict[int, int] = {}
    for seed in seeds:
        generator = np.random.default_rng(seed)
        kind = KINDS[seed % len(KINDS)]
        words = kind.commands[int(generator.integers(len(kind.commands)))]
        data = damaged(good[kind.name], kind.form, generator)
        (folder / kind.name).write_bytes(data)
        done = local_dp(*words)
        check_fuzzed(done, words, data)
        codes[done.returncode] = codes.get(done.returncode, 0) + 1
        if words[0] == "report" and done.returncode == 0:
            for page in (folder / "out").glob("*.html"):
                check_page(page.read_text(), tags)
        for path in (folder / kind.name, folder / "fresh", *(folder.glob(f"{kind.name}-*"))):
            path.unlink(missing_ok=True)
        (folder / kind.name).write_bytes(good[kind.name])
    return codes


def test_no_malformed_file_is_a_traceback(folder: Path) -> None:
    """Some damaged files of each kind: each is read, or is refused in one line with code 2, and
    prints no control character."""
    codes = fuzz(folder, range(200))
    assert codes[2] > 100


@pytest.mark.slow
def test_no_malformed_file_is_a_traceback_for_long(folder: Path) -> None:
    codes = fuzz(folder, range(200, 10_200))
    kinds = ", ".join(kind.name for kind in KINDS)
    figure(
        "class 18",
        (
            f"10,000 damaged files ({kinds}): by exit code {dict(sorted(codes.items()))}, 0 "
            "tracebacks, 0 raw control characters"
        ),
    )
