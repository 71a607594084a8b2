"""Exact sums of doubles, from which any double can be subtracted again.

A sum is a row of digits of 32 bits in int64 limbs (after R. Neal, "Fast exact summation using small
and large superaccumulators", 2015): limb k counts units of 2**(32 * (low + k) - 1074), where
2**-1074 is the least double. Rows are as wide as the values seen require. A row is *settled* if all
limbs but the last are in [0, 2**32); the last one has the sign.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from millstream.physical.batch import Ints

DIGIT = 32
_MASK = 0xFFFFFFFF
_MAGNITUDE = 2**63 - 1
_SIGN = -(2**63)
_FRACTION = 2**52 - 1
_HIDDEN = 2**52
_INFINITE = 0x7FF0000000000000
_ONE, _HALF, _LOW = np.uint64(1), np.uint64(32), np.uint64(_MASK)

LIGHT = 2**10  # weights up to this need no extra digits
SMALL = 2**20  # weights below this are multiplied directly with a digit
LOAD = 2**29  # limbs are settled after this sum of weights, before they overflow


@njit(cache=True, inline="always")
def is_finite(word: int) -> bool:
    """Whether the double with this order-preserving word is finite."""
    return -_INFINITE <= word < _INFINITE


@njit(cache=True, inline="always")
def parts(word: int) -> tuple[int, int]:
    """Mantissa and exponent: the absolute value of a finite double is mantissa * 2**exponent units
    of 2**-1074."""
    bits = word if word >= 0 else word ^ _MAGNITUDE
    exponent = (bits >> 52) & 0x7FF
    fraction = bits & _FRACTION
    return (fraction | _HIDDEN, exponent - 1) if exponent else (fraction, 0)


@njit(cache=True)
def span(words: Ints) -> tuple[int, int]:
    """The lowest and the highest position among finite values."""
    lowest, highest = 4096, -1
    for i in range(len(words)):
        if is_finite(words[i]) and words[i] != 0:
            place = parts(words[i])[1]
            lowest, highest = min(lowest, place), max(highest, place)
    return lowest, highest


@njit(cache=True)
def is_light(delta: Ints) -> bool:
    """Whether no weight needs extra digits."""
    light = True
    for i in range(len(delta)):
        light &= -LIGHT <= delta[i] <= LIGHT
    return light


@njit(cache=True, inline="always")
def add_double(limbs: Ints, g: int, low: int, word: int, delta: int) -> None:
    """Add a finite double, delta times, to row g; |delta| is below SMALL."""
    mantissa, place = parts(word)
    add_digits(limbs, g, low, mantissa, place, -delta if word < 0 else delta)


@njit(cache=True, inline="always")
def add_digits(limbs: Ints, g: int, low: int, mantissa: int, place: int, delta: int) -> None:
    """Add mantissa * 2**place * delta."""
    k = (place >> 5) - low
    shift = place & 31
    limbs[g, k] += ((mantissa << shift) & _MASK) * delta
    limbs[g, k + 1] += ((mantissa >> (32 - shift)) & _MASK) * delta
    limbs[g, k + 2] += ((mantissa >> (63 - shift)) >> 1) * delta


@njit(cache=True)
def add_often(limbs: Ints, g: int, low: int, word: int, delta: int) -> None:
    """Add a finite double any number of times to any row; the row is settled afterwards."""
    settle(limbs, g)
    mantissa, place = parts(word)
    sign = -1 if (word < 0) != (delta < 0) else 1
    rest = abs(delta)
    while rest:
        add_digits(limbs, g, low, mantissa, place, sign * (rest & (SMALL - 1)))
        settle(limbs, g)
        rest >>= 20
        place += 20


@njit(cache=True)
def settle(limbs: Ints, g: int) -> None:
    """Propagate the carries."""
    carry = 0
    last = limbs.shape[1] - 1
    for k in range(last):
        digit = limbs[g, k] + carry
        limbs[g, k] = digit & _MASK
        carry = digit >> 32
    limbs[g, last] += carry


@njit(cache=True, inline="always")
def settled_value(limbs: Ints, g: int, low: int) -> int:
    """Settle a row, and return the bits of the nearest double, or -1 if it is negative: then
    `negative_value` returns them. Separate, since handling all signs takes twice the time."""
    row = limbs[g]
    last = len(row) - 1
    carry, seen, lowest = 0, 0, last
    for k in range(last):
        digit = row[k] + carry
        carry = digit >> 32
        digit &= _MASK
        row[k] = digit
        if digit and not seen:
            lowest = k
        seen |= digit
    head = row[last] + carry
    row[last] = head
    if head < 0:
        return -1
    k = last
    while head == 0 and k > 0:
        k -= 1
        head = row[k]
    if head == 0:
        return 0
    length = bit_length(head)
    second = row[k - 1] if k >= 1 else 0
    third = row[k - 2] if k >= 2 else 0
    behind = (np.uint64(second) << _HALF) | np.uint64(third)
    bits = (np.uint64(head) << np.uint64(64 - length)) | (behind >> np.uint64(length))
    more = lowest < k - 2 or behind << np.uint64(64 - length) != 0
    return nearest(bits, 32 * (low + k) + length - 1, more)


@njit(cache=True)
def negative_value(limbs: Ints, g: int, low: int, digits: Ints) -> int:
    """The bits of the double nearest to a settled, negative row; `digits` is scratch."""
    magnitude(limbs, g, digits)
    return rounded(digits, len(digits), 32 * low) | _SIGN


@njit(cache=True, inline="always")
def bit_length(number: int) -> int:
    """The number of bits of a positive number."""
    length = 1
    for step in (32, 16, 8, 4, 2, 1):
        if number >> step:
            number >>= step
            length += step
    return length


@njit(cache=True)
def magnitude(limbs: Ints, g: int, digits: Ints) -> bool:
    """Write the digits of the absolute value of a settled row, one more than its limbs; returns
    whether it is negative."""
    last = limbs.shape[1] - 1
    top = limbs[g, last]
    negative = top < 0
    if negative:
        borrow = 0
        for k in range(last):
            digit = borrow - limbs[g, k]
            digits[k] = digit & _MASK
            borrow = digit >> 32
        top = borrow - top
    else:
        for k in range(last):
            digits[k] = limbs[g, k]
    digits[last] = top & _MASK
    digits[last + 1] = top >> 32
    return bool(negative)


@njit(cache=True)
def leading(digits: Ints, used: int) -> tuple[int, int]:
    """The number of the highest nonzero digit, and its leading zeros. There must be one."""
    k = used - 1
    while digits[k] == 0:
        k -= 1
    return k, 32 - bit_length(digits[k])


@njit(cache=True)
def window(digits: Ints, k: int, zeros: int) -> np.uint64:
    """64 bits downwards from bit `zeros` of digit k."""
    first = np.uint64(digits[k]) if k >= 0 else np.uint64(0)
    second = np.uint64(digits[k - 1]) if k >= 1 else np.uint64(0)
    third = np.uint64(digits[k - 2]) if k >= 2 else np.uint64(0)
    shift, rest = np.uint64(zeros), np.uint64(32 - zeros)
    return (first << (shift + np.uint64(32))) | (second << shift) | (third >> rest)


@njit(cache=True)
def any_behind(digits: Ints, k: int, zeros: int) -> bool:
    """Whether a bit is set at or below bit `zeros` of digit k."""
    if k >= 0 and digits[k] & ((1 << (32 - zeros)) - 1):
        return True
    for i in range(k - 1, -1, -1):  # noqa: SIM110 - generators do not compile
        if digits[i]:
            return True
    return False


@njit(cache=True)
def rounded(digits: Ints, used: int, unit: int) -> int:
    """The bits of the double nearest to the digits; the lowest one counts 2**(unit - 1074)."""
    k, zeros = leading(digits, used)
    more = any_behind(digits, k - 2, zeros)
    return nearest(window(digits, k, zeros), 32 * k + 31 - zeros + unit, more)


@njit(cache=True)
def rounded_quotient(digits: Ints, used: int, unit: int, divisor: np.uint64, scale: int) -> int:
    """As `rounded`, for the digits divided by divisor * 2**scale."""
    k, zeros = leading(digits, used)
    upper, lower = window(digits, k, zeros), window(digits, k - 2, zeros)
    more = any_behind(digits, k - 4, zeros)
    shift = 0
    while divisor < np.uint64(2**63):
        divisor <<= _ONE
        shift += 1
    # Shifted right by one bit, so that the quotient fits a word.
    more |= (lower & _ONE) != 0
    lower = (lower >> _ONE) | (upper << np.uint64(63))
    quotient, rest = _divide(upper >> _ONE, lower, divisor)
    place = 32 * k + 31 - zeros - 63 + shift - scale
    if quotient < np.uint64(2**63):
        quotient <<= _ONE
        place -= 1
    return nearest(quotient, place + unit, more or rest != 0)


@njit(cache=True)
def _divide(upper: np.uint64, lower: np.uint64, divisor: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Quotient and remainder of a two-word number by long division with 32-bit digits. The upper
    word is less than the divisor, whose highest bit is set."""
    first, rest = _divide_digit(upper, lower >> _HALF, divisor)
    second, rest = _divide_digit(rest, lower & _LOW, divisor)
    return (first << _HALF) | second, rest


