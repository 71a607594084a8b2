"""Hash tables from exact keys to dense codes: of int64 words, and of byte strings.

A table uses open addressing with linear probing; an entry is code + 1, or 0 if free. Keys are
stored outside by code, and every match is compared in full.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Codes = NDArray[np.int32]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SECOND = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(29)
_FINAL = np.uint64(32)
_LINE = np.uint64(4)  # 2⁴ entries of a table are a cache line
_IN_LINE = np.uint64(15)
_TOP = np.uint64(60)
_NEGATIVE_ZERO = -(2**63)
_MAGNITUDE = 2**63 - 1
_INFINITY = 0x7FF0000000000000
_NAN = 0x7FF8000000000000
_STEP = np.uint64(17)  # odd, to reach all entries; skips to the next line, since keys fill lines


@njit(cache=True, inline="always")
def _mix(state: np.uint64, word: np.uint64) -> np.uint64:
    state = (state ^ word) * _MULTIPLIER
    return state ^ (state >> _SHIFT)


@njit(cache=True, inline="always")
def _home(words: Ints, i: int) -> np.uint64:
    """The home entry of column i of words. Consecutive keys share a cache line: numbers are often
    assigned in order, and a table may be much larger than the cache."""
    last = len(words) - 1
    if last < 0:
        return np.uint64(0)
    state = np.uint64(0)
    for k in range(last):
        state = _mix(state, np.uint64(words[k, i]))
    word = np.uint64(words[last, i])
    state = _mix(state, word >> _LINE)
    line = state * _SECOND  # moves high bits down
    line ^= line >> _FINAL
    return (line << _LINE) | ((word ^ (line >> _TOP)) & _IN_LINE)


@njit(cache=True)
def unify_doubles(bits: Ints) -> None:
    """Give doubles that are equal in SQL the same bits: -0.0 becomes 0.0, and all NaNs the same
    NaN."""
    for i in range(len(bits)):
        if bits[i] == _NEGATIVE_ZERO:
            bits[i] = 0
        elif bits[i] & _MAGNITUDE > _INFINITY:
            bits[i] = _NAN


@njit(cache=True)
def intern_words(words: Ints, keys: Ints, table: Codes, count: int, add: bool, codes: Ints) -> int:
    """Write the code of each column of `words` to `codes`. An unknown key gets a new code, from
    `count` on, if `add`, else -1. There must be room. Returns the new count."""
    width, length = words.shape
    mask = np.uint64(len(table) - 1)
    for i in range(length):
        place = _home(words, i) & mask
        found = -1
        while table[place] != 0:
            code = table[place] - 1
            same = True
            for k in range(width):
                if keys[k, code] != words[k, i]:
                    same = False
                    break
            if same:
                found = code
                break
            place = (place + _STEP) & mask
        if found < 0 and add:
            found = count
            for k in range(width):
                keys[k, count] = words[k, i]
            count += 1
            table[place] = count
        codes[i] = found
    return count


@njit(cache=True)
def keep_words(keys: Ints, codes: Ints, renumbered: Ints) -> None:
    """Move the words of these ascending codes to the front, and write their new codes to
    `renumbered`. In place: allocating a large array takes longer than filling it."""
    for i in range(len(codes)):
        renumbered[codes[i]] = i
    for row in range(len(keys)):
        for i in range(len(codes)):
            keys[row, i] = keys[row, codes[i]]


@njit(cache=True)
def fill_word_table(keys: Ints, count: int, table: Codes) -> None:
    """Insert the first `count` keys, all distinct, into an empty table."""
    mask = np.uint64(len(table) - 1)
    for code in range(count):
        place = _home(keys, code) & mask
        while table[place] != 0:
            place = (place + _STEP) & mask
        table[place] = code + 1


@njit(cache=True)
def _hash_bytes(data: Bytes, first: int, last: int) -> np.uint64:
    state = np.uint64(last - first)
    word = np.uint64(0)
    filled = np.uint64(0)
    for j in range(first, last):
        word |= np.uint64(data[j]) << filled
        filled += np.uint64(8)
        if filled == 64:
            state = _mix(state, word)
            word = np.uint64(0)
            filled = np.uint64(0)
    if filled != 0:
        state = _mix(state, word)
    return state ^ (state >> _FINAL)


@njit(cache=True)
def intern_bytes(
    offsets: Ints,
    data: Bytes,
    ends: Ints,
    arena: Bytes,
    table: Codes,
    count: int,
    codes: Ints,
) -> int:
    """As `intern_words` for the strings data[offsets[i]:offsets[i+1]], where codes[i] is not -1
    already. String `code` is in the arena from ends[code] to ends[code + 1]."""
    mask = np.uint64(len(table) - 1)
    for i in range(len(codes)):
        if codes[i] < 0:
            continue
        first, last = offsets[i], offsets[i + 1]
        size = last - first
        place = _hash_bytes(data, first, last) & mask
        found = -1
        while table[place] != 0:
            code = table[place] - 1
            begin = ends[code]
            if ends[code + 1] - begin == size:
                same = True
                for j in range(size):
                    if arena[begin + j] != data[first + j]:
                        same = False
                        break
                if same:
                    found = code
                    break
            place = (place + np.uint64(1)) & mask
        if found < 0:
            found = count
            begin = ends[count]
            for j in range(size):
                arena[begin + j] = data[first + j]
            ends[count + 1] = begin + size
            count += 1
            table[place] = count
        codes[i] = found
    return count


@njit(cache=True)
def fill_byte_table(ends: Ints, arena: Bytes, count: int, table: Codes) -> None:
    mask = np.uint64(len(table) - 1)
    for code in range(count):
        place = _hash_bytes(arena, ends[code], ends[code + 1]) & mask
        while table[place] != 0:
            place = (place + np.uint64(1)) & mask
        table[place] = code + 1


@njit(cache=True)
def copy_strings(codes: Ints, ends: Ints, arena: Bytes, offsets: Ints, data: Bytes) -> None:
    """Copies the strings of codes to their `offsets`; code -1 is empty."""
    for i in range(len(codes)):
        code = codes[i]
        if code >= 0:
            begin = ends[code]
            place = offsets[i]
            for j in range(ends[code + 1] - begin):
                data[place + j] = arena[begin + j]
