"""Reports of the JavaScript randomizers against their exact channels, and samplers that are wrong
in the usual ways."""

import pytest

from tests.support.web import needs_node, node

pytestmark = [needs_node, pytest.mark.long]
EPSILONS = (0.25, 1.0, 3.0)


def test_a_threshold_in_floats_is_refused_before_use() -> None:
    """Rounded down, a flip weight is a word too small: no experiment shows it, but the enumeration
    of the channel does."""
    assert node(
        "draws.mjs",
        data=[{"do": "floats", "params": {"epsilon": epsilon}} for epsilon in EPSILONS],
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
    assert node("draws.mjs", data=cases) == [""] * len(cases)
