"""What may happen, as data: an operation is a name and two numbers, which choose among whatever is there when its turn comes."""

import random
from typing import TypeAlias

Operation: TypeAlias = tuple[str, int, int]

WEIGHTS = {  # how often each is drawn
    "deliver": 46,  # the oldest message
    "reorder": 10,  # any message
    "tick": 16,  # time passes, and the server looks what is due
    "open": 5,  # the server begins a round, if none is open
    "drop": 3,
    "duplicate": 4,
    "delay": 3,  # behind all others
    "replay": 3,  # any message that was ever sent
    "corrupt": 3,  # a field or a byte of a message
    "equivocate": 2,  # a request that was sent, with something changed
    "hostile": 3,  # a request that no honest server sends
    "crash": 1,  # a client, at once
    "crash-before": 1,  # a client, before its next commit
    "crash-after": 1,  # a client, after its next commit and before it sends
    "crash-sending": 1,  # a client, after the first of its next replies
    "restart": 3,  # every client that is down, with what its store kept
    "server-restart": 1,
}
_NAMES, _WEIGHTS = tuple(WEIGHTS), tuple(WEIGHTS.values())


def drawn(seed: int, count: int) -> list[Operation]:
    chance = random.Random(seed)
    return [(name, chance.getrandbits(16), chance.getrandbits(16)) for name in chance.choices(_NAMES, _WEIGHTS, k=count)]
