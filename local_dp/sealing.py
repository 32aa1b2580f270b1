"""Signed envelopes: 64 bytes of Ed25519 signature before each message, which is read only if its
speaker signed it.

The signature covers a tag, the digest of the run (its name and its server's key), the topic and the
message: it is invalid elsewhere. Keys are 32 bytes.
"""

import os
from collections.abc import Callable
from hashlib import blake2b
from typing import TypeAlias

from nacl.bindings import crypto_sign, crypto_sign_open, crypto_sign_seed_keypair
from nacl.exceptions import BadSignatureError

from local_dp.errors import ForgedError
from local_dp.wire import MAX_BYTES

TAG = b"local-dp envelope 1\0"
SIGNATURE = 64
KEY = 32
Speaker: TypeAlias = Callable[[str], bytes | None]  # topic -> the public key of its speaker


class Envelopes:
    """One party's envelopes in a run. These are unsigned: everybody on the broker may speak for
    anybody."""

    signed = False

    def seal(self, topic: str, message: bytes) -> bytes:
        return message

    def open(self, topic: str, envelope: bytes) -> bytes:
        """The message. Raises ForgedError, before anything of it is read, unless the topic's
        speaker signed it."""
        return envelope


UNSIGNED = Envelopes()


class Party(Envelopes):
    """Signs with the private key `own` in the run named `run` of the server with the public key
    `server`; `speaker` gives the signer of each topic."""

    signed = True

    def __init__(self, run: str, server: bytes, own: bytes, speaker: Speaker) -> None:
        self._head = TAG + blake2b(server + run.encode(), digest_size=32).digest()
        self._own = crypto_sign_seed_keypair(own)[1]
        self._speaker = speaker
        # of each speaker the digest of its key and of the last hello that it signed
        self._hellos: dict[str, bytes] = {}

    @classmethod
    def member(cls, run: str, server: bytes, own: bytes) -> "Party":
        """A member accepts its server's messages alone."""
        return cls(run, server, own, lambda topic: server)

    @classmethod
    def server(cls, run: str, own: bytes, speaker: Speaker) -> "Party":
        """The server accepts each member's messages under its own topics."""
        return cls(run, public(own), own, speaker)

    def seal(self, topic: str, message: bytes) -> bytes:
        signed: bytes = crypto_sign(self._statement(topic, message), self._own)
        return signed[:SIGNATURE] + message

    def open(self, topic: str, envelope: bytes) -> bytes:
        key = self._speaker(topic)
        # libsodium reads 32 bytes of a key, however long it is
        if key is None or len(key) != KEY or not SIGNATURE < len(envelope) <= SIGNATURE + MAX_BYTES:
            raise ForgedError("no signed message of a speaker of this topic")
        message = envelope[SIGNATURE:]
        digest = blake2b(key + envelope, digest_size=16).digest() if "/hello/" in topic else b""
        if digest and self._hellos.get(topic) == digest:
            return message  # the same bytes under the same topic were verified before
        try:
            crypto_sign_open(envelope[:SIGNATURE] + self._statement(topic, message), key)
        except BadSignatureError:
            raise ForgedError(
                "a message without its speaker's signature for this run and topic"
            ) from None
        if digest:
            self._hellos[topic] = digest
        return message

    def _statement(self, topic: str, message: bytes) -> bytes:
        where = topic.encode(errors="surrogatepass")
        return self._head + len(where).to_bytes(4) + where + message


def new_key() -> bytes:
    """A private key, from the operating system's entropy."""
    return os.urandom(KEY)


def public(private: bytes) -> bytes:
    """The public key of a private one."""
    key: bytes = crypto_sign_seed_keypair(private)[0]
    return key
