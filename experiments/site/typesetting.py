"""Formulas of the site: `$...$` and `$$...$$`, which code hosts know too, become MathML; prose gets the signs of mathematics, as in the report.

MathML is made when the site is built (latex2mathml) and drawn by the browser itself: no script and no font is fetched.
"""

import re
import xml.etree.ElementTree as etree

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.treeprocessors import Treeprocessor

from local_dp.experiments.text.layout import marked

_FORMULA = r"(?<![\\$\w])(\$\$?)(?![\s$])([^$]+?)(?<![\s\\])\1(?![\w$])"
_AFTER_CODE = 185  # above the escapes (180), below backticks (190)
_LONG = 20  # signs: more may be wider than a telephone
_LAST = -1  # below what makes anchors of headings, whose names stay
_VERBATIM = {"code", "pre", "kbd", "script", "style", "math", "svg"}


class Formula(InlineProcessor):
    """`$...$` in a line, `$$...$$` as a line of its own."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:
        alone = m[1] == "$$"
        drawn = convert(" ".join(m[2].split()), display="block" if alone else "inline")
        kind = "alone" if alone else "long" if len("".join(etree.fromstring(drawn).itertext())) > _LONG else "short"
        return self.md.htmlStash.store(f'<span class="formula {kind}">{drawn}</span>'), m.start(0), m.end(0)


class Prose(Treeprocessor):
    """Text outside code: ε for epsilon, ± for +-, raised exponents, lowered indices."""

    def run(self, root: etree.Element) -> None:
        if root.tag in _VERBATIM:
            return
        for child in list(root):
            self.run(child)
        for place in range(len(root), -1, -1):  # from behind: what is put in moves no earlier place
            self._set(root, place)

    @staticmethod
    def _set(root: etree.Element, place: int) -> None:
        """Typesets the text before the child at this place."""
        before = root[place - 1] if place else None
        (_, first), *rest = marked((root.text if before is None else before.tail) or "")
        if before is None:
            root.text = first
        else:
            before.tail = first
        for offset, ((kind, text), (_, after)) in enumerate(zip(rest[::2], rest[1::2], strict=True)):
            mark = etree.Element(kind)
            mark.text, mark.tail = text, after
            root.insert(place + offset, mark)


class Typesetting(Extension):
    """Both, as MkDocs asks for it."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.ESCAPED_CHARS.append("$")
        md.inlinePatterns.register(Formula(_FORMULA, md), "formula", _AFTER_CODE)
        md.treeprocessors.register(Prose(md), "prose", _LAST)


def makeExtension(**settings: object) -> Typesetting:
    """What Markdown calls."""
    return Typesetting(**settings)
