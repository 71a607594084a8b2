"""Merges adjacent intervals of equal rows.

Pieces that may still grow are numbered in order of opening; piece n is at n mod capacity, in the
chain of its code, newest first.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@njit(cache=True)
def extend_pieces(
    codes: Ints,
    starts: Ints,
    ends: Ints,
    longest: int,
    base: int,
    first: int,
    mask: int,
    since: Ints,
    until: Ints,
    growing: NDArray[np.bool_],
    older: Ints,
    newest: Ints,
) -> Ints:
    """Elements in order of start: each extends a piece of its code that ends where it starts, if
    that makes it no longer than `longest`, or opens the next piece, from number `first` on. Returns
    the piece number of each element."""
    numbers = np.empty(len(codes), np.int64)
    for i in range(len(codes)):
        number, behind = newest[codes[i]], -1
        while number >= base:
            place = number & mask
            if not growing[place]:  # remove it from the chain
                if behind < 0:
                    newest[codes[i]] = older[place]
                else:
                    older[behind & mask] = older[place]
            elif until[place] == starts[i] and ends[i] - since[place] <= longest:
                break
            else:
                behind = number
            number = older[place]
        if number < base:
            number = first
            first += 1
            place = number & mask
            since[place] = starts[i]
            older[place] = newest[codes[i]]
            newest[codes[i]] = number
        place = number & mask
        until[place] = ends[i]
        growing[place] = ends[i] - since[place] < longest
        numbers[i] = number
    return numbers


@njit(cache=True)
def first_growing(base: int, stop: int, mask: int, growing: NDArray[np.bool_]) -> int:
    """The number of the oldest piece that may still grow."""
    while base < stop and not growing[base & mask]:
        base += 1
    return base
