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


# The columns of an element: what a probe reads stands first, together in memory.
START, END, OLDER, WEIGHT, CODE = 0, 1, 2, 3, 4
WIDTH = 5


@njit(cache=True)
def append(
    codes: Ints,
    starts: Ints,
    ends: Ints,
    weights: Ints,
    first: int,
    elements: Ints,
    newest: Ints,
) -> None:
    """Enter elements first, first + 1, … into the ring and the chains of their codes."""
    mask = len(elements) - 1
    for i in range(len(codes)):
        place = (first + i) & mask
        code = codes[i]
        elements[place, START] = starts[i]
        elements[place, END] = ends[i]
        elements[place, OLDER] = newest[code]
        elements[place, WEIGHT] = weights[i]
        elements[place, CODE] = code
        newest[code] = first + i


@njit(cache=True)
def probe_chains(
    codes: Ints, starts: Ints, ends: Ints, base: int, elements: Ints, newest: Ints
) -> tuple[Ints, Ints, int]:
    """Pairs (i, place) with equal codes and overlapping intervals; and how many were looked at."""
    mask = len(elements) - 1
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
            if elements[place, END] <= start:
                break
            if elements[place, START] < end:
                if count == room:
                    room *= 2
                    found, places = _larger(found, room), _larger(places, room)
                found[count] = i
                places[count] = place
                count += 1
            number = elements[place, OLDER]
    return found[:count], places[:count], touched


@njit(cache=True)
def probe_all(
    codes: Ints, starts: Ints, ends: Ints, base: int, stop: int, elements: Ints
) -> tuple[Ints, Ints, int]:
    """As `probe_chains`, by a nested loop."""
    mask = len(elements) - 1
    room = 2 * len(codes) + 16
    found = np.empty(room, np.int64)
    places = np.empty(room, np.int64)
    count = touched = 0
    for i in range(len(codes)):
        for number in range(base, stop):
            place = number & mask
            touched += 1
            if (
                elements[place, CODE] == codes[i]
                and elements[place, START] < ends[i]
                and starts[i] < elements[place, END]
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
def first_alive(base: int, stop: int, elements: Ints, frontier: int) -> int:
    """The first element that ends after the frontier."""
    mask = len(elements) - 1
    while base < stop and elements[base & mask, END] <= frontier:
        base += 1
    return base
