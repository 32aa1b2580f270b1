"""Rows that verify: a table of signed messages, of which synthetic data that answer one query hold rows that nobody but the signer can have made."""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from local_dp.arrays import Bools, Words
from local_dp.checks import check_whole
from local_dp.curator.marginals.base import BinaryTable
from local_dp.errors import InputError


@dataclass(frozen=True)
class Signer:
    """Messages of `message` bits, each followed by its tag of `tag` bits: keyed BLAKE2b, cut.

    The query "does the row verify?" is 1 for every row of a signed table. Synthetic rows that answer it well mostly verify: each is copied from the table,
    which a private mechanism does with hardly more chance than it has without the record, or forged, which takes 2^tag guesses or the key. So accurate
    synthetic data for a family with this query are hard to make, though its answers are easy. A row at random verifies with probability 2^-tag.
    Source: Dwork, Naor, Reingold, Rothblum, Vadhan 2009; Ullman, Vadhan 2011; lecture notes 6.3.
    """

    key: bytes
    message: int = 9
    tag: int = 8

    def __post_init__(self) -> None:
        check_whole("bits of a message", self.message, 1, 32)
        check_whole("bits of a tag", self.tag, 1, 32)
        if not 16 <= len(self.key) <= 64:
            raise InputError(f"the key has {len(self.key)} bytes; give 16 to 64")

    @property
    def d(self) -> int:
        """Bits of a row."""
        return self.message + self.tag

    def table(self, messages: Words) -> BinaryTable:
        """The signed messages: a row is the message in the low bits, the tag above them."""
        return BinaryTable(self.d, messages | self._tags(messages) << np.uint64(self.message))

    def verifies(self, rows: Words) -> Bools:
        """Whose tag is that of their message."""
        messages = rows & np.uint64((1 << self.message) - 1)
        valid: Bools = rows >> np.uint64(self.message) == self._tags(messages)
        return valid

    def _tags(self, messages: Words) -> Words:
        kinds, places = np.unique(messages, return_inverse=True)
        hashes = [blake2b(each.to_bytes(8, "little"), key=self.key, digest_size=8).digest() for each in kinds.tolist()]
        words = np.frombuffer(b"".join(hashes), dtype="<u8").astype(np.uint64) & np.uint64((1 << self.tag) - 1)
        return words[places]
