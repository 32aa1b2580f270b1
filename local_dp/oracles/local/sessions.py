"""Who has spoken in a session, so that nobody speaks twice: what a client keeps beside its ledger."""

from collections.abc import Iterable

import numpy as np

from local_dp.arrays import Bools, Ints, Words


class Spoken:
    """For each session, one bit a client: whether it has answered one of its rounds by something else than silence.

    It depends on records, so the clients keep it to themselves: no refusal, charge or message depends on it. Chunks of clients that share no byte may be noted
    by several threads at a time, once there is room for them.
    """

    def __init__(self) -> None:
        self._bits: dict[str, Words] = {}

    def copy(self, sessions: Iterable[str]) -> "Spoken":
        """Another one, of these sessions alone."""
        twin = Spoken()
        twin._bits = {session: self._bits[session].copy() for session in sessions if session in self._bits}
        return twin

    def reserve(self, session: str, clients: int) -> None:
        """Makes room for the clients 0..clients."""
        held = self._bits.get(session, np.zeros(0, dtype=np.uint8))
        if 8 * len(held) < clients:
            self._bits[session] = np.concatenate([held, np.zeros(-(-clients // 8) - len(held), dtype=np.uint8)])

    def once_only(self, session: str, silence: int, start: int, values: Ints) -> Ints:
        """The values that the clients from `start` on may report: silence for each that has spoken. Those that speak now are noted. No branch on any of it."""
        first, stop = start // 8, start + len(values)
        self.reserve(session, stop)
        bytes_of = self._bits[session][first : -(-stop // 8)]
        bits = np.unpackbits(bytes_of, bitorder="little").view(np.bool_)
        spoken: Bools = bits[start - 8 * first : stop - 8 * first]
        told: Ints = np.where(spoken, values.dtype.type(silence), values)
        spoken |= told != silence
        bytes_of[:] = np.packbits(bits, bitorder="little")
        return told

    def bits(self, session: str) -> bytes:
        """Of all clients of a session, eight to a byte, the first in its lowest bit."""
        return self._bits[session].tobytes()

    def restore(self, session: str, bits: bytes) -> None:
        self._bits[session] = np.frombuffer(bits, dtype=np.uint8).copy()
