"""Queries of attacks: the secret bits of a public subset of rows, and ciphertexts under the users'
own keys."""

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np

from local_dp.arrays import Bools, Ints
from local_dp.checks import check_built, check_whole
from local_dp.domains import symbols
from local_dp.errors import InputError
from local_dp.queries.query import Query
from local_dp.records import Records

ROW, SECRET = "row", "secret"


def _bits_of(what: str, digits: str) -> Ints:
    """The bits of hexadecimal digits, and a 0 after them. Raises InputError."""
    try:
        octets = bytes.fromhex(digits)
    except (TypeError, ValueError):
        raise InputError(
            f"the {what} is {digits!r:.40}; give its bits as pairs of hexadecimal digits"
        ) from None
    return np.append(np.unpackbits(np.frombuffer(octets, dtype=np.uint8)), np.uint8(0))


@dataclass(frozen=True)
class Subset(Query):
    """1 where the record's `secret` is 1 and its public `row` is in the subset, else 0: a record is
    (i, x_i), and the query's sum over n rows is <q, x>.

    `members` is the subset's bits in hexadecimal, row 0 first, eight rows to two digits; rows
    beyond them are not in it.
    """

    name = "subset"
    summary = "Asks whether the row of a secret is in a subset"
    looked_up = "members"
    domain = symbols(2)
    members: str

    def check(self) -> None:
        check_built(self._bits)

    @classmethod
    def of(cls, members: Bools) -> "Subset":
        """The subset of the rows i with `members[i]`, shape (n,)."""
        return cls(np.packbits(members).tobytes().hex())

    @cached_property
    def _bits(self) -> Ints:
        """Of each row and of one beyond, which is in no subset."""
        return _bits_of("subset", self.members)

    def __call__(self, records: Records) -> Ints:
        rows = np.minimum(records.words(ROW), len(self._bits) - 1).astype(np.intp)
        return np.asarray(self._bits[rows] & (records.whole(SECRET) == 1))


def secret_bits(bits: Bools) -> Records:
    """The table of the secret bits x_i with their public rows i, shape (n,)."""
    return Records({ROW: np.arange(len(bits), dtype=np.int64), SECRET: bits.astype(np.uint8)})


USER, KEY = "user", ("key0", "key1", "key2", "key3")
BLOCK = 512  # bits of one hash


def keys_of(generator: np.random.Generator, users: int) -> Records:
    """A table of keys of 256 bits, one a user: their numbers and four words each."""
    words = {name: generator.integers(0, 1 << 64, users, dtype=np.uint64) for name in KEY}
    return Records({USER: np.arange(users, dtype=np.int64), **words})


def pads(keys: Records, first: int, stop: int) -> Bools:
    """Bits `first` to `stop` of each key's stream, shape (n, stop - first): keyed BLAKE2b of the
    number of a block of 512 bits."""
    blocks = range(first // BLOCK, -(-stop // BLOCK))
    secrets = [
        row.tobytes() for row in np.stack([keys.words(name).astype("<u8") for name in KEY], axis=1)
    ]
    stream = b"".join(
        blake2b(block.to_bytes(8, "little"), key=key).digest()
        for key in secrets
        for block in blocks
    )
    bits = np.unpackbits(np.frombuffer(stream, dtype=np.uint8)).reshape(
        len(keys), len(blocks) * BLOCK
    )
    skip = first - first // BLOCK * BLOCK
    return np.asarray(bits[:, skip : skip + stop - first].astype(np.bool_))


@dataclass(frozen=True)
class Decrypted(Query):
    """What the holder of a key reads in ciphertext `number`: the ciphertext's bit at the user's
    number, masked by that bit of the key's stream.

    `bits` is the ciphertext in hexadecimal, user 0 first; a user beyond it reads the mask. A number
    is used once: a one-time pad of pseudorandom bits.
    """

    name = "decrypted"
    summary = "Gives the bit that a key reads in a ciphertext"
    domain = symbols(2)
    number: int
    bits: str

    def check(self) -> None:
        check_whole("the ciphertext's number", self.number, 0, 1 << 32)
        check_built(self._letters)

    @cached_property
    def _letters(self) -> Ints:
        return _bits_of("ciphertext", self.bits)

    def __call__(self, records: Records) -> Ints:
        users = np.minimum(records.words(USER), len(self._letters) - 1).astype(np.intp)
        return np.asarray(self._letters[users] ^ pads(records, self.number, self.number + 1)[:, 0])


def encrypted(keys: Records, messages: Bools) -> tuple[Decrypted, ...]:
    """d ciphertexts of a bit to each of n users, `messages` of shape (n, d), as the queries that
    decrypt them."""
    masked = messages ^ pads(keys, 0, messages.shape[1])
    return tuple(
        Decrypted(number, np.packbits(letters).tobytes().hex())
        for number, letters in enumerate(masked.T)
    )
