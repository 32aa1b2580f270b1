"""What answers of two steps share: words of which half lasts under a label, and how loud the second step may be."""

from collections.abc import Callable
from fractions import Fraction

from local_dp.arrays import Words
from local_dp.checks import check_share
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon
from local_dp.noise import Draw, Noise
from local_dp.randomizers.randomizer import Randomizer

Odds = tuple[float, float]


def first_growth(randomizer: Randomizer, first: float) -> Fraction:
    """e to the share `first` of its epsilon, which one report alone may tell. Raises InputError for a share or for words that two steps cannot have."""
    if type(first) is not float:
        raise InputError(f"first is {first!r}; give a number between 0 and 1")
    check_share("first", first)
    if randomizer.word_bits % 2:
        raise InputError(f"word_bits is {randomizer.word_bits}; each step has half of a word, so give an even number")
    return exp_epsilon(max(1, int(Fraction(repr(first)) * randomizer.nano)))


def least_weight(most: int, keeps: Callable[[int], bool]) -> int:
    """The least weight from 1 to `most` that keeps the ratio of one report, if more keeps it better; `most`, which tells nothing, if none does."""
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high


def two_step_words(randomizer: Randomizer, noise: Noise, which: Draw, start: int, stop: int) -> Words:
    """Words whose leading half, under a label, is that of the label, and whose rest is of this ask of this round: flat, `randomizer.words` a client."""
    half, many = randomizer.word_bits // 2, randomizer.words
    drawn = (noise.words(each, start * many, stop * many, 32).astype(f"<u{randomizer.width // 8}") for each in (which, Draw(which.round, which.ask)))
    lasting, fresh = (words >> words.dtype.type(32 - half) for words in drawn)
    words: Words = (lasting << lasting.dtype.type(half)) | fresh
    return words
