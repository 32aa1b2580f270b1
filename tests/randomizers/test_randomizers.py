"""The built-in randomizers: exact privacy, exact samplers, unbiased decoders of the stated
variance, and wrong twins that fail."""

import math
from typing import Any

import numpy as np
import pytest

from local_dp.conformance import SLACK, conform
from local_dp.domains import Vectors
from local_dp.errors import InputError, RefusedError
from local_dp.loss import NANO
from local_dp.noise import Draw, KeyedNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery, respond
from local_dp.oracles.local.memory import Memory
from local_dp.queries.tables import Question
from local_dp.randomizers import randomizer as base
from local_dp.randomizers.evidence import check_loss, exact_epsilon
from local_dp.randomizers.finite import FiniteChannel, report_law
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import SignedHadamard
from local_dp.randomizers.frequencies.subset_selection import Translates
from local_dp.randomizers.numbers.rounded import RoundedGRR
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.tallies import Tally
from tests.support.inputs.randomizers import KINDS, PROVEN_NAMES, SIZES, every, stated_loss
from tests.support.mechanisms.case import twin_of
from tests.support.wrong import wrong

EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
ALPHA = 1e-6  # failure probability of each statistical check


@wrong(
    "local_dp.randomizers.evidence:_of_bit",
    "differ or bool((bits != bits[:, :1]).any())",
    "False",
    "a randomized bit is said to lose nothing",
    at="1.0",
)
@wrong(
    "local_dp.randomizers.table:whole_weights",
    "growth.numerator * each // growth.denominator",
    "-(-growth.numerator * each // growth.denominator)",
    "a likely report is a hair more than e^epsilon times as likely as elsewhere",
    at="1.0",
)
@wrong(
    "local_dp.randomizers.numbers.noise:DiscreteLaplace._ratio",
    "-(epsilon - min(_ROUNDING, epsilon / 10))",
    "-(epsilon - min(_ROUNDING, epsilon / 10)) / 2",
    "the noise is scaled to twice the range",
    at="1.0",
)
@wrong(
    "local_dp.randomizers.frequencies.hadamard:SignedHadamard.encode",
    "(cell & np.uint32(1)).astype(np.uint8)",
    "np.uint8(0)",
    "a client that holds nothing leans the estimate of symbol 0",
    at="1.0",
)
@wrong(
    "local_dp.randomizers.frequencies.hadamard:Hadamard.encode",
    "cells.astype(np.uint16, copy=False)",
    "cells.astype(np.uint16, copy=False) + np.uint16(1)",
    "the client answers for the row after the one that the coin picked",
    at="1.0",
)
@wrong(
    "local_dp.randomizers.frequencies.grr:other_weight",
    "exp_epsilon(nano) + (k - 1)",
    "exp_epsilon(nano) + k",
    "more than epsilon is spent",
    at="1.0",
)
@wrong(
    "local_dp.randomizers.frequencies.grr:GRR.moved",
    "np.uint16(1)",
    "np.uint16(2)",
    "the kept value is reported as the next one",
    at="1.0",
)
@wrong(
    "local_dp.randomizers.signs.characters:Deny.respond",
    "ruled_out(labelled, names) == agree",
    "ruled_out(labelled, names) != agree",
    (
        "the sampler names more often what the example does not rule out, and is not the channel "
        "that is verified"
    ),
    at="1.0",
)
@wrong(
    "local_dp.randomizers.frequencies.unary:UnaryEncoding.respond",
    "words[own_places] < own",
    "words[own_places] <= own",
    "the own bit is 1 for one word too many",
    at="1.0",
)
@wrong(
    "local_dp.tallies:Estimate.between",
    "variance /= n",
    "pass",
    "the standard error does not fall with the number of clients",
    at="1.0",
)
@wrong(
    "local_dp.randomizers.finite:OneBit.respond",
    "words < self._cut",
    "words <= self._cut",
    "the sampler is not the channel that is verified",
    at="1.0",
)
@wrong(
    "local_dp.randomizers.finite:flip_weight",
    "ceil_fraction(2 ** bits / (1 + exp_epsilon(nano)))",
    "ceil_fraction(2 ** bits / (1 + exp_epsilon(nano))) - 1",
    "the flip threshold is a hair below what epsilon needs",
    at="1.0",
)
@wrong(
    "local_dp.randomizers.finite:flip_weight",
    "exp_epsilon(nano)",
    "exp_epsilon(2 * nano)",
    "randomized response spends twice what it declares",
    at="1.0",
)
@pytest.mark.parametrize(
    ("epsilon", "sizes"),
    [
        pytest.param(1.0, (4,), id="1.0"),
        pytest.param(20.0, (3, 8), id="20.0", marks=pytest.mark.long),
        *(pytest.param(each, SIZES, marks=pytest.mark.slow) for each in EPSILONS if each != 1.0),
    ],
)
def test_every_built_in_randomizer_conforms(
    epsilon: float, sizes: tuple[int, ...], request: pytest.FixtureRequest
) -> None:
    """At each epsilon and some sizes, each registered randomizer has exactly the declared loss,
    samples its declared channel and decodes without bias."""
    if epsilon == 1.0:
        request.getfixturevalue("narrow")
    for randomizer in every(epsilon, sizes):
        conform(randomizer, slack=SLACK + epsilon - stated_loss(randomizer))


