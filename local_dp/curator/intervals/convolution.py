"""Products of polynomials: exact ones of whole numbers, and power series in floats."""

from decimal import MAX_EMAX, MAX_PREC, Context, Decimal, Inexact

import numpy as np

from local_dp.arrays import Counts, Floats


def exact_product(a: Counts, b: Counts) -> Counts:
    """The first len(a) coefficients of a times b, both of len(a) whole numbers, 0 or more: by one product of two long numbers, exactly.

    Each coefficient gets as many decimal digits as the largest of the result needs (Kronecker 1882); `decimal` multiplies in O(D log D).
    """
    digits = len(str(int(a.sum()) * int(b.max(initial=1))))
    product = Context(prec=MAX_PREC, Emax=MAX_EMAX, traps=[Inexact]).multiply(_written(a, digits), _written(b, digits))
    text = format(product, "f").zfill(2 * len(a) * digits).encode()
    places = np.frombuffer(text, dtype=np.uint8).reshape(-1, digits)[len(a) :][::-1] - ord("0")
    found = np.zeros(len(a), dtype=np.int64)
    for place in range(digits):
        found = 10 * found + places[:, place]
    return found


def _written(coefficients: Counts, digits: int) -> Decimal:
    """The polynomial at 10^digits."""
    places = np.empty((len(coefficients), digits), dtype=np.uint8)
    left = coefficients[::-1].copy()
    for place in reversed(range(digits)):
        left, places[:, place] = np.divmod(left, 10)
    return Decimal((places + ord("0")).tobytes().decode())


def series_product(a: Floats, b: Floats) -> Floats:
    """The first len(a) coefficients of a times b, which has as many, by FFT."""
    size = 1 << (2 * len(a) - 1).bit_length()
    return np.asarray(np.fft.irfft(np.fft.rfft(a, size) * np.fft.rfft(b, size), size)[: len(a)])


def series_inverse(a: Floats) -> Floats:
    """The first len(a) coefficients of 1 / a, by Newton's iteration."""
    found = np.array([1 / a[0]])
    while len(found) < len(a):
        longer = np.append(found, np.zeros(min(len(found), len(a) - len(found))))
        error = -series_product(a[: len(longer)], longer)
        error[0] += 2
        found = series_product(longer, error)
    return found
