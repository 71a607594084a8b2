"""The ring join: chains of equal keys through a circular buffer, newest element first.

Elements are numbered in order of arrival; element n is at place n - origin, wrapped around at the
capacity: `origin` is less than the capacity behind the first element. Ends do not decrease with
these numbers, so along a chain they do not increase: once one element has ended, all older ones
have.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]


# The columns of an element, adjacent in memory: two elements per cache line.
START, END, OLDER, WEIGHT = 0, 1, 2, 3
WIDTH = 4


@njit(cache=True, inline="always")
def place_of(number: int, origin: int, capacity: int) -> int:
    place = number - origin
    return place - capacity if place >= capacity else place


@njit(cache=True)
def append(
    codes: Ints,
    starts: Ints,
    ends: Ints,
    weights: Ints,
    first: int,
    origin: int,
    elements: Ints,
    code_at: Codes,
    newest: Ints,
) -> None:
    """Insert elements first, first + 1, … into the ring and the chains of their codes."""
    for i in range(len(codes)):
        place = place_of(first + i, origin, len(elements))
        code = codes[i]
        elements[place, START] = starts[i]
        elements[place, END] = ends[i]
        elements[place, OLDER] = newest[code]
        elements[place, WEIGHT] = weights[i]
        code_at[place] = code
        newest[code] = first + i


# A loop that reassigns its arrays is several times slower. So the loops stop when their room is
# used up, and are called again with more.


@njit(cache=True)
def probe_chains(
    codes: Ints,
    starts: Ints,
    ends: Ints,
    base: int,
    origin: int,
    elements: Ints,
    newest: Ints,
    patience: int,
    looks: int,
) -> tuple[Ints, Ints, int, int]:
    """Pairs (i, place) with equal codes and overlapping intervals; how many places were examined;
    and for how many elements, since it gives up after `patience` more examinations than pairs;
    every element done adds `looks`."""
    room = 2 * len(codes) + 16
    found, places = np.empty(room, np.int64), np.empty(room, np.int64)
    i, number, count, touched = 0, -2, 0, 0
    while True:
        i, number, count, touched = _follow_chains(
            codes, starts, ends, base, origin, elements, newest,
            found, places, i, number, count, touched, patience, looks,
        )  # fmt: skip
        if number == -2:
            return found[:count], places[:count], touched, i
        found, places = _doubled(found), _doubled(places)


@njit(cache=True)
def _follow_chains(
    codes: Ints,
    starts: Ints,
    ends: Ints,
    base: int,
    origin: int,
    elements: Ints,
    newest: Ints,
    found: Ints,
    places: Ints,
    i: int,
    number: int,
    count: int,
    touched: int,
    patience: int,
    looks: int,
) -> tuple[int, int, int, int]:
    """Continues at element `number` of the chain of row i; -2 is its start."""
    capacity, room = len(elements), len(found)
    while i < len(codes):
        code, start, end = codes[i], starts[i], ends[i]
        if number == -2:
            if touched - count > patience + looks * i:
                break
            number = newest[code] if 0 <= code < len(newest) else -1
        while number >= base:
            place = place_of(number, origin, capacity)
            if elements[place, END] <= start:
                touched += 1
                break
            if elements[place, START] < end:
                if count == room:
                    return i, number, count, touched
                found[count] = i
                places[count] = place
                count += 1
            touched += 1
            number = elements[place, OLDER]
        number = -2
        i += 1
    return i, number, count, touched


@njit(cache=True)
def chains_of(
    codes: Ints, base: int, stop: int, origin: int, elements: Ints, newest: Ints
) -> tuple[Ints, Ints]:
    """The places of each of these codes, code by code, the oldest first; and the offset of each
    code, followed by the total."""
    capacity = len(elements)
    bounds = np.zeros(len(codes) + 1, np.int64)
    places = np.empty(stop - base, np.int64)
    at = 0
    for i in range(len(codes)):
        number = newest[codes[i]]
        while number >= base:
            places[at] = place_of(number, origin, capacity)
            number = elements[places[at], OLDER]
            at += 1
        bounds[i + 1] = at
        places[bounds[i] : at] = places[bounds[i] : at][::-1].copy()
    return places[:at], bounds


@njit(cache=True)
def probe_all(
    codes: Ints,
    starts: Ints,
    ends: Ints,
    base: int,
    stop: int,
    origin: int,
    elements: Ints,
    code_at: Codes,
) -> tuple[Ints, Ints, int]:
    """As `probe_chains`, by a nested loop."""
    room = 2 * len(codes) + 16
    found, places = np.empty(room, np.int64), np.empty(room, np.int64)
    i, number, count = 0, base, 0
    while True:
        i, number, count = _scan(
            codes, starts, ends, base, stop, origin, elements, code_at,
            found, places, i, number, count,
        )  # fmt: skip
        if i == len(codes):
            return found[:count], places[:count], len(codes) * (stop - base)
        found, places = _doubled(found), _doubled(places)


@njit(cache=True)
def _scan(
    codes: Ints,
    starts: Ints,
    ends: Ints,
    base: int,
    stop: int,
    origin: int,
    elements: Ints,
    code_at: Codes,
    found: Ints,
    places: Ints,
    i: int,
    number: int,
    count: int,
) -> tuple[int, int, int]:
    capacity, room = len(elements), len(found)
    while i < len(codes):
        code, start, end = codes[i], starts[i], ends[i]
        while number < stop:
            place = place_of(number, origin, capacity)
            if (
                code_at[place] == code
                and elements[place, START] < end
                and start < elements[place, END]
            ):
                if count == room:
                    return i, number, count
                found[count] = i
                places[count] = place
                count += 1
            number += 1
        number = base
        i += 1
    return i, number, count


@njit(cache=True)
def _doubled(array: Ints) -> Ints:
    larger = np.empty(2 * len(array), np.int64)
    larger[: len(array)] = array
    return larger


@njit(cache=True)
def recode(base: int, stop: int, origin: int, code_at: Codes, renumbered: Ints) -> None:
    """Replace the codes of elements by their new codes."""
    for number in range(base, stop):
        place = place_of(number, origin, len(code_at))
        code_at[place] = renumbered[code_at[place]]


@njit(cache=True)
def read_times(places: Ints, elements: Ints) -> tuple[Ints, Ints, Ints]:
    """The starts, ends and weights of elements."""
    count = len(places)
    start, end, weight = (
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
    )
    for i in range(count):
        place = places[i]
        start[i] = elements[place, START]
        end[i] = elements[place, END]
        weight[i] = elements[place, WEIGHT]
    return start, end, weight


@njit(cache=True)
def first_alive(base: int, stop: int, origin: int, elements: Ints, frontier: int) -> int:
    """The first element that ends after the frontier, by exponential and then binary search, so
    that only a few of the expired elements are examined."""
    capacity, step = len(elements), 1
    while base < stop:
        last = min(base + step, stop) - 1
        if elements[place_of(last, origin, capacity), END] > frontier:
            stop = last
            step = (stop - base + 1) // 2
        else:
            base = last + 1
            step = min(2 * step, (stop - base + 1) // 2)
    return base
