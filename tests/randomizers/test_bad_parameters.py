"""Parameters that make no randomizer: each is refused by one line."""

from typing import Any

import pytest

from local_dp.errors import InputError, RefusedError
from local_dp.randomizers.frequencies.subset_selection import Translates
from local_dp.randomizers.registry import RANDOMIZERS

COMPRESSED: list[dict[str, Any]] = [
    *({"inner": inner} for inner in ("hadamard", "oue", "nobody")),
    *({"setting": setting} for setting in (("k",), ("k=2048",))),
    *({"streams": streams} for streams in (3, 0)),
    {"inner": "duchi-vector", "setting": ()},
    {"streams": 1, "setting": ("k=64",)},
    {"inner": "one-bit-mean", "setting": ("steps=4000",), "streams": 1024},
]
BAD: dict[str, list[dict[str, Any]]] = {
    "piecewise": [{"likely": -1}, {"likely": 256}, {"likely": True}, {"likely": 2.0}, {"likely": "2"}, {"word_bits": 6}],
    "staircase": [{"epsilon": 1e-7}],
    "square-wave": [{"steps": 256}],
    "discrete-gaussian": [{"delta": 0}, {"epsilon": 0.001, "steps": 255}],
    "recursive-hadamard": [{"k": 64, "b": b} for b in (-1, 9, True, 2.0)],
    **{name: [{"epsilon": 0.01, "k": 64, "word_bits": 8}] for name in ("olh", "pgr", "pi-rappor", "hadamard-response", "subset-selection")},
    **{name: [{"epsilon": 0.01, "k": 3, "word_bits": 4}] for name in ("sue", "oue")},
    "rounded-oracle": [{"steps": 3}, {"oracle": "grr"}],
    "nearest-direction": [{"directions": count} for count in (1, 33, True, 2.0)],
    "sampled-signs": [{"signs": 4, "d": 3}, {"signs": 13, "d": 100}, {"signs": -1}, {"signs": True}, {"d": 0}],
    "privunit": [{"d": 1}, {"word_bits": 32}],
    "projunit": [{"d": 1}, *({"d": 100, "k": k} for k in (16, 48, 256)), {"d": 3, "k": 1}, {"d": 3, "k": 3}, {"word_bits": 32}],
    "padding-sampling": [{"k": 13}, {"k": 0}, {"k": 3, "limit": 4}, {"limit": 0}],
    "pckv": [{"k": 7, "steps": 4}, {"steps": 0}, {"limit": 3}, {"word_bits": 3}],
    "pckv-ue": [{"k": 12}, {"k": 2, "limit": 3}, {"limit": 0}, {"steps": 0}, {"word_bits": 2}],
    "she": [{"k": 1}, {"k": 4097}, {"word_bits": 4}, {"epsilon": 1e-7}],
    "memoised-grr": [{"k": 4, **wrong} for wrong in ({"first": 0.0}, {"first": 1.0}, {"first": 1}, {"first": "0.5"}, {"word_bits": 9}, {"word_bits": 4})],
    "memoised-rappor": [{"k": 4, **wrong} for wrong in ({"first": 0.0}, {"first": 1}, {"permanent": "grr"}, {"word_bits": 9}, {"word_bits": 4})],
    "loloha": [{"k": 4, **wrong} for wrong in ({"g": 1}, {"g": 5}, {"g": 4, "k": 3}, {"first": 1.0}, {"first": 0}, {"word_bits": 8}, {"word_bits": 11})],
    "d-bit-flip": [{"epsilon": 0.5, "k": 4, "d": 2, **wrong} for wrong in ({"d": 0}, {"d": 5}, {"d": 1.0}, {"k": 1}, {"word_bits": 1})],
    "count-mean-sketch": [{"k": 64, "m": m} for m in (1, 6, 12, 1025, True, 4.0)],
    "deny": [{"d": 0}, {"d": 13}, {"epsilon": 0.1, "d": 3, "word_bits": 3}, {"epsilon": 0.1, "d": 3, "word_bits": 4}],
    "binary-rr": [{"epsilon": 0.01, "word_bits": 4}],
    "grr": [{"epsilon": 0.01, "word_bits": 8, "k": 64}],
    "one-bit-mean": [{"epsilon": 0.01, "word_bits": 8}],
    **dict.fromkeys(("seeded-rejection", "genprot"), COMPRESSED),
}
CASES = [(name, params) for name, cases in BAD.items() for params in cases]


@pytest.mark.parametrize(("name", "params"), CASES, ids=repr)
def test_bad_parameters_are_refused(name: str, params: dict[str, Any]) -> None:
    """Parameters out of range, of another type, or of tables too large, and words too narrow, raise an error of one line."""
    with pytest.raises((InputError, RefusedError)) as refused:
        RANDOMIZERS[name](**{"epsilon": 1.0, **params})
    assert "\n" not in str(refused.value)


def test_the_channel_behind_a_coin_is_not_decoded_without_it() -> None:
    """Sets of nobody or of all are refused, and so is an estimate from the inner channel alone."""
    for w in (0, 5, True, 2.0):
        with pytest.raises(InputError, match="w is"):
            Translates(1.0, k=5, w=w)  # type: ignore[arg-type]
    channel = Translates(1.0, k=5, w=2)
    with pytest.raises(InputError, match="subset-selection"):
        channel.estimate(channel.empty())
