"""Whatever a table, a results folder or another file holds, a terminal, a page and a spreadsheet
get text alone; a malformed file is a line."""

import csv
import re
import shlex
import sys
import unicodedata
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars
import pytest

from local_dp.bus.blocking import BlockingBus
from local_dp.bus.mqtt import MqttBus
from local_dp.errors import InputError, LocalDPError, RefusedError, reading, unknown
from local_dp.experiments.lab.report import build_pages
from local_dp.experiments.lab.shapes import Check, Curve, Figure, Finding, Table
from local_dp.foreign import LONGEST, Place, shown
from local_dp.text.screen import Screen
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
from tests.support.runs.command import local_dp
from tests.support.wrong import wrong

PLACES: tuple[Place, ...] = ("line", "block", "page", "cell")


def raw(text: str, allowed_signs: str = "\n") -> list[str]:
    """The characters of a text that a terminal or a reader would obey, not see."""
    return [
        letter
        for letter in text
        if letter not in allowed_signs
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


@wrong(
    "local_dp.foreign:shown",
    "text.isprintable()",
    "text",
    "a label of a table commands the terminal",
)
def test_every_character_is_shown_and_none_obeyed() -> None:
    """Of the characters, of which the later ones are samples, none is raw in any place; what is
    shown once stays as it is."""
    every = "".join(map(chr, [*range(0x2100), *range(0x2100, sys.maxunicode + 1, 257)]))
    for place in PLACES:
        text = shown(every, place)
        assert not raw(text, "\n" if place in ("block", "page") else "")
        assert text.encode()
        assert place == "page" or shown(text, place) == text


@wrong(
    "local_dp.foreign:shown",
    "_FORMULA",
    "'='",
    "a spreadsheet computes what begins with another sign",
)
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


@wrong(
    "local_dp.errors:LocalDPError.__init__",
    "brief(shown(str(message)))",
    "str(message)",
    "an error that Python prints has a file's control characters, and any length",
)
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


@wrong(
    "local_dp.errors:reading",
    "BaseException",
    "(OSError, ValueError)",
    "a file is damaged in a way that nobody had thought of, and ends in a traceback",
    at="error1",
)
@pytest.mark.parametrize(
    "error",
    [
        ValueError("two\nlines"),
        KeyError("x"),
        RecursionError(),
        OSError(5, "input"),
        type("PanicException", (BaseException,), {})(),
    ],
)
def test_no_reader_has_a_traceback(error: BaseException) -> None:
    """Whatever a parser raises, a panic of polars too, is one line; only an interrupt passes."""
    with (
        pytest.raises(InputError, match=r"^cannot read 'f': [^\n]+; give another$"),
        reading("f", "give another"),
    ):
        raise error
    with pytest.raises(KeyboardInterrupt), reading("f", "give another"):
        raise KeyboardInterrupt


def test_labels_and_names_are_text_on_a_screen(folder: Path) -> None:
    """A table of labels and column names with control sequences: what is printed, drawn and written
    has none, in results and in errors."""
    labels = [each for each in WORDS if len(each) < 100 and each.strip("\x00\r\n")]
    frame = polars.DataFrame({f"n{TITLE}": labels * 30, "n": range(30 * len(labels))})
    frame.write_parquet(folder / f"t{TITLE[:3]}.parquet")
    table = ["--records", f"t{TITLE[:3]}.parquet"]
    histogram = shlex.split("--epsilon 5 --seed 1 --out out.csv --plot out.svg")
    frequency = shlex.split("--labels-from-data --tier population --seed 1")
    lines = [
        (0, ["curate", "histogram", *table, "--column", f"n{TITLE}", *histogram]),
        (0, ["run", "frequency", *table, "--column", f"n{TITLE}", *frequency]),
        (2, ["curate", "histogram", *table, "--column", RED, "--epsilon", "1"]),
        (2, ["run", "survey", *table, "--question", f"{TITLE} == 1", "--tier", "population"]),
    ]
    for code, words in lines:
        done = local_dp(*words)
        assert not raw(done.stdout + done.stderr), (words, done)
        assert (done.returncode, "owned" in done.stdout) == (code, code == 0), done.stderr
    csv_text = (folder / "out.csv").read_bytes().decode()
    assert not raw(csv_text, "\r\n")
    cells = [row[0] for row in csv.reader(csv_text.splitlines())]
    assert "'=1+1" in cells
    assert not any(each.startswith(("=", "+", "@", "\t", "\r")) for each in cells)
    picture = (folder / "out.svg").read_text()
    assert (raw(picture), "<script" in picture) == ([], False)


@wrong(
    "local_dp.text.screen:Screen.tell",
    "shown(text, 'block', _letters(sys.stdout))",
    "text",
    "a result that no layout has passed commands the terminal",
)
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
    tags = _Tags(page)
    assert tags.tags <= good, tags.tags - good
    assert tags.active == []
    assert not raw(page)
    assert page.count("<script") == page.count("<style") == 1
    assert page.count("http-equiv") == 1


SVG = {
    "script": "<script>alert(1)</script>", "event": '<path d="M 0 0" onload="alert(1)"/>',
    "link": ('<a '
    'xlink:href="https://example.org"><path '
    'd="M 0 0"/></a>'),
    "fetched": '<use xlink:href="https://example.org/x.svg#a"/>',
    "html": ('<foreignObject><meta http-equiv="refresh" '
    'content="0"/></foreignObject>'),
    "style": ('<path style="fill: '
    'url(https://example.org/x)" d="M 0 '
    '0"/>'), "class": '<g class="badge"/>', "entity": "<path d='&a;'/>",
    "bomb": ('<g id="b0"><path d="M 0 0"/></g><g id="b1"><use xlink:href="#b0"/><use '
    'xlink:href="#b0"/></g>'),
    "data": "<![CDATA[</svg><script>alert(1)</script>]]>",
    "sheet": "<style>* { display: none }</style>", "deep": "<g>" * 5000 + "</g>" * 5000,
}  # fmt: skip
HARMLESS = ("data", "sheet")  # these are left out of the new drawing, the others are refused


@wrong(
    "local_dp.experiments.lab.stored:drawing",
    "root.iter(f'{_SVG}path')",
    "root.iter()",
    "a few uses of uses draw billions of shapes",
)
@wrong(
    "local_dp.experiments.lab.stored:_attribute",
    "shape is not None and shape.fullmatch(value)",
    "shape is not None or name.startswith('on')",
    "an event or a link in a stored figure runs in the report",
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


@wrong(
    "local_dp.experiments.lab.stored:_inside",
    "path.resolve",
    "path.absolute",
    "a link in a results folder shows another file of its reader",
)
def test_no_name_leads_out_of_a_results_folder(folder: Path) -> None:
    """A path upwards, an absolute one, a link to a file or a folder: not read; what is written
    replaces a link and does not follow it."""
    write_all(folder)
    secret, toy = folder / "outside.svg", folder / "out/toy"
    good, picture = (toy / "results.json").read_text(), (toy / "error.svg").read_text()
    secret.write_text(picture)
    for path in ("../../outside.svg", str(secret), "./error.svg"):
        (toy / "results.json").write_text(good.replace('"error.svg"', f'"{path}"'))
        assert local_dp("report", "out").returncode == 2, path
    (toy / "results.json").write_text(good)
    (toy / "error.svg").unlink()
    (toy / "error.svg").symlink_to(secret)
    assert "leads out of its folder" in local_dp("report", "out").stderr
    (toy / "error.svg").unlink()
    (toy / "error.svg").write_text(picture)
    (folder / "out/report.html.partial").symlink_to(secret)
    assert local_dp("report", "out").returncode == 0
    assert secret.read_text() == picture
    toy.rename(folder / "elsewhere")
    toy.symlink_to(folder / "elsewhere")
    assert "leads out of its folder" in local_dp("report", "out").stderr


@wrong(
    "local_dp.foreign:shown",
    "escape(text)",
    "text",
    "text of a results folder is markup of the report",
)
def test_results_of_an_experiment_are_text(folder: Path) -> None:
    """Control characters, markup and formulas in every text of a finding: none in its pages, its
    figures' markup and its CSV files."""
    write_all(folder)
    tags = set().union(*(_Tags(page).tags for page in build_pages(folder / "out").values()))
    bad = "".join((TITLE, RED, TURNED, "<script>", '"onload="x', "&amp;"))
    figure = Figure(
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
            [figure, replace(figure, name="other")],
            [bad],
            headline=bad,
        ),
    )
    assert local_dp("report", "out").returncode == 0
    for page in (folder / "out").glob("*.html"):
        check_page(page.read_text(), tags)
    (csv_file,) = (folder / "out/toy").glob("*.csv")
    assert not raw(csv_file.read_text())
    assert csv_file.read_text().splitlines()[1].startswith("'=1+1,")
    assert csv_file.read_text().splitlines()[2].startswith("-5,'@x")


def test_no_malformed_file_is_a_traceback(folder: Path) -> None:
    """Damaged files of each kind: each is read, or is refused in one line with code 2 or 4, and
    prints no control character."""
    good, codes = write_all(folder), Counter[int]()
    for seed in range(120):
        generator, (name, words) = np.random.default_rng(seed), KINDS[seed % len(KINDS)]
        (folder / name).write_bytes(damaged(good[name], name, generator))
        done = local_dp(*words.split())
        assert done.returncode in (0, 2, 4), (seed, done)
        assert not any(word in done.stderr for word in ("Traceback", "panicked")), (seed, done)
        assert len(
            [line for line in done.stderr.splitlines() if line.startswith("local-dp: ")]
        ) == (done.returncode != 0), (seed, done)
        assert not raw(done.stdout + done.stderr), (seed, done)
        codes[done.returncode] += 1
        for path in (folder / name, *(folder.glob(f"{name}-*"))):
            path.unlink(missing_ok=True)
        (folder / name).write_bytes(good[name])
    assert codes[2] > 50
