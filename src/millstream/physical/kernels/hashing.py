"""Hashes that are stable across releases: they determine the shard of a row."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SECOND = np.uint64(0xBF58476D1CE4E5B9)
_THIRD = np.uint64(0x94D049BB133111EB)
_PRIME = np.uint64(0x100000001B3)
_BASIS = np.uint64(0xCBF29CE484222325)


@njit(cache=True)
def mix_words(hashes: NDArray[np.uint64], words: Ints) -> None:
    """Mix a word into each hash."""
    for i in range(len(hashes)):
        state = (hashes[i] ^ np.uint64(words[i])) + _MULTIPLIER
        state = (state ^ (state >> np.uint64(30))) * _SECOND
        state = (state ^ (state >> np.uint64(27))) * _THIRD
        hashes[i] = state ^ (state >> np.uint64(31))


@njit(cache=True)
def hash_strings(
    offsets: NDArray[np.int32], data: NDArray[np.uint8], valid: NDArray[np.bool_]
) -> Ints:
    """A word per string; 0 for NULL."""
    words = np.zeros(len(valid), np.int64)
    for i in range(len(valid)):
        if valid[i]:
            state = _BASIS
            for place in range(offsets[i], offsets[i + 1]):
                state = (state ^ np.uint64(data[place])) * _PRIME
            words[i] = np.int64(state)
    return words
