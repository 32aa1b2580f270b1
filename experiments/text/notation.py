"""Notation as a book prints it: what code and command line spell out, epsilon and +-, in the signs of mathematics."""

import re

_GREEK = {"epsilon": "ε", "eps": "ε", "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "lambda": "λ", "tau": "τ"}
_LETTERS = re.compile(rf"(?<![\w.`-])({'|'.join(_GREEK)})(?!\w)")  # a word, not a part of a name or of an option
_RULES = tuple(
    (re.compile(pattern), sign)
    for pattern, sign in (
        (r"\+-", "±"),
        (r"<=", "≤"),
        (r">=", "≥"),
        (r"(?<=[εαβγδλτ])'", "′"),
        (r"(?<![\w'])([εαβγδλτ]) (?:= )?(?=\d)", "\\1\xa0=\xa0"),  # "epsilon 1" says that it is 1
        (r"(?<=\d) ?%", "\xa0%"),
        (r"(?<=\w) \* (?=\w)", " · "),
        (r"sqrt\((\w+)\)", r"√\1"),
        (r"\b1e([+-])0*(?=\d)", r"10^\1"),
        (r"(?<=\d)e([+-])0*(?=\d)", r" · 10^\1"),
        (r"\^\+", "^"),
        (r"(?<=[\w)⌉]) - (?=[\w(⌈])", " − "),
        (r"(?<=[εαβγδλτ])-(?=\d)|(?<![\w.)\]-])-(?=\d|\w\b(?!-))", "−"),
    )
)
EXPONENT = re.compile(r"\^(?:([-−]?\w+(?:\.\d+)?)|\(([^()\n]+)\))")


def typeset(text: str) -> str:
    """The text with Greek letters, minus signs, ± and ≤ for what is spelt in ASCII; options such as --epsilon and names in code stay as they are.

    Exponents stay as 2^d: `EXPONENT` finds them, and they are raised in the manner of the place where the text is shown.
    """
    text = _LETTERS.sub(lambda found: _GREEK[found[1]], text)
    for pattern, sign in _RULES:
        text = pattern.sub(sign, text)
    return text
