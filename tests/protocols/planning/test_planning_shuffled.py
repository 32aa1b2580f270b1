"""Planning behind a shuffler: what is planned keeps the privacy and the accuracy, and lies between the local model and the curator."""

from typing import Any

import numpy as np
import pytest

from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.protocols.planning.local import asked_of, law_of, ways
from local_dp.protocols.planning.shuffled import Blankets, OneReport, Together, shuffled_ways
from local_dp.protocols.surveys.frequency import Frequency
from local_dp.protocols.surveys.survey import Survey
from local_dp.protocols.vectors.mean import Mean
from local_dp.shuffle.accountant import amplified
from local_dp.shuffle.histogram import Target, multi_message

TOGETHER = Together(1.0, 1e-6)
RUNS = 4000
APART = 0.017  # from 95 %: 4.5 standard errors of as many runs are .0155, and the normal law leaves out that counts are whole


def one_report(protocol: LocalProtocol[Any], of: bool = False) -> OneReport:
    """The plan for one report each, of the made-up population or of any."""
    found = shuffled_ways(protocol, TOGETHER, protocol.synthetic(1, 0) if of else None)[0]
    assert isinstance(found, OneReport)
    return found


@pytest.mark.parametrize("protocol", [Survey(), Frequency(k=8), Mean()], ids=lambda each: each.name)
def test_between_local_and_curator(protocol: LocalProtocol[Any]) -> None:
    """Fewer clients than any local way, and more than a curator; with blanket messages fewer than with one report."""
    every = ways(protocol, 1.0)
    counts = [way.clients(0.05) for way in shuffled_ways(protocol, TOGETHER)]
    curator = next(way.clients(0.05) for way in every if way.model == "curator")
    local = min(way.clients(0.05) for way in every if way.model == "local")
    assert [local, *counts, curator] == sorted([local, *counts, curator], reverse=True)
    assert counts[0] < local / 3


@pytest.mark.parametrize("protocol", [Survey(), Frequency(k=8)], ids=lambda each: each.name)
def test_one_report_keeps_the_target_and_no_more(protocol: LocalProtocol[Any]) -> None:
    """The reports of the planned clients are private enough together, and a hundredth fewer clients are too few for both."""
    way = one_report(protocol)
    clients = way.clients(0.05)
    local = way.local(clients)
    assert 0.99 < amplified(way.make(local), clients, TOGETHER.delta).upper <= 1.0 + 1e-9
    assert way.accuracy(clients) <= 0.05 * (1 + 1e-3)
    assert way.accuracy(round(0.99 * clients)) > 0.05


def test_planned_errors_are_kept_in_95_percent_of_runs() -> None:
    """Of 4,000 runs with the planned clients, drawn from the made-up population's law: one report each, and blanket messages."""
    protocol, generator = Frequency(k=8), np.random.default_rng(5)
    population = protocol.synthetic(1, 0)
    law = law_of(population, asked_of(protocol, 1.0))
    reports, blankets = shuffled_ways(protocol, TOGETHER, population)
    assert isinstance(reports, OneReport)
    assert isinstance(blankets, Blankets)
    n = reports.clients(0.05)
    oracle = reports.make(reports.local(n))
    held = generator.multinomial(n, law, RUNS)
    found = [oracle.estimate(oracle.draw_tally(dict(enumerate(each.tolist())), generator)).value for each in held]
    assert abs(np.mean(np.abs(np.array(found) - law).max(axis=1) <= 0.05) - 0.95) < APART
    n = blankets.clients(0.05)
    histogram = multi_message(8, Target(n, 1.0, 1e-6))
    sent = generator.multinomial(n * histogram.tries, [*[histogram.share] * 8, 1 - 8 * histogram.share], RUNS)[:, :8] + generator.multinomial(n, law, RUNS)
    estimated = sent / n - histogram.tries * histogram.share
    assert abs(np.mean(np.abs(estimated - law).max(axis=1) <= 0.05) - 0.95) < APART
