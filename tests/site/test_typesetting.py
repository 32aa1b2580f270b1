"""Formulas and notation of the site: MathML from what the documents write between dollar signs, signs for what prose spells out, code left alone."""

import re
import xml.etree.ElementTree as etree
from pathlib import Path

import pytest
from markdown import markdown

from local_dp.experiments.site.build import home, sources

DOCUMENTS = [home() / path for path in sources(home()) if path.suffix == ".md"]


def _shown(text: str) -> str:
    """Markdown as the site shows it."""
    return str(markdown(text, extensions=["tables", "fenced_code", "local_dp.experiments.site.typesetting"]))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at eps 1, 2^d", "at ε\xa0=\xa01, 2<sup>d</sup>"),
        ("**C^2 b^2** / n, r_j and z_{beta/2}^2", "<strong>C<sup>2</sup> b<sup>2</sup></strong> / n, r<sub>j</sub> and z<sub>β/2</sub><sup>2</sup>"),
        ("z_beta, 2^(-d/2), e^eps, 1.96 +- 2^-5", "z<sub>β</sub>, 2<sup>−d/2</sup>, e<sup>ε</sup>, 1.96 ± 2<sup>−5</sup>"),
        ("`eps^2 <= r_j` and max_tau", "<code>eps^2 &lt;= r_j</code> and max_tau"),
        ("costs $5 or $6", "costs $5 or $6"),
        (r"from \$x\$", "from $x$"),
        ("`$x^2$`", "<code>$x^2$</code>"),
    ],
)
def test_prose_has_the_signs_of_mathematics(text: str, shown: str) -> None:
    """Greek letters, exponents and indices, across marks of emphasis; code, names and prices stay."""
    assert _shown(text) == f"<p>{shown}</p>"


def test_a_formula_is_mathml() -> None:
    """A formula in a line, in a table and on a line of its own; its letters are not taken for prose or for marks of Markdown."""
    text = _shown("Let $a_i * b_i * \\frac{\\tau}{2}$ be.\n\n$$x^2$$\n\n| a |\n|---|\n| $\\sqrt{n}$ |\n")
    first, alone, cell = (etree.fromstring(element) for element in re.findall(r"<math.*?</math>", text))
    inside = "{http://www.w3.org/1998/Math/MathML}"
    assert [element.get("display") for element in (first, alone, cell)] == ["inline", "block", "inline"]
    assert len(first.findall(f".//{inside}msub")) == 2
    assert len(first.findall(f".//{inside}mfrac")) == len(cell.findall(f".//{inside}msqrt")) == 1
    assert "<em>" not in text
    assert "<sup>" not in text


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_every_formula_of_a_document_is_understood(path: Path) -> None:
    """No document shows a dollar sign outside its code, and no formula a word of TeX that was not understood."""
    text = re.sub(r"<(pre|code)\b.*?</\1>", "", _shown(path.read_text()), flags=re.DOTALL)
    assert "$" not in text
    for formula in re.findall(r"<math.*?</math>", text):
        assert "\\" not in "".join(etree.fromstring(formula).itertext()), formula


def test_the_limits_have_their_formulas() -> None:
    """The pages of proofs write their formulas as formulas."""
    assert sum(len(re.findall("<math", _shown(page.read_text()))) for page in (home() / "docs" / "theory").glob("*.md")) > 150