# spends twice the declared epsilon
Doubled = twin_of(
    GRR, other=lambda own, right: GRR(2 * own.epsilon, word_bits=own.word_bits, k=own.k).other
)
# wastes half of its epsilon
Halved = twin_of(
    BinaryRR, flip=lambda own, right: BinaryRR(own.epsilon / 2, word_bits=own.word_bits).flip
)


SharedCoin = twin_of(
    BinaryRR,
    respond=lambda own, right: (
        lambda values, words, cells: right(values, np.repeat(words[::2], 2)[: len(words)], cells)
    ),
)
"""Neighbouring clients use one coin."""
# a density in bits
WrongLog = twin_of(GRR, log_probability=lambda own, right: lambda *at: right(*at) / math.log(2))
# weights that do not sum to 2^word_bits
Leaky = twin_of(GRR, weight=lambda own, right: lambda *at: right(*at) + np.uint64(1))
# params() leaves k out
Forgetful = twin_of(GRR, params=lambda own, right: lambda: {"epsilon": own.epsilon})


@pytest.mark.parametrize(("twin", "fault"), [
    (Doubled(1.0, k=8), "loss"), (Halved(1.0), "exact epsilon"),
    (SharedCoin(1.0), "repeats"),
    (WrongLog(1.0, k=8), "log_probability"), (Leaky(1.0, k=8), "loss"),
    (Forgetful(1.0, k=8), "claims"),
])  # fmt: skip
def test_wrong_twins_fail_the_check_made_for_them(twin: FiniteChannel, fault: str) -> None:
    with pytest.raises(AssertionError, match=fault):
        conform(twin)


@pytest.mark.parametrize("bits", [8, 12, 20])
def test_narrow_words_still_randomize(bits: int) -> None:
    """A randomizer named with narrow words flips as often as its thresholds say when a client
    answers from full-width noise."""
    n = 200_000
    randomizer = BinaryRR(1.0, word_bits=bits)
    query = LocalQuery(Question("yes == 1"), randomizer, Cohort(0, n))
    records, places = Records({"yes": np.ones(n, dtype=np.uint8)}), np.arange(n)
    reports = respond(query, records, 0, KeyedNoise(3), Draw(1), bytes(16), Memory(), places)
    truth = 1 - randomizer.weight(np.array(0), np.array(1), np.array(0)) / randomizer.total
    assert abs(reports.mean() - truth) <= math.sqrt(math.log(2 / ALPHA) / (2 * n))  # Hoeffding


def test_exact_epsilon_refuses_what_it_cannot_verify() -> None:
    """A channel that does not sum to one, exceeds its claim, or gives a report to one value only is
    unverifiable."""
    with pytest.raises(RefusedError, match="do not sum"):
        exact_epsilon(Leaky(1.0, k=8))
    with pytest.raises(RefusedError, match="claims epsilon 1 but its channel has 2"):
        check_loss(Doubled(1.0, k=8))
    with pytest.raises(RefusedError, match="too large"):
        exact_epsilon(RoundedGRR(1.0, groups=9000, steps=1))
    check_loss(GRR(1.0, k=4096))


@pytest.mark.parametrize("name", PROVEN_NAMES)
def test_a_tiny_epsilon_is_kept_or_refused(name: str) -> None:
    """Rounding adds nothing to the loss where two chances are a few units of a word apart."""
    for nano in (1, 2, 3, 10):
        try:
            randomizer = KINDS[name].example(nano / NANO, 3)
        except (InputError, RefusedError):
            continue
        check_loss(randomizer)


