"""Notation: signs for what is spelt out, and names of code left alone."""

import pytest

from local_dp.experiments.text.notation import marked, typeset


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("epsilon 0.5: -0.5006 +- 0.0234; epsilon = 1", "ε\xa0=\xa00.5: −0.5006 ± 0.0234; ε\xa0=\xa01"),
        ("at any epsilon, epsilon-locally private", "at any ε, ε-locally private"),
        ("q / (4 tau^2) = 2^(-d/2), e^epsilon, tanh(eps/2)", "q / (4 τ^2) = 2^(−d/2), e^ε, tanh(ε/2)"),
        ("(1 + tau')/(1 - tau') times 2^-1", "(1 + τ′)/(1 − τ′) times 2^−1"),
        ("n >= 8, p <= 0.5, 90% and 95 %", "n ≥ 8, p ≤ 0.5, 90\xa0% and 95\xa0%"),
        ("from -1 to [-1, 1], 2 * d, 1.5e-05, 1e+20, 1/sqrt(n)", "from −1 to [−1, 1], 2 · d, 1.5 · 10^−5, 10^20, 1/√n"),
        ("C / (2 sqrt n), z sqrt(v / n), log2(k) + pi^2", "C / (2 √n), z √(v / n), log₂(k) + π^2"),
        ("local-dp run --epsilon 1 --quick", "local-dp run --epsilon 1 --quick"),
        ("epsilon_spent, max_tau, `epsilon`, non-interactive 1-2, theorem-5.1", "epsilon_spent, max_tau, `epsilon`, non-interactive 1-2, theorem-5.1"),
        ("", ""),
    ],
)
def test_notation(text: str, shown: str) -> None:
    """Greek letters, signs and powers of ten are typeset; options, names in code and hyphens are not; typeset twice is typeset once."""
    assert (typeset(text), typeset(shown)) == (shown, shown)


def test_code_stays_as_it_is() -> None:
    """What stands in backticks is a name, of which nothing is typeset, and is marked as such; a backtick alone is a character."""
    assert list(marked("give `epsilon ^2`, epsilon 1")) == [("", "give "), ("code", "epsilon ^2"), ("", ", ε\xa0=\xa01")]
    assert list(marked("a ` b")) == [("", "a ` b")]
