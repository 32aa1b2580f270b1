"""Every randomizer by name: the built-in ones, and those of installed packages."""

from local_dp.randomizers.randomizer import Randomizer
from local_dp.registry import Registry

_PARTS = frozenset({"loloha-code", "noisy-bit", "signed-place", "signed-places", "translates"})  # channels inside others
_FILES = ("randomizers/signs/*.py", "randomizers/*/*.py", "randomizers/*.py")
RANDOMIZERS = Registry("randomizer", "local_dp.randomizers", Randomizer, _FILES, _PARTS)
