"""What masked-parity clients hold under each hypothesis, as the randomizers of signed symbols take it: how often each symbol, and with which mean sign."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.masked_parity import best_size
from local_dp.cube import bent_dual, parity, places_of
from local_dp.masked.population import NULL_SHARE
from local_dp.masked.queries import MaskedBent, MaskedList
from local_dp.randomizers.frequencies.hadamard import SignedHadamard
from local_dp.randomizers.frequencies.signed import SignedBlocks, SignedOracle

Law: TypeAlias = tuple[Floats, Floats]  # Pr[symbol] and E[sign 1(symbol)], shape (symbols, hypotheses)


def signed_oracle(epsilon: float, k: int, size: int) -> SignedOracle:
    """Blocks of `size` of k signed symbols, or one hashed bit where it is 0."""
    return SignedBlocks(epsilon, k=k, size=size) if size else SignedHadamard(epsilon, k=k)


def best_signed_oracle(epsilon: float, k: int, share: float, null: float) -> SignedOracle:
    """The one of least variance, for symbols that `share` of the clients hold each, where the share `null` holds none."""
    return signed_oracle(epsilon, k, best_size(epsilon, k, share, null)[0])


def index_oracle(epsilon: float, d: int, one_bit: bool = False) -> SignedOracle:
    """For a masked index: each of d positions in the half of the examples that have b = 1; `one_bit` asks for one hashed bit, whatever tells most."""
    return signed_oracle(epsilon, d, 0) if one_bit else best_signed_oracle(epsilon, d, (1 - NULL_SHARE) / d, NULL_SHARE)


def mask_oracle(epsilon: float) -> SignedOracle:
    """For one masked parity: the half of the examples that have b = 0."""
    return best_signed_oracle(epsilon, 1, NULL_SHARE, 1 - NULL_SHARE)


def list_question(epsilon: float, d: int, r: int, free: int, one_bit: bool = False) -> tuple[MaskedList, SignedOracle]:
    """A list of parities and the positions asked beside it: those that are open; all of them where one hashed bit tells most, for it has room for all."""
    query = MaskedList(d, r, free, free)
    k, open_share = query.domain.high, query.positions / d
    size, _ = best_size(epsilon, k, NULL_SHARE / query.listed, (1 - NULL_SHARE) * (1 - open_share))
    if size and not one_bit:
        return query, signed_oracle(epsilon, k, size)
    query = MaskedList(d, r, free, (1 << d) - 1)
    return query, signed_oracle(epsilon, query.domain.high, 0)


def signs_of(bits: int, vectors: Sequence[int]) -> Floats:
    """(-1)^(r_j) for each bit j of each vector r, shape (bits, number of vectors)."""
    return np.array([[1.0 - 2.0 * (r >> place & 1) for r in vectors] for place in range(bits)]).reshape(bits, len(vectors))


def index_law(d: int, vectors: Sequence[int]) -> Law:
    """Of `MaskedIndex`, for each vector r."""
    return _law(np.zeros((0, len(vectors))), signs_of(d, vectors), d)


def list_law(query: MaskedList) -> Law:
    """Of `MaskedList`: for a = 0 under each of its vectors, then for a = 1."""
    listed = np.arange(query.listed, dtype=np.uint32)
    signs = 1.0 - 2.0 * parity(listed[:, None] & listed[None, :])
    positions = signs_of(query.d, query.vectors())[list(places_of(query.asked))]
    return _law(np.concatenate([signs, -signs], axis=1), np.tile(positions, 2), query.d)


def mask_law(query: MaskedBent, r: int) -> Law:
    """Of the one question that serves every parity, for a = 0 and a = 1 under one vector r."""
    bent = query.d - query.told
    odd = parity(np.arange(query.listed, dtype=np.uint64) & np.uint64(r >> bent)) ^ np.uint8(bent_dual(bent, r))
    signs = 2.0 ** -(bent // 2) * (1.0 - 2.0 * odd.astype(np.float64))
    return _law(np.stack([signs, -signs], axis=1), np.tile(signs_of(query.d, [r]), 2), query.d)


def _law(listed: Floats, positions: Floats, d: int) -> Law:
    """The half with b = 0 is spread over the symbols that are listed, the half with b = 1 over d positions, of which some are asked for."""
    shares = np.repeat([NULL_SHARE / max(len(listed), 1), (1 - NULL_SHARE) / d], [len(listed), len(positions)])[:, None]
    signs = np.concatenate([listed, positions])
    return np.broadcast_to(shares, signs.shape), shares * signs
