"""The conformance suite for randomizers, built-in ones and a package's own: `conform(MyRandomizer(epsilon, ...))` in its tests.

Each check raises AssertionError that says what broke.
"""

from local_dp.conformance.channels import conform_channel
from local_dp.conformance.composed import conform_bits, conform_coins, conform_places, conform_with_coin
from local_dp.randomizers.bit_vector import BitVector
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.per_coin import PerCoin
from local_dp.randomizers.places import PlaceVector
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.with_coin import WithCoin
from local_dp.verification.common import SLACK


def conform(randomizer: Randomizer, slack: float = SLACK, exhaustive: bool = True, runs: bool = True, symbols: bool = True) -> None:
    """All checks of one randomizer, by the evidence of its loss.

    Of finite channels: `exhaustive` False drops the enumeration of every narrow word, for those that need wide ones; `runs` False the walk over the
    boundaries at full width, for samplers that cut a report's words into several runs. One of the two is always made. `symbols` False drops the check of
    the estimate, for randomizers that estimate something else than the average value or the symbols' shares, and test that themselves.
    """
    if isinstance(randomizer, FiniteChannel):
        conform_channel(randomizer, slack, exhaustive, runs, symbols)
    elif isinstance(randomizer, BitVector):
        conform_bits(randomizer, slack, symbols)
    elif isinstance(randomizer, PlaceVector):
        conform_places(randomizer, slack, symbols)
    elif isinstance(randomizer, WithCoin):
        conform(randomizer.coined, slack, exhaustive, runs, symbols)
        conform_with_coin(randomizer, slack, symbols)
    elif isinstance(randomizer, PerCoin):
        conform_coins(randomizer, slack, symbols)
    else:
        raise AssertionError(f"{randomizer.name} is {randomizer.evidence}: its loss cannot be enumerated, so it cannot conform")