def test_the_registry_builds_by_name_and_refuses_the_rest() -> None:
    """Names and parameters make a randomizer; unknown names, unknown parameters and bad values are
    refused with a code."""
    assert RANDOMIZERS.build("grr", {"epsilon": 1.0, "k": 4}) == GRR(1.0, k=4)
    for name, params, code in [
        ("eval", {"epsilon": 1.0}, "unknown-randomizer"),
        ("grr", {"epsilon": 1.0, "k": 1}, "bad-parameters"),
        ("grr", {"epsilon": math.nan}, "bad-parameters"),
        ("grr", {"epsilon": 1.0, "code": "x"}, "bad-parameters"),
        ("binary-rr", {}, "bad-parameters"),
    ]:
        with pytest.raises(RefusedError) as refusal:
            RANDOMIZERS.build(name, params)  # type: ignore[arg-type]
        assert refusal.value.code == code
        assert "\n" not in str(refusal.value)


def test_what_nobody_says_is_subtracted() -> None:
    """When half of the clients hold nothing and send a public coin, subtracting it gives exactly
    the variance that is claimed: C^2 - 1/4 - m^2 a report."""
    randomizer, nothing = SignedHadamard(1.0, k=4), 0.5
    laws = [report_law(randomizer, symbol).reshape(-1, 2) for symbol in (0, 1, 2, 3, -4)]
    law = np.tensordot([nothing, *[(1 - nothing) / 4] * 4], np.stack(laws), 1)
    units = np.eye(law.size, dtype=np.int64).reshape(-1, *law.shape)
    values = [randomizer.estimate(Tally(unit), nothing).value for unit in units]
    singles = np.array(values).reshape(*law.shape, 4)
    mean = np.einsum("cw,cwp->p", law, singles)
    exact = np.einsum("cw,cwp->p", law, (singles - mean) ** 2)
    tally = Tally(np.rint(law * 2.0**52).astype(np.int64))
    claim = randomizer.estimate(tally, nothing).standard_error ** 2 * 2.0**52
    np.testing.assert_allclose(mean, np.array([1, 1, 1, -1]) / 8, atol=1e-9)
    np.testing.assert_allclose(exact, claim, rtol=1e-6)
    np.testing.assert_allclose(exact, randomizer.gain**2 - nothing**2 - 1 / 64, rtol=1e-6)


COIN = 0x9E3779B97F4A7C15
ALL = [
    *(RANDOMIZERS[name](1.0) for name in RANDOMIZERS.built_in),
    *(GRR(1.0, k=k) for k in (255, 256, 257)),
]


