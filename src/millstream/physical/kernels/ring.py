"""The ring join: chains of equal keys through a circular buffer, newest element first.

Elements are numbered as they come; element n lies at n mod capacity. Ends do not decrease with
these numbers, so along a chain they do not increase: the first element that has ended says that
all behind it have.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@njit(cache=True)
def link(codes: Ints, first: int, mask: int, code_at: Ints, older: Ints, newest: Ints) -> None:
    """Enter elements first, first + 1, … into the chains of their codes."""
    for i in range(len(codes)):
        number = first + i
        place = number & mask
        code_at[place] = codes[i]
        older[place] = newest[codes[i]]
        newest[codes[i]] = number


@njit(cache=True)
def probe_chains(
    codes: Ints,
    starts: Ints,
    ends: Ints,
    base: int,
    mask: int,
    start_at: Ints,
    end_at: Ints,
    older: Ints,
    newest: Ints,
) -> tuple[Ints, Ints, int]:
    """Pairs (i, place) with equal codes and overlapping intervals; and how many were looked at."""
    room = 2 * len(codes) + 16
    found = np.empty(room, np.int64)
    places = np.empty(room, np.int64)
    count = touched = 0
    for i in range(len(codes)):
        code = codes[i]
        if code < 0 or code >= len(newest):
            continue
        start, end = starts[i], ends[i]
        number = newest[code]
        while number >= base:
            place = number & mask
            touched += 1
            if end_at[place] <= start:
                break
            if start_at[place] < end:
                if count == room:
                    room *= 2
                    found, places = _larger(found, room), _larger(places, room)
                found[count] = i
                places[count] = place
                count += 1
            number = older[place]
    return found[:count], places[:count], touched


@njit(cache=True)
def probe_all(
    codes: Ints,
    starts: Ints,
    ends: Ints,
    base: int,
    stop: int,
    mask: int,
    start_at: Ints,
    end_at: Ints,
    code_at: Ints,
) -> tuple[Ints, Ints, int]:
    """As `probe_chains`, by a nested loop."""
    room = 2 * len(codes) + 16
    found = np.empty(room, np.int64)
    places = np.empty(room, np.int64)
    count = touched = 0
    for i in range(len(codes)):
        for number in range(base, stop):
            place = number & mask
            touched += 1
            if (
                code_at[place] == codes[i]
                and start_at[place] < ends[i]
                and starts[i] < end_at[place]
            ):
                if count == room:
                    room *= 2
                    found, places = _larger(found, room), _larger(places, room)
                found[count] = i
                places[count] = place
                count += 1
    return found[:count], places[:count], touched


@njit(cache=True)
def _larger(array: Ints, room: int) -> Ints:
    larger = np.empty(room, np.int64)
    larger[: len(array)] = array
    return larger


@njit(cache=True)
def first_alive(base: int, stop: int, mask: int, end_at: Ints, frontier: int) -> int:
    """The first element that ends after the frontier."""
    while base < stop and end_at[base & mask] <= frontier:
        base += 1
    return base
