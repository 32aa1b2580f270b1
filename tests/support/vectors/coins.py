"""Public coins: the 64-bit word that everybody with a request computes for each client."""

from itertools import product

from local_dp.noise import public_coins, stream_key
from tests.support.vectors.files import Case, File

KEYS = {
    "zeros": bytes(16),
    "ones": b"\xff" * 16,
    "counting": bytes(range(16)),
    "a server's": stream_key("coins ask 0", 1, 1),
}
CLIENTS = (0, 1, 2, 3, 4, 5, 999, 1 << 32, (1 << 48) - 1)


def cases() -> dict[str, Case]:
    return {
        f"{name}, client {client}": {"key": key.hex(), "client": client}
        for (name, key), client in product(KEYS.items(), CLIENTS)
    }


def expected(given: Case) -> Case:
    return {
        "coin": str(
            int(public_coins(bytes.fromhex(given["key"]), given["client"], given["client"] + 1)[0])
        )
    }


COINS = File(
    "coins",
    (
        "The public coin of a client, from the field `coins` of an ask: a 64-bit word of Philox "
        "4x64-10."
    ),
    cases,
    expected,
)
