"""Histograms from shuffled messages: unbiased, of the variance that is said, and exactly as private as is said."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from local_dp.noise import Draw, KeyedNoise
from local_dp.shuffle.accountant import amplified
from local_dp.shuffle.histogram import BlanketHistogram, Target, multi_message, single_message
from tests.support.inputs.refusals import refuse
from tests.support.theory.shuffled_laws import Law, stick

TARGET = Target(500, 1.0, 1e-5)


def counts_law(histogram: BlanketHistogram, values: tuple[int, ...]) -> Law:
    """The law of the counts of all messages of clients that hold `values`, in fractions."""
    share = Fraction(histogram.weight, 1 << 32)
    turns = [(None, 1 - histogram.k * share), *((symbol, share) for symbol in range(histogram.k))]
    law: Law = {tuple(values.count(symbol) for symbol in range(histogram.k)): Fraction(1)}
    for _ in range(histogram.tries * len(values)):
        further: Law = {}
        for (counts, chance), (symbol, part) in product(law.items(), turns):
            seen = counts if symbol is None else (*counts[:symbol], counts[symbol] + 1, *counts[symbol + 1 :])
            further[seen] = further.get(seen, Fraction(0)) + chance * part
        law = further
    return law


@pytest.mark.parametrize(("k", "tries", "clients", "delta"), [(2, 1, 6, 0.2), (3, 1, 4, 0.4), (3, 2, 3, 0.2)])
def test_blanket_accounting_is_exact_for_every_data_set(k: int, tries: int, clients: int, delta: float) -> None:
    """The bounds are close, and delta at them is what was asked, whatever the others hold."""
    histogram = BlanketHistogram(k, (1 << 32) // (k + 1), tries)
    least, most = histogram.epsilon(clients, delta)
    assert least <= most <= least * 1.02
    for others in ((0,) * (clients - 1), tuple(place % k for place in range(clients - 1))):
        law, other = (counts_law(histogram, (value, *others)) for value in (0, 1))
        assert float(stick(law, other, Fraction(np.exp(most)))) <= delta * (1 + 1e-9)
        assert float(stick(law, other, Fraction(np.exp(least)))) >= delta * (1 - 1e-9)


def test_messages_keep_to_their_target() -> None:
    """One message, which randomizes much less than it would alone; and several, to a hundredth of epsilon."""
    oracle = single_message("grr", 4, TARGET)
    assert amplified(oracle, TARGET.clients, TARGET.delta).upper <= 1.0 + 1e-4
    assert oracle.epsilon > 2
    least, most = multi_message(16, TARGET).epsilon(TARGET.clients, TARGET.delta)
    assert 0.99 < least < most <= 1.0 + 1e-4


def test_blanket_estimates_are_unbiased_with_the_stated_variance() -> None:
    """Over 4,000 runs of 50 clients: each mean within 4.5 standard errors, and the variance within 10 %: 4.5 standard errors of it are 9.2 %."""
    histogram, values, runs = BlanketHistogram(4, 1 << 28, 3), np.array([0, 0, 1, 3, 3] * 10), 4000
    words = KeyedNoise(7).words(Draw(1), 0, runs * len(values) * 3, 32).reshape(runs, len(values), 3)
    estimates = np.array([histogram.estimate(histogram.tally(histogram.respond(values, each), len(values))).value for each in words])
    variance = histogram.variance(len(values))
    assert np.abs(estimates.mean(axis=0) - np.array([0.4, 0.2, 0, 0.4])).max() < 4.5 * np.sqrt(variance / runs)
    assert np.abs(estimates.var(axis=0) / variance - 1).max() < 0.1


def test_error_does_not_grow_with_the_symbols() -> None:
    """A blanket for 64 symbols has the variance of one for 16, within 3 %."""
    few, many = (multi_message(k, TARGET).variance(TARGET.clients) for k in (16, 64))
    assert many == pytest.approx(few, rel=0.03)


def test_bad_input() -> None:
    """No frequencies from bits, no blanket that is wide enough."""
    refuse(
        ("estimates no frequencies", lambda: single_message("binary-rr", 2, TARGET)),
        ("too few for 4096 symbols", lambda: multi_message(4096, Target(2, 0.01, 1e-6))),
    )
