"""What the clients of a run in memory accept: as real clients would refuse, unless told otherwise aloud."""

from local_dp.errors import RefusedError
from local_dp.oracles.local.asked import LocalQuery
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.with_coin import without_coin
from local_dp.verification.gate import verify


class Verified:
    """Verifies every randomizer before anybody answers by it, as a client does (`local_dp.clients.role`).

    `allowed` is the clients' own list of names (None: all). With `anyway` a randomizer that fails is used all the same, and its failure is kept in `failures`.
    """

    def __init__(self, allowed: tuple[str, ...] | None, anyway: bool) -> None:
        self.allowed, self.anyway = allowed, anyway
        self.failures: list[str] = []

    def check(self, queries: tuple[LocalQuery, ...]) -> None:
        """Raises RefusedError as a client would."""
        for randomizer in {id(query.randomizer): query.randomizer for query in queries}.values():
            name = without_coin(randomizer).name
            if self.allowed is not None and name not in self.allowed:
                raise RefusedError("not-allowed", f"randomizer {name!r} is not on the clients' list: {', '.join(sorted(self.allowed))}")
            self._verify(randomizer)

    def _verify(self, randomizer: Randomizer) -> None:
        try:
            verify(randomizer)
        except RefusedError as error:
            if not self.anyway:
                raise RefusedError(error.code, f"{error}; a simulation may use it all the same (unverified)") from None
            if str(error) not in self.failures:
                self.failures.append(str(error))
