"""Plain English, as far as a program can check it: long sentences, and words that a reader has to
translate.

`python -m tests.support.language README.md docs local_dp` prints each place, its file and its line.
"""

import ast
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

MOST_WORDS = 25
BANNED = re.compile(
    r"\b(whoever|whomever|whichever|whosoever|of whom|to whom|from whom|those of which|that of "
    r"which|all of which|none that is not|none of which|"
    r"but for|save that|save for|in its stead|in their "
    r"stead|told|tells|whereof|thereof|aloud|laid together|goes on with|"
    r"the own|where it stands|that it alone|has spoken|have spoken|"
    r"what is not|who says|says nothing|is heard|are heard|nobody hears|no one hears|holds so "
    r"long)\b",
    re.IGNORECASE,
)
_PARTICIPLE = re.compile(
    r"_?((?!seed|need|feed|speed|embed)[a-z]{2,}ed|found|told|kept|held|said|drawn|given|taken|made|"
    r"known|seen|written|sent|done|gone|begun|chosen|shown|meant|lost|heard|built|brought|thought|"
    r"understood|got|won|paid|met|stood|grown|thrown|fallen|hidden|spoken|broken|driven|laid|sold|"
    r"sought|torn|caught|dealt|fed|fought|stuck|shaken|shot|learnt|withdrawn|rebuilt|unknown)"
)
_TERMS = re.compile(  # of the field, and what says that a thing is so
    r"_?(allowed|bounded|centred|clipped|closed|done|expected|fixed|hashed|installed|labelled|"
    r"masked|mixed|observed|ordered|required|rounded|seeded|shared|shuffled|signed|spent|squared|"
    r"trusted|unbounded|unseeded|unsigned|unused|weighted)"
)
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_CODE, _LINK, _URL = (
    re.compile(r"`[^`]*`"),
    re.compile(r"!?\[([^\]]*)\]\([^)]*\)"),
    re.compile(r"https?://\S+"),
)
_WORD = re.compile(r"(?<![\w^_/*=|])[A-Za-z][a-z'-]+(?![\w^_/*=(|])|\ba\b(?= [a-z])|\bX\b")
_ABBREVIATION = re.compile(r"\b(e\.g|i\.e|cf|vs|et al|Def|Thm|Prop|Lem|Cor|Sec|Fig|No|pp?|Dr|St)\.")
_END = re.compile(r"(?<=[.!?:;])[\s)]+|\n\s*\n|\n(?=\s*(?:[-*#|]|\d+\. ))|\s\|\s")


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Each sentence of prose, and the line on which it begins, from 1. Code, formulas and link
    targets count as one word."""
    text = _FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
    text = re.sub(r"\$\$.*?\$\$|\$[^$\n]*\$", "X", text, flags=re.DOTALL)
    text = _ABBREVIATION.sub(r"\1", _URL.sub("X", _LINK.sub(r"\1", _CODE.sub("X", text))))
    start = 0
    for match in (*_END.finditer(text), None):
        end = len(text) if match is None else match.start()
        sentence = text[start:end]
        if sentence.strip():
            lead = len(sentence) - len(sentence.lstrip())
            yield text.count("\n", 0, start + lead) + 1, " ".join(sentence.split())
        start = len(text) if match is None else match.end()


def words(sentence: str) -> int:
    """How many words it has; what touches a sign of a formula is none."""
    return len(_WORD.findall(sentence))


def complaints(text: str, most: int | None = MOST_WORDS) -> Iterator[tuple[int, str]]:
    """What a reader stumbles over: the line, and why."""
    for line, sentence in sentences(text):
        match = BANNED.search(sentence)
        if match:
            yield line, f"{match[0]!r} in: {sentence}"
        if most is not None and words(sentence) > most:
            yield line, f"{words(sentence)} words: {sentence}"


def docstrings(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Each docstring of a module, and the line on which it begins."""
    for node in nodes:
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) and ast.get_docstring(node):
            yield node.body[0].lineno, ast.get_docstring(node) or ""


def comments(path: Path) -> Iterator[tuple[int, str]]:
    with tokenize.open(path) as file:
        yield from (
            (token.start[0], token.string.lstrip("# "))
            for token in tokenize.generate_tokens(file.readline)
            if token.type == tokenize.COMMENT
        )


def messages(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """The text of each error that is raised; a value that is filled in counts as one word."""
    for node in nodes:
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            for part in node.exc.args:
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield node.lineno, part.value
                elif isinstance(part, ast.JoinedStr):
                    yield (
                        node.lineno,
                        "".join(
                            str(each.value) if isinstance(each, ast.Constant) else "X"
                            for each in part.values
                        ),
                    )


def participles(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Each variable, argument, attribute and private function named by a bare participle: a thing
    is named by a noun."""
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                pass
            case ast.Attribute(attr=name, ctx=ast.Store()):
                pass
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if not name.startswith("_"):
                    continue
            case _:
                continue
        if _PARTICIPLE.fullmatch(name) and not _TERMS.fullmatch(name):
            yield node.lineno, name


def in_file(path: Path) -> Iterator[tuple[int, str]]:
    """Every complaint about a document, or about docstrings, errors and comments of a module."""
    text = path.read_text()
    if path.suffix == ".md":
        yield from complaints(text)
        return
    nodes = [*ast.walk(ast.parse(text))]
    for line, prose in docstrings(nodes):
        yield from ((line + at - 1, why) for at, why in complaints(prose))
    for line, prose in messages(nodes):
        yield from ((line, why) for _, why in complaints(prose))
    if any("#" in line and BANNED.search(line) for line in text.splitlines()):  # tokens take long
        for line, prose in comments(path):
            yield from ((line, why) for _, why in complaints(prose, most=None))


def main() -> None:
    for name in sys.argv[1:]:
        top = Path(name)
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.suffix in (".md", ".py"):
                for line, why in in_file(path):
                    print(f"{path}:{line}: {why}")


if __name__ == "__main__":
    main()
