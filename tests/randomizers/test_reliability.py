"""The acceptance tests of randomizers, their audit: exact losses, samplers as fractions, what is
broken is found."""

from dataclasses import dataclass
from itertools import product
from math import log
from multiprocessing import get_context
from typing import Any, ClassVar

import numpy as np
import pytest

from local_dp.arrays import Ints, Words
from local_dp.clients.journal import MemoryStore
from local_dp.clients.role import ClientRole, Policy
from local_dp.loss import Pure, exp_epsilon
from local_dp.noise import KeyedNoise, Noise, SystemNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.tables import Question
from local_dp.randomizers.evidence import PROVEN, exact_ratio
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.places import BitVector, PerCoin
from local_dp.randomizers.randomizer import Evidence, Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.verification.audit import audit
from local_dp.verification.bits import check_bits
from local_dp.verification.black_box import ALPHA, check_black_box
from local_dp.verification.decoding import check_decoding
from local_dp.verification.findings import Witness
from local_dp.verification.sampler import PAIRS, check_drawn, pairs_of
from local_dp.wire import Refusal, Reply
from tests.support.adversaries.cases import BROKEN, CORRECT, Case
from tests.support.adversaries.zoo import LastElement, OneLevel, Opaque, OpaqueNoise
from tests.support.inputs.builders import request, yes_records
from tests.support.inputs.randomizers import PROVEN_NAMES, stated_loss
from tests.support.long import short
from tests.support.wrong import wrong

EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
SIZES = (2, 3, 8, 64, 256)  # of the long runs
SLACK = 1e-6  # nats that rounding may cost; each built-in one's docstring says why it costs no more


PURE = [name for name in PROVEN_NAMES if isinstance(RANDOMIZERS[name].example(1.0, 2).loss, Pure)]


@pytest.mark.slow(only=("rounded-oracle-256",))
@pytest.mark.parametrize("k", short(SIZES, lambda k: k <= 3))
@pytest.mark.parametrize("name", PURE)
def test_the_exact_loss_is_the_declared_one(name: str, k: int) -> None:
    """Reliability 12: at five sizes and eight epsilons the exact ratio is at most e^epsilon, as a
    fraction, and the loss at least epsilon - 1e-6."""
    for epsilon in EPSILONS:
        randomizer = RANDOMIZERS[name].example(epsilon, k)
        ratio = exact_ratio(randomizer)
        assert ratio <= exp_epsilon(randomizer.nano), epsilon
        assert log(ratio) >= stated_loss(randomizer) - SLACK, epsilon


@dataclass(frozen=True, kw_only=True)
class FloatLaplace(OpaqueNoise):  # textbook Laplace noise on a bit, proved from its density
    name: ClassVar[str] = "float-laplace"
    evidence: ClassVar[Evidence] = "density"
    k: int = 2


class AuditedLaplace(FloatLaplace):  # the same, which says that it was audited
    name: ClassVar[str] = "audited-laplace"
    evidence: ClassVar[Evidence] = "audited"


