"""Stacks of numbers, one per code, in shared arrays.

A stack is a chain of slots: `top[code]` is its newest slot and `below[slot]` the next older one,
-1 at the end. `number[slot]` is the entry and `owner[slot]` the code that has it, -1 while the slot
is free.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@njit(cache=True)
def push(
    codes: Ints, numbers: Ints, slots: Ints, top: Ints, below: Ints, number: Ints, owner: Ints
) -> None:
    """Put each number on the stack of its code, in the free slot beside it."""
    for i in range(len(codes)):
        code, slot = codes[i], slots[i]
        below[slot] = top[code]
        number[slot] = numbers[i]
        owner[slot] = code
        top[code] = slot


@njit(cache=True)
def pop(codes: Ints, top: Ints, below: Ints, owner: Ints) -> Ints:
    """Pop one entry from the non-empty stack of each code; returns the freed slots."""
    slots = np.empty(len(codes), np.int64)
    for i in range(len(codes)):
        slot = top[codes[i]]
        top[codes[i]] = below[slot]
        owner[slot] = -1
        slots[i] = slot
    return slots


@njit(cache=True)
def peek(group: Ints, newest: Ints, below: Ints) -> Ints:
    """The slots of the stacks that begin at `newest`, one per item of a group: the newest slot for
    the first item, the next older one for the second, and so on."""
    slots = np.empty(len(group), np.int64)
    for i in range(len(group)):
        slots[i] = newest[group[i]]
        newest[group[i]] = below[slots[i]]
    return slots
