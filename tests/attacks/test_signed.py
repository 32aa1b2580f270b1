"""Signed rows verify, and others seldom do."""

from hashlib import blake2b

import numpy as np
import pytest

from local_dp.attacks.tracing import Signer
from local_dp.errors import InputError

KEY = bytes(range(32))


def test_the_signers_rows_verify_and_no_others_do() -> None:
    """Over all 2^12 rows of 6 + 6 bits: of each message one tag, that of the hash computed by hand; under another key about as many as by chance."""
    signer, rows = Signer(KEY, 6, 6), np.arange(1 << 12, dtype=np.uint64)
    valid = rows[signer.verifies(rows)]
    assert sorted((valid & np.uint64(63)).tolist()) == list(range(64))
    by_hand = {m | (int.from_bytes(blake2b(m.to_bytes(8, "little"), key=KEY, digest_size=8).digest(), "little") % 64) << 6 for m in range(64)}
    assert set(valid.tolist()) == by_hand
    messages = np.array([3, 3, 60], dtype=np.uint64)
    table = signer.table(messages)
    assert signer.verifies(table.rows).all()
    assert (table.rows & np.uint64(63)).tolist() == [3, 3, 60]
    assert Signer(KEY[::-1], 6, 6).verifies(valid).sum() < 8


def test_bad_input_gets_a_line() -> None:
    for wrong, said in (
        ({"key": b"short"}, "the key has 5 bytes"),
        ({"key": KEY, "message": 0}, "bits of a message"),
        ({"key": KEY, "tag": 33}, "bits of a tag"),
    ):
        with pytest.raises(InputError, match=said):
            Signer(**wrong)
