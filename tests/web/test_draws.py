"""Reports of the JavaScript randomizers against their exact channels, and samplers that are wrong
in the usual ways."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from local_dp.noise import public_coins
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.registry import RANDOMIZERS
from tests.support.web import needs_node, node

pytestmark = [needs_node, pytest.mark.long]
RESPONDENTS = 100_000
FAILURE = 1e-9  # of all comparisons of this file together, by Bonferroni
EPSILONS = (0.25, 1.0, 3.0)
COINS = bytes([7] * 16)
KINDS: dict[str, tuple[dict[str, int], list[int]]] = {
    "binary-rr": ({}, [0, 1]),
    "grr": ({"k": 5}, [0, 1, 2, 3, 4]),
    "one-bit-mean": ({"steps": 1 << 16}, [0, 1, 20_000, 1 << 15, 1 << 16]),
    "signed-blocks": ({"k": 6, "size": 2}, list(range(-6, 7))),
    "subset-selection": ({"k": 12}, list(range(12))),
}
CASES: list[dict[str, Any]] = [
    {
        "do": "drawn",
        "source": "right",
        "name": name,
        "params": {"epsilon": epsilon, **params},
        "values": values,
        "respondents": RESPONDENTS,
    }
    for name, (params, values) in KINDS.items()
    for epsilon in EPSILONS
]


def least_chance(case: dict[str, Any], reports: Sequence[int]) -> tuple[float, int]:
    """The least probability of a count as far from its mean, over all values and reports and both
    sides; and the number of these comparisons.

    A count is a sum of independent indicators, whose chances follow from the values and the coins.
    Its tails beyond the mean are at most those of a binomial count of the same mean (Hoeffding
    1956, Theorem 4), which are computed exactly.
    """
    randomizer = RANDOMIZERS.build(case["name"], case["params"])
    assert isinstance(randomizer, FiniteChannel)
    held = np.resize(np.array(case["values"]), len(reports))
    cells = (
        randomizer.cells_of(public_coins(COINS, 0, len(reports)))
        if randomizer.uses_coins
        else np.zeros(len(reports), dtype=np.uint16)
    )
    found, least, comparisons = np.array(reports), 1.0, 0
    for value in case["values"]:
        its = held == value
        for report in range(randomizer.alphabet):
            chances = (
                randomizer.weight(np.array([report]), np.array([value]), cells[its]).astype(
                    np.float64
                )
                / randomizer.total
            )
            count, n, mean = (
                int((found[its] == report).sum()),
                int(its.sum()),
                float(np.broadcast_to(chances, its.sum()).mean()),
            )
            tails = (
                binom.sf(count - 1, n, mean) if count >= n * mean + 1 else 1.0,
                binom.cdf(count, n, mean) if count <= n * mean - 1 else 1.0,
            )
            least, comparisons = min(least, *tails), comparisons + 2
    return least, comparisons


@pytest.fixture(scope="module")
def comparisons() -> int:
    """How many comparisons of one kind of source there are."""
    return sum(least_chance(case, [0] * len(case["values"]))[1] for case in CASES)


@pytest.mark.slow
def test_reports_follow_the_exact_channel(comparisons: int) -> None:
    """100,000 respondents for each randomizer and each of three epsilons."""
    for case, reports in zip(CASES, node("draws.mjs", given=CASES), strict=True):
        assert len(reports) == RESPONDENTS
        least, _ = least_chance(case, reports)
        print(
            f"{case['name']}, epsilon {case['params']['epsilon']}: least chance {least:.2g}; "
            f"{FAILURE / comparisons:.2g} would fail"
        )
        assert least > FAILURE / comparisons, case


@pytest.mark.slow(only=("modulo",))
@pytest.mark.parametrize("source", ["constant", "modulo"])
def test_a_wrong_source_of_words_is_found(source: str, comparisons: int) -> None:
    """A constant word, and a byte modulo 100 as a percentage: each shows in every randomizer, at
    one epsilon at least."""
    twins = [{**case, "source": source} for case in CASES]
    seen = {case["name"]: 1.0 for case in twins}
    for case, reports in zip(twins, node("draws.mjs", given=twins), strict=True):
        seen[case["name"]] = min(seen[case["name"]], least_chance(case, reports)[0])
    print(source, seen)
    assert all(least <= FAILURE / comparisons for least in seen.values())


def test_a_threshold_in_floats_is_refused_before_use() -> None:
    """Rounded down, a flip weight is a word too small: no experiment shows it, but the enumeration
    of the channel does."""
    assert node(
        "draws.mjs",
        given=[{"do": "floats", "params": {"epsilon": epsilon}} for epsilon in EPSILONS],
    ) == ["unverifiable"] * len(EPSILONS)


def test_every_narrow_word_gives_the_report_of_its_weight() -> None:
    """The sampler is the channel: of few words all are tried, for every value and public coin."""
    sizes: list[tuple[str, dict[str, int]]] = [
        ("binary-rr", {}),
        *(("grr", {"k": k}) for k in (2, 3, 7)),
        *(("one-bit-mean", {"steps": s}) for s in (1, 6)),
    ]
    sizes += [("subset-selection", {"k": k}) for k in (3, 5, 6, 8, 9, 14)]
    sizes += [("signed-blocks", {"k": k, "size": size}) for k, size in ((1, 1), (3, 1), (5, 4))]
    cases = [
        {"do": "enumerated", "name": name, "params": {"epsilon": 1.0, "word_bits": 10, **size}}
        for name, size in sizes
    ]
    assert node("draws.mjs", given=cases) == [""] * len(cases)