@pytest.mark.parametrize("randomizer", ALL, ids=repr)
def test_it_is_the_report_of_the_sampler(
    randomizer: Randomizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With known words it is byte by byte the sampler's report of the value as a 64-bit number, at
    both ends of the domain too."""
    noise, domain = KeyedNoise(3), randomizer.domain
    monkeypatch.setattr(base, "_PRIVATE", noise)
    words = randomizer.draw(noise, Draw(0), 0, 1)
    cells = randomizer.cells_of(np.array([COIN], dtype=np.uint64))
    for value in (*domain.some(16).tolist(), *domain.some(1 << 17)[-1:].tolist()):
        right = randomizer.respond(np.array([value]), words, cells)
        report = randomizer.private_report(value, COIN)
        assert (report.dtype, report.shape, report.tobytes()) == (
            right.dtype,
            right.shape,
            right.tobytes(),
        )


@pytest.mark.parametrize("randomizer", ALL, ids=repr)
def test_what_is_no_member_is_refused(randomizer: Randomizer) -> None:
    """A number beside the domain, another kind of thing, a vector for a number and a number for a
    vector: one error, which does not say the value."""
    domain = randomizer.domain
    wrong: list[object] = [
        domain.low - 1,
        domain.high + 1,
        1 << 70,
        True,
        0.5,
        "1",
        None,
        (domain.low - 1, domain.low),
    ]
    if isinstance(domain, Vectors):
        wrong += [0, (0,) * (domain.d + 1), (0.5,) * domain.d, (domain.high + 1,) * domain.d]
    for value in wrong:
        with pytest.raises(InputError, match="the value is not in") as refusal:
            randomizer.private_report(value)
        assert str(refusal.value) == f"{randomizer.name}: the value is not in {domain}"


COMPRESSED: list[dict[str, Any]] = [
    *({"inner": inner} for inner in ("hadamard", "oue", "nobody")),
    *({"setting": setting} for setting in (("k",), ("k=2048",))),
    *({"streams": streams} for streams in (3, 0)),
    {"inner": "sampled-signs", "setting": ()},
    {"streams": 1, "setting": ("k=64",)},
    {"inner": "one-bit-mean", "setting": ("steps=4000",), "streams": 1024},
]
BAD: dict[str, list[dict[str, Any]]] = {
    "piecewise": [{"likely": 256}, {"likely": 2.0}, {"word_bits": 6}],
    "staircase": [{"epsilon": 1e-7}],
    "square-wave": [{"steps": 257}, {"steps": 1 << 17}, {"steps": 512, "word_bits": 3}],
    "discrete-gaussian": [{"delta": 0}, {"epsilon": 0.001, "steps": 255}],
    "recursive-hadamard": [{"k": 64, "b": b} for b in (9, 2.0)],
    **{
        name: [{"epsilon": 0.01, "k": 64, "word_bits": 8}]
        for name in (
            "olh",
            "pgr",
            "pi-rappor",
            "hadamard-response",
            "subset-selection",
            "affine-sets",
        )
    },
    **{name: [{"epsilon": 0.01, "k": 3, "word_bits": 4}] for name in ("sue", "oue")},
    "rounded-oracle": [{"steps": 3}, {"oracle": "grr"}],
    "nearest-direction": [{"directions": count} for count in (33, 2.0)],
    "sampled-signs": [{"signs": 4, "d": 3}, {"signs": 13, "d": 100}, {"d": 0}],
    "privunit": [{"d": 1}, {"word_bits": 32}],
    "projunit": [{"d": 1}, *({"d": 100, "k": k} for k in (16, 48, 256)), {"word_bits": 32}],
    "padding-sampling": [{"k": 13}, {"k": 3, "limit": 4}],
    "pckv": [{"k": 7, "steps": 4}, {"steps": 0}, {"limit": 3}, {"word_bits": 3}],
    "pckv-ue": [{"k": 1025}, {"limit": 0}, {"steps": 0}, {"word_bits": 2}],
    "she": [{"k": 4097}, {"word_bits": 4}, {"epsilon": 1e-7}],
    "memoised-grr": [
        {"k": 4, **wrong}
        for wrong in ({"first": 1.0}, {"first": 1}, {"word_bits": 9}, {"word_bits": 4})
    ],
    "memoised-rappor": [
        {"k": 4, **wrong}
        for wrong in ({"first": 1.0}, {"permanent": "grr"}, {"word_bits": 9}, {"word_bits": 4})
    ],
    "loloha": [
        {"k": 4, **wrong}
        for wrong in ({"g": 5}, {"g": 4, "k": 3}, {"first": 1.0}, {"word_bits": 8})
    ],
    "d-bit-flip": [
        {"epsilon": 0.5, "k": 4, **wrong} for wrong in ({"d": 5}, {"d": 2, "word_bits": 1})
    ],
    "count-mean-sketch": [{"k": 64, "m": m} for m in (6, 1025, 4.0)],
    "suspects": [
        {"d": 13},
        *({"d": 3, "masks": masks} for masks in ("01", "0101", "zz")),
        {"d": 6, "word_bits": 10},
    ],
    "deny": [{"d": 13}, *({"epsilon": 0.1, "d": 3, "word_bits": bits} for bits in (3, 4))],
    "binary-rr": [{"epsilon": 0.01, "word_bits": 4}],
    "grr": [{"epsilon": 0.01, "word_bits": 8, "k": 64}],
    "one-bit-mean": [{"epsilon": 0.01, "word_bits": 8}],
    **dict.fromkeys(("seeded-rejection", "genprot"), COMPRESSED),
}
CASES = [(name, params) for name, cases in BAD.items() for params in cases]


@pytest.mark.parametrize(("name", "params"), CASES, ids=repr)
def test_bad_parameters_are_refused(name: str, params: dict[str, Any]) -> None:
    """Parameters out of range, of another type, or of tables too large, and words too narrow, raise
    an error of one line."""
    with pytest.raises((InputError, RefusedError)) as refusal:
        RANDOMIZERS[name](**{"epsilon": 1.0, **params})
    assert "\n" not in str(refusal.value)


def test_the_channel_behind_a_coin_is_not_decoded_without_it() -> None:
    for w in (0, 5, True, 2.0):
        with pytest.raises(InputError, match="w is"):
            Translates(1.0, k=5, w=w)  # type: ignore[arg-type]
    channel = Translates(1.0, k=5, w=2)
    with pytest.raises(InputError, match="subset-selection"):
        channel.estimate(channel.empty())


@pytest.mark.parametrize("name", RANDOMIZERS.built_in)
def test_an_example_has_the_epsilon_that_was_asked_for(name: str) -> None:
    assert RANDOMIZERS[name].example(0.7, 5).epsilon == 0.7
