"""One private report by one call: the words and the sampler that all reports have, and the check of a value."""

import numpy as np
import pytest

from local_dp.domains import Vectors
from local_dp.errors import InputError
from local_dp.noise import Draw, KeyedNoise
from local_dp.randomizers import randomizer as base
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS

COIN = 0x9E3779B97F4A7C15
ALL = [*(RANDOMIZERS[name](1.0) for name in RANDOMIZERS.built_in), *(GRR(1.0, k=k) for k in (255, 256, 257))]


@pytest.mark.parametrize("randomizer", ALL, ids=repr)
def test_it_is_the_report_of_the_sampler(randomizer: Randomizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """With known words it is byte by byte the sampler's report of the value as a 64-bit number, at both ends of the domain too."""
    noise = KeyedNoise(3)
    monkeypatch.setattr(base, "_PRIVATE", noise)
    words, cells = randomizer.draw(noise, Draw(0), 0, 1), randomizer.cells_of(np.array([COIN], dtype=np.uint64))
    for value in {str(value): value for value in (*randomizer.domain.some(16).tolist(), *randomizer.domain.some(1 << 17)[-1:].tolist())}.values():
        wanted = randomizer.respond(np.array([value]), words, cells)
        report = randomizer.private_report(value, COIN)
        assert (report.dtype, report.shape, report.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes())


@pytest.mark.parametrize("randomizer", ALL, ids=repr)
def test_what_is_no_member_is_refused(randomizer: Randomizer) -> None:
    """A number beside the domain, another kind of thing, a vector for a number and a number for a vector: one error, which does not say the value."""
    domain = randomizer.domain
    wrong: list[object] = [domain.low - 1, domain.high + 1, 1 << 70, True, 0.5, "1", None, (domain.low, domain.low)]
    if isinstance(domain, Vectors):
        wrong += [0, (0,) * (domain.d + 1), (0.5,) * domain.d, (domain.high + 1,) * domain.d]
    for value in wrong:
        with pytest.raises(InputError, match="the value is not in") as refused:
            randomizer.private_report(value)
        assert str(refused.value) == f"{randomizer.name}: the value is not in {domain}"
