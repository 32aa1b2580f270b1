"""The acceptance tests of randomizers: exact losses at every size, samplers as fractions, and no noise in floating point in private."""

from dataclasses import dataclass
from math import log
from typing import ClassVar

import numpy as np
import pytest

from local_dp.clients.journal import MemoryStore
from local_dp.clients.role import ClientRole, Policy
from local_dp.loss import Pure, exp_epsilon
from local_dp.noise import Draw, KeyedNoise, Noise, SystemNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.tables import Question
from local_dp.randomizers.evidence import PROVEN, exact_ratio
from local_dp.randomizers.numbers.noise import DiscreteLaplace
from local_dp.randomizers.randomizer import Evidence, Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.verification.sampler import check_sampler
from local_dp.wire import Refusal, Reply
from tests.support.adversaries.zoo import OpaqueNoise
from tests.support.figures import figure
from tests.support.inputs.builders import request, yes_records
from tests.support.inputs.randomizers import PROVEN_NAMES, of_size, stated_loss
from tests.support.long import short

EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
SIZES = (2, 3, 8, 64, 256)  # of the long runs
SLACK = 1e-6  # nats that rounding may cost; each built-in one's docstring says why it costs no more


PURE = [name for name in PROVEN_NAMES if isinstance(of_size(name, 1.0, 2).loss, Pure)]


@pytest.mark.parametrize("name", short(PURE, lambda name: name in ("binary-rr", "sue", "olh", "wide-hashing")))
def test_the_exact_loss_is_the_declared_one(name: str) -> None:
    """Reliability 12: at five sizes and eight epsilons the exact ratio is at most e^epsilon, as a fraction, and the loss at least epsilon - 1e-6."""
    for k in SIZES:
        for epsilon in EPSILONS:
            randomizer = of_size(name, epsilon, k)
            ratio = exact_ratio(randomizer)
            assert ratio <= exp_epsilon(randomizer.nano), (k, epsilon)
            assert log(ratio) >= stated_loss(randomizer) - SLACK, (k, epsilon)
    figure(12, f"{len(PURE)} randomizers at {len(SIZES)} sizes and {len(EPSILONS)} epsilons: each exact ratio at most e^epsilon, none lower than is said")


@pytest.mark.parametrize("k", short([2, 3, 5, 8], lambda k: k == 3))
@pytest.mark.parametrize("name", PROVEN_NAMES)
def test_the_enumerated_sampler_is_the_declared_matrix(name: str, k: int) -> None:
    """Reliability 13: over all narrow words each value sends each report exactly as often as declared, under every coin or all that are tried."""
    findings = check_sampler(of_size(name, 1.0, k), drawn=False)
    assert all(each.holds for each in findings)
    assert any(each.check == "sampler, enumerated" for each in findings)
    figure(13, f"{len(PROVEN_NAMES)} randomizers, k in 2, 3, 5, 8: over all words each report comes as often as declared")


@dataclass(frozen=True, kw_only=True)
class FloatLaplace(OpaqueNoise):
    """Textbook Laplace noise on a bit, proved from its density."""

    name: ClassVar[str] = "float-laplace"
    evidence: ClassVar[Evidence] = "density"
    k: int = 2


@dataclass(frozen=True, kw_only=True)
class AuditedLaplace(FloatLaplace):
    """The same, which says that it was audited."""

    name: ClassVar[str] = "audited-laplace"
    evidence: ClassVar[Evidence] = "audited"


@pytest.mark.parametrize("kind", [FloatLaplace, AuditedLaplace])
def test_floating_point_laplace_is_refused_in_private(kind: type[Randomizer], monkeypatch: pytest.MonkeyPatch) -> None:
    """Reliability 15: whatever evidence a client's policy accepts, in private it does not answer by noise in floats; a simulation may."""
    monkeypatch.setitem(RANDOMIZERS._loaded, kind.name, kind)
    asked = request(LocalQuery(Question("yes == 1"), kind(1.0), Cohort(0, 3)))

    def answer(noise: Noise, *evidence: Evidence) -> Reply | Refusal:
        accepted = Policy(None, PROVEN | frozenset(evidence))
        return ClientRole("host-0", 0, yes_records(3), noise, MemoryStore(1.0), accepted).handle(asked)[0]

    private = answer(SystemNoise(), "density", "audited")
    assert isinstance(private, Refusal)
    assert private.code == "evidence"
    assert isinstance(answer(KeyedNoise(1), "density", "audited"), Reply)
    assert isinstance(answer(KeyedNoise(1)), Refusal), "by default no density and no audit is accepted"
    figure(15, f"in private {kind.name} is refused, whatever a client accepts")


def exclusive(randomizer: Randomizer, first: int, second: int, n: int = 100_000) -> int:
    """How many of n reports of `first` are of a kind that `second` does not send in n; both answer from the system's entropy."""
    noise = SystemNoise()
    words = [randomizer.draw(noise, Draw(1), 0, n) for _ in range(2)]
    one, other = (randomizer.respond(np.full(n, value), each, np.zeros(1, dtype=np.uint8)) for value, each in zip((first, second), words, strict=True))
    kinds, counts = np.unique(one, return_counts=True)
    often = counts >= 100  # at epsilon 1 the other sends 36 of these on average, and none with probability 1e-15
    return int(counts[(often | (len(kinds) > 1000)) & ~np.isin(kinds, other)].sum())


def test_lattice_laplace_has_no_support_of_its_own() -> None:
    """Reliability 15: in 100,000 reports each way no lattice report is one that the other end never sends; of textbook Laplace nearly all are."""
    lattice = DiscreteLaplace(1.0)
    assert exclusive(lattice, 0, lattice.steps) == exclusive(lattice, lattice.steps, 0) == 0
    floats = exclusive(FloatLaplace(1.0), 0, 1)
    assert floats > 90_000
    figure(15, f"of 100,000 reports each way 0 of the lattice, {floats:,} of textbook Laplace show the input")
