"""Randomizers of a signed symbol or nothing: they estimate the means E[sign 1(symbol = j)] of k
symbols."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.checks import check_built
from local_dp.cube import parity, walsh_hadamard
from local_dp.domains import Domain, signed_symbols
from local_dp.errors import InputError
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.base import steady_estimate
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.tallies import Estimate, Tally


@dataclass(frozen=True, kw_only=True)
class SignedOracle(FiniteChannel):
    """A finite channel of +-1 of k symbols, or null. 1 <= k <= 4096."""

    k: int = 1

    @property
    def domain(self) -> Domain:
        return signed_symbols(self.k)

    @property
    @abstractmethod
    def gain(self) -> float:
        """By how much a report counts towards a mean, where it counts."""

    @abstractmethod
    def estimate(self, tally: Tally, null_share: float = 0.0) -> Estimate:
        """The k signed means, shape (k,), unbiased for every fixed `null_share`, the assumed share
        of clients without a symbol."""

    @abstractmethod
    def mixture(self, present: Floats, lean: Floats) -> Floats:
        """Pr[report | cell] of a client with symbol j with probability present[j] and the mean sign
        lean[j], both of shape (k, ...).

        Shape (cells, alphabet, ...), exact for this sampler's thresholds. O(cells * alphabet) and a
        Walsh-Hadamard transform for each law.
        """

    @staticmethod
    def example_params(size: int) -> dict[str, int]:
        return {"k": size}

    def log_likelihood(self, tally: Tally, present: Floats, lean: Floats) -> Floats:
        """ln Pr[reports], up to a constant, under each law of `mixture`. Raises InputError for a
        tally without reports."""
        return np.tensordot(tally.weights, np.log(self.mixture(present, lean)), axes=2)


@dataclass(frozen=True, kw_only=True)
class SignedBlocks(SignedOracle):
    """Names the block of `size` symbols of the client's symbol, and sign * H[l, place in the block]
    for the public row l of a Hadamard matrix; or null.

    It is randomized response over G = ceil(k / size) blocks with two signs each, and null, true
    with p = E / (E + 2 G). One block is three-valued response on the hashed sign; blocks of one
    symbol need no coin. Privacy: T / s <= e^eps for every row. Utility: each mean has variance (((p
    - q) Pr[block] + 2 q) / (p
    - q)^2 - m^2) / n (`bounds.masked_parity.blocks_variance`). Cost: log2 (2 G + 1) bits, one word.
      `size` is a power of two below 2 k.
    """

    name = "signed-blocks"
    summary = "Names the block of a signed symbol, and one randomized sign"
    source = (
        "Chen, Kairouz, Ozgur 2020 (blocks of a Hadamard matrix), for signed symbols as in masked "
        "parity"
    )
    size: int = 1

    @staticmethod
    def example_params(size: int) -> dict[str, int]:
        return {"k": size, "size": 1 << max(0, (size // 4).bit_length() - 1)}

    def prepare(self) -> None:
        check_built(self._response)

    def _fits(self, bits: int) -> bool:
        self.check()
        return GRR(self.epsilon, k=self.alphabet).word_bits == bits

    def check(self) -> None:
        signed_symbols(self.k)
        if (
            type(self.size) is not int
            or not 1 <= self.size < 2 * self.k
            or self.size.bit_count() != 1
        ):
            raise InputError(
                f"size is {self.size!r}; give the symbols of a block, a power of two below "
                f"{2 * self.k}"
            )

    @cached_property
    def _response(self) -> GRR:
        return GRR(self.epsilon, word_bits=self.word_bits, k=self.alphabet)

    @property
    def blocks(self) -> int:
        """G."""
        return -(-self.k // self.size)

    @property
    def alphabet(self) -> int:
        return 2 * self.blocks + 1

    @property
    def cells(self) -> int:
        return self.size

    def encode(self, values: Ints, cells: Ints) -> Ints:
        """The true report: 2 g for + and 2 g + 1 for - in block g, 2 G for null."""
        symbol = np.abs(values.astype(np.int64)) - 1
        minus = parity(cells.astype(np.uint32) & (symbol & self.size - 1).astype(np.uint32)) ^ (
            values < 0
        )
        return np.where(values == 0, 2 * self.blocks, 2 * (symbol // self.size) + minus)

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return self._response.respond(self.encode(values, cells), words, cells)

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        return self._response.weight(reports, self.encode(values, cells), cells)

    @property
    def gain(self) -> float:
        p, q = self._response.chances
        return 1 / (p - q)

    def estimate(self, tally: Tally, null_share: float = 0.0) -> Estimate:
        """The k signed means, shape (k,), with standard errors measured from the same reports. Null
        has a report of its own, whatever `null_share` is."""
        n = tally.answered
        signs = tally.counts[:, :-1].reshape(self.size, self.blocks, 2)
        means = walsh_hadamard((signs[:, :, 0] - signs[:, :, 1]) * self.gain / n)
        squares = np.repeat(signs.sum(axis=(0, 2)) * self.gain**2 / n, self.size)
        mean, square = means.T.reshape(-1)[: self.k], squares[: self.k]
        return steady_estimate(mean, square, (-self.gain, self.gain), n)

    def mixture(self, present: Floats, lean: Floats) -> Floats:
        p, q = self._response.chances
        hashed = walsh_hadamard(np.moveaxis(self._by_block(lean), 1, 0))  # row, block, ...
        block = self._by_block(present).sum(axis=1)
        signs = np.stack([block + hashed, block - hashed], axis=2) / 2
        null = np.broadcast_to(1 - present.sum(axis=0), (self.size, 1, *present.shape[1:]))
        truth = np.concatenate(
            [signs.reshape(self.size, 2 * self.blocks, *present.shape[1:]), null], axis=1
        )
        return q + (p - q) * truth

    def _by_block(self, means: Floats) -> Floats:
        """Of shape (blocks, size, ...), the last block filled up with zeros."""
        full = np.zeros((self.blocks * self.size, *means.shape[1:]))
        full[: self.k] = means
        return full.reshape(self.blocks, self.size, *means.shape[1:])