@wrong(
    "local_dp.clients.role:ClientRole._randomizer",
    "randomizer.evidence == 'density' or _in_floats(randomizer.report_dtype)",
    "randomizer.evidence == 'density'",
    "the last bits of a private report show the value",
    at="AuditedLaplace",
)
@wrong(
    "local_dp.clients.role:Work.verify",
    "verify(each, self.evidence)",
    "pass",
    "a client answers by a randomizer that it has not verified",
    at="FloatLaplace",
)
@pytest.mark.parametrize("kind", [FloatLaplace, AuditedLaplace])
def test_floating_point_laplace_is_refused_in_private(
    kind: type[Randomizer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reliability 15: whatever evidence a client's policy accepts, in private it does not answer by
    noise in floats; a simulation may."""
    monkeypatch.setitem(RANDOMIZERS._classes, kind.name, kind)
    ask = request(LocalQuery(Question("yes == 1"), kind(1.0), Cohort(0, 3)))

    def answer(noise: Noise, *evidence: Evidence) -> Reply | Refusal:
        policy = Policy(None, PROVEN | frozenset(evidence))
        return ClientRole("host-0", 0, yes_records(3), noise, MemoryStore(1.0), policy).handle(ask)[
            0
        ]

    private = answer(SystemNoise(), "density", "audited")
    assert isinstance(private, Refusal)
    assert private.code == "evidence"
    assert isinstance(answer(KeyedNoise(1), "density", "audited"), Reply)
    assert isinstance(answer(KeyedNoise(1)), Refusal), (
        "by default no density and no audit is accepted"
    )


# two inputs are no witness of these: it is about what the object says of itself, or how reports are
# added up
WITHOUT = {
    *((kind, "claims") for kind in ("CheaperAndCheaper", "Afterwards", "Mutable")),
    *((kind, "tally") for kind in ("Forgets", "Swaps", "Rejects")),
    ("Unsummed", "loss"),
}


@wrong(
    "local_dp.verification.behaviour",
    (
        "OUTSIDE = frozenset({'time', 'posix', 'nt', 'random', 'datetime', 'io', '_io', 'socket', "
        "'_socket', 'signal', 'resource', 'select', 'ctypes', '_warnings'})"
    ),
    (
        "OUTSIDE = frozenset({'posix', 'nt', 'random', 'datetime', 'io', '_io', 'socket', "
        "'_socket', 'signal', 'resource', 'select', 'ctypes', '_warnings'})"
    ),
    "a clock chooses when the truth is told",
    at="Clock outside",
)
@wrong(
    "local_dp.verification.sampler:_every_word",
    "(counts[:, :-1] != weights).any(axis=1) | (counts[:, -1] > 0)",
    "counts[:, -1] > 0",
    "the enumerated sampler is not compared with the channel",
    at="LastElement sampler, enumerated",
)
@wrong(
    "local_dp.verification.sampler:_unlike_inner",
    "not 0 < 2 * len(wrong) <= n",
    "True",
    "a coin under which the value is told is not looked at",
    at="BareHash sampler, compared",
)
@wrong(
    "local_dp.randomizers.evidence:too_much",
    "min",
    "max",
    "a randomizer that charges half of what it loses is verified",
    at="Modest loss",
)
@pytest.mark.parametrize(
    "case", BROKEN, ids=lambda case: f"{type(case.randomizer).__name__} {case.check}"
)
def test_what_is_broken_is_found(case: Case) -> None:
    report = audit(case.randomizer)
    wrong = {each.check: each for each in report.findings if not each.holds}
    assert case.check in wrong, report
    assert report.grade in ("exact", "declared", "black box")
    without = case.check == "estimate" or (type(case.randomizer).__name__, case.check) in WITHOUT
    assert (wrong[case.check].witness is None) == without, wrong[case.check]


@pytest.mark.parametrize(
    "name",
    short(
        RANDOMIZERS.built_in,
        lambda name: name in ("grr", "sue", "she", "olh", "with-coin", "wide-hashing"),
    ),
)
def test_every_built_in_passes(name: str) -> None:
    """Every built-in randomizer has an exact loss of at most its epsilon, and a witness that
    reaches it."""
    report = audit(RANDOMIZERS[name](1.0))
    assert report.holds, report
    if not isinstance(RANDOMIZERS[name](1.0).loss, Pure) or report.evidence == "density":
        return  # a delta, or a claim about real numbers: tested where they are
    assert report.loss is not None
    witness = report.findings[0].witness
    assert witness is not None
    assert witness.ratio is not None
    assert np.log(witness.ratio) == pytest.approx(report.loss, rel=1e-9)


D: dict[str, Any] = {"d": 1000}
MANY: list[tuple[str, dict[str, Any]]] = [
    ("projunit", {}),
    ("nearest-direction", {}),
    ("privunit", D),
    ("she", {"k": 1024}),
    ("projunit", D),
]


@pytest.mark.slow(only=("projunit-params4", "projunit-params0"))
@pytest.mark.parametrize(
    ("name", "params"), short(MANY, lambda case: case[0] == "she", several=True)
)
def test_an_audit_asks_for_no_more_than_it_may(
    name: str, params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many words a report takes and coordinates a value has, all reports together take less
    than 2^27, and few are asked for one by one."""
    randomizer = RANDOMIZERS.build(name, {"epsilon": 1.0, **params})
    owner: type[Randomizer] = next(
        kind for kind in type(randomizer).__mro__ if "respond" in vars(kind)
    )
    respond, numbers = owner.respond, list[int]()

    def count(self: Randomizer, values: Ints, words: Words, cells: Words) -> Words:
        numbers.append(max(values.size, words.size))
        return respond(self, values, words, cells)

    monkeypatch.setattr(owner, "respond", count)
    assert audit(randomizer).holds
    assert len(numbers) < 5000
    assert 1 << 20 < sum(numbers) < 1 << 27


@wrong(
    "local_dp.verification.sampler:_broken_runs",
    "goes_on & wrong",
    "goes_on & wrong & False",
    "an odd input among many is not looked at by itself",
)
def test_the_witness_of_a_broken_sampler_is_what_it_sends() -> None:
    """An infinite ratio shows the last symbol's leak, the sampler's own and not the declared one;
    of 65,537 levels the one always reported is named."""

    def witness(randomizer: Randomizer, check: str) -> Witness:
        """That of the finding of this check."""
        shown_by = {each.check: each.witness for each in audit(randomizer).findings}[check]
        assert shown_by is not None
        return shown_by

    leak = witness(LastElement(1.0, k=8), "sampler, enumerated")
    odd = witness(OneLevel(1.0), "sampler, drawn")
    assert (leak.ratio, leak.inputs[1]) == (None, 7)
    assert 23456 in odd.inputs
    assert odd.ratio is None or odd.ratio > 1.3


@wrong(
    "local_dp.verification.black_box:_bet",
    "joint[1]",
    "joint[0]",
    "the reports that choose the bet decide it too",
)
def test_a_black_box_is_rarely_blamed_wrongly() -> None:
    """Of 20 audits of the two tightest correct black boxes at most 2 find fault: at ALPHA each,
    more have a probability below 1e-8."""
    assert ALPHA <= 1e-4
    pairs = product((Opaque(1.0, k=2), OpaqueNoise(1.0, k=2)), range(100, 400, 30))
    flags = [check_black_box(randomizer, 1000 * seed).holds for randomizer, seed in pairs]
    assert flags.count(False) <= 2


def holds(place: int, seed: int) -> bool:
    """Whether the checks that may go wrong by chance, those of drawn reports, speak for the right
    randomizer at this place of the zoo."""
    randomizer = CORRECT[place]
    if isinstance(randomizer, FiniteChannel | PerCoin):
        finding = check_drawn(randomizer, pairs_of(randomizer, PAIRS), seed)
    else:
        finding = (check_bits if isinstance(randomizer, BitVector) else check_black_box)(
            randomizer,  # type: ignore[arg-type]
            seed,
        )
    return finding.holds and all(each.holds for each in check_decoding(randomizer, seed))


# findings that may differ from audit to audit
DRAWN = ("sampler, drawn", "black box", "tally", "estimate", "law")


@pytest.mark.parametrize(
    "randomizer",
    short(CORRECT, lambda each: each.epsilon <= 0.5),
    ids=lambda each: f"{type(each).__name__} {each.epsilon:g}",
)
def test_what_is_not_drawn_is_found_again(randomizer: Randomizer) -> None:
    """No check rejects a right randomizer. Checks without chance say the same with another seed,
    word by word, so 200 audits need them once."""
    audits = [audit(randomizer, seed) for seed in (7, 4_200_000)]
    assert all(each.holds for each in audits), audits
    one, other = (
        [each for each in report.findings if each.check not in DRAWN] for report in audits
    )
    assert one == other
    assert len(one) > 5


@pytest.mark.slow
def test_what_is_right_is_rarely_blamed_wrongly() -> None:
    """Of 200 audits of each of 15 right randomizers, of every kind in the zoo, at most 3 find fault
    (reliability 14)."""
    kinds = {type(randomizer): place for place, randomizer in enumerate(CORRECT)}
    others = [place for place in range(len(CORRECT)) if place not in kinds.values()]
    places = [*kinds.values(), *others[: max(0, 15 - len(kinds))]]
    assert len(places) >= 15
    with get_context("fork").Pool(2) as pool:
        flags = pool.starmap(
            holds,
            [(place, 100_000 * seed) for place in places for seed in range(1, 201)],
            chunksize=20,
        )
    assert flags.count(False) <= 3