@njit(cache=True)
def _divide_digit(
    rest: np.uint64, digit: np.uint64, divisor: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """The next digit of a quotient, and the remainder of rest * 2**32 + digit."""
    high, low = divisor >> _HALF, divisor & _LOW
    guess = rest // high
    over = rest - guess * high
    while over <= _LOW and (guess > _LOW or guess * low > (over << _HALF) + digit):
        guess -= _ONE
        over += high
    return guess, (rest << _HALF) + digit - guess * divisor


@njit(cache=True, inline="always")
def nearest(bits: np.uint64, place: int, more: bool) -> int:
    """The bits of the double nearest to a number, halves to even: bits * 2**(place - 63) units of
    2**-1074, and a little more. The highest bit is set."""
    dropped = 11 if place >= 52 else 63 - place
    if dropped > 64:
        return 0
    cut = np.uint64(dropped)
    kept = bits >> cut if dropped < 64 else np.uint64(0)
    half = np.uint64(1) << (cut - np.uint64(1))
    rest = bits & (half | (half - np.uint64(1)))
    if rest > half or (rest == half and (more or kept & np.uint64(1))):
        kept += np.uint64(1)
    # A carry out of the fraction increments the exponent.
    exponent = max(place - 52, 0)
    if exponent >= 2046:
        return _INFINITE
    return min((exponent << 52) + int(kept), _INFINITE)
