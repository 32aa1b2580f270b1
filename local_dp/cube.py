"""The algebra of the cube {0,1}^d: parities, characters, Walsh-Hadamard transforms, bent
functions."""

from functools import cache

import numpy as np

from local_dp.arrays import Bools, Floats, Ints, Words

_LONG = 1 << 16  # of a transform


def bent_dual(d: int, r: int) -> int:
    """<u, v> for the halves u, v of r: the bent function's coefficient at r is 2^-floor(d/2)
    (-1)^(this). The function is its own dual."""
    half, low = bent_halves(d)
    return (r & low & r >> half).bit_count() & 1


def sign(bits: Ints | Bools) -> Ints:
    """(-1)^bit, in int8: signed before 1 - 2 * bit, which would wrap in uint8."""
    return np.asarray(np.int8(1) - np.int8(2) * bits.astype(np.int8))


def character(r: int, x: Words) -> Ints:
    """chi_r(x) = (-1)^<r, x> of every x."""
    return sign(parity(x & np.uint64(r)))


def places_of(bits: int) -> tuple[int, ...]:
    """The positions of the set bits, ascending."""
    return tuple(place for place in range(bits.bit_length()) if bits >> place & 1)


def bent_halves(d: int) -> tuple[int, int]:
    """The half width m and the low-half mask 2^m - 1 of the bent function's variables: the first 2
    m = 2 floor(d / 2) of d."""
    half = d // 2
    return half, (1 << half) - 1


def bent_coset(x: Words, k: int, s: int) -> Ints:
    """The inner-product bent function of x_0..x_{k-1}, k even, times the parity s of the other
    variables: +1 or -1 for every x."""
    half, low = bent_halves(k)
    # bit l is x_l x_{l + k/2}
    products = x & (x >> np.uint64(half)) & np.uint64(low)
    return sign(parity(products)) * character(s << k, x)


def bent_coset_coefficient(r: int, k: int, s: int) -> float:
    """Its Walsh coefficient E[f(x) (-1)^<r, x>]: +-2^(-k/2) for the 2^k strings r that end in s,
    and 0 for all others."""
    return (1 - 2 * bent_dual(k, r)) / 2.0 ** (k // 2) if r >> k == s else 0.0


def walsh_hadamard(values: Floats | Ints) -> Floats:
    """The unnormalised Walsh-Hadamard transform along the first axis: entry j is the sum over l of
    (-1)^popcount(l & j) values[l]. O(K log K).

    Whole numbers are transformed exactly where the sum of their absolute values is below 2^53.
    """
    # sums of whole numbers are exact in any order: a third of the time
    if values.ndim == 1 and len(values) >= _LONG and values.dtype.kind == "i":
        rotation = values.astype(np.float64)
        for bits in _factors(len(values).bit_length() - 1):
            rotation = (rotation.reshape(1 << bits, -1).T @ _hadamard(bits)).reshape(-1)
        return rotation
    here = np.array(values, dtype=np.float64)
    half = 1
    spare = np.empty_like(here)
    while half < len(here):
        pairs, sums = (
            each.reshape(len(here) // (2 * half), 2, half, *here.shape[1:])
            for each in (here, spare)
        )
        np.add(pairs[:, 0], pairs[:, 1], out=sums[:, 0])
        np.subtract(pairs[:, 0], pairs[:, 1], out=sums[:, 1])
        here, spare, half = spare, here, 2 * half
    return here


def _factors(bits: int) -> list[int]:
    """Parts of about four bits: one step of the transform turns the first bits of an index and
    moves them to its end, so all steps restore the order."""
    count = -(-bits // 4)
    return [(bits + place) // count for place in range(count)]


@cache
def _hadamard(bits: int) -> Floats:
    """The matrix of (-1)^popcount(l & j)."""
    numbers = np.arange(1 << bits, dtype=np.uint64)
    return sign(parity(np.bitwise_and.outer(*[numbers] * 2))).astype(np.float64)


def parity(words: Words) -> Words:
    """The parity of the set bits of each word, as 0 or 1 in uint8."""
    return np.bitwise_count(words) & np.uint8(1)
