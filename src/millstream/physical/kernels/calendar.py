"""A pool of elements in chains by key, and in partitions by end time.

A place is linked in the chain of its code (doubly, so that it can be removed), and in the partition
of its end or the free list (both through `next_due`).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Links = NDArray[np.int32]  # places and codes, by place

_FOR_EVER = 2**63 - 1


@njit(cache=True)
def take_places(free: int, count: int, next_due: Links) -> tuple[Ints, int]:
    """Takes `count` free places; also returns the new head of the free list."""
    places = np.empty(count, np.int64)
    for i in range(count):
        places[i] = free
        free = next_due[free]
    return places, free


@njit(cache=True)
def link_places(
    places: Ints, codes: Ints, code_at: Links, older: Links, newer: Links, newest: Links
) -> None:
    """Put places at the head of the chains of their codes."""
    for i in range(len(places)):
        place, code = places[i], codes[i]
        code_at[place] = code
        older[place] = newest[code]
        newer[place] = -1
        if newest[code] >= 0:
            newer[newest[code]] = place
        newest[code] = place


@njit(cache=True)
def schedule(places: Ints, end_at: Ints, width: int, due: Ints, next_due: Links) -> None:
    """Put places into the partitions of their ends; elements without an end are in none."""
    for i in range(len(places)):
        place = places[i]
        if end_at[place] != _FOR_EVER:
            number = (end_at[place] // width) % len(due)
            next_due[place] = due[number]
            due[number] = place
        else:
            next_due[place] = -2


@njit(cache=True)
def unlink(place: int, code_at: Links, older: Links, newer: Links, newest: Links) -> None:
    if newer[place] >= 0:
        older[newer[place]] = older[place]
    else:
        newest[code_at[place]] = older[place]
    if older[place] >= 0:
        newer[older[place]] = newer[place]


@njit(cache=True)
def expire_partitions(
    first: int,
    last: int,
    frontier: int,
    width: int,
    end_at: Ints,
    due: Ints,
    next_due: Links,
    code_at: Links,
    older: Links,
    newer: Links,
    newest: Links,
    row_at: Links,
    row_older: Links,
    row_newer: Links,
    row_newest: Links,
    keyed: bool,
    free: int,
) -> tuple[int, int, int]:
    """Remove the elements of partitions `first` to `last` that end by the frontier. Returns the
    head of the free list, how many were removed and how many were examined."""
    dropped = touched = 0
    for partition in range(first, min(last, first + len(due) - 1) + 1):
        number = partition % len(due)
        place = due[number]
        kept = -1
        while place >= 0:
            following = next_due[place]
            touched += 1
            if end_at[place] <= frontier:
                unlink(place, code_at, older, newer, newest)
                if keyed:
                    unlink(place, row_at, row_older, row_newer, row_newest)
                code_at[place] = -1
                next_due[place] = free
                free = place
                dropped += 1
            else:
                next_due[place] = kept
                kept = place
            place = following
        due[number] = kept
    return free, dropped, touched


@njit(cache=True)
def probe_pool(
    codes: Ints,
    starts: Ints,
    ends: Ints,
    start_at: Ints,
    end_at: Ints,
    older: Links,
    newest: Links,
    patience: int,
    looks: int,
) -> tuple[Ints, Ints, int, int]:
    """Pairs (i, place) with equal codes and overlapping intervals; how many places were examined;
    and for how many elements, since it gives up after `patience` more examinations than pairs;
    every element done adds `looks`."""
    room = 2 * len(codes) + 16
    found, places = np.empty(room, np.int64), np.empty(room, np.int64)
    i, place, count, touched = 0, -2, 0, 0
    while True:
        i, place, count, touched = _follow_chains(
            codes, starts, ends, start_at, end_at, older, newest,
            found, places, i, place, count, touched, patience, looks,
        )  # fmt: skip
        if place == -2:
            return found[:count], places[:count], touched, i
        found, places = _doubled(found), _doubled(places)


@njit(cache=True)
def _follow_chains(
    codes: Ints,
    starts: Ints,
    ends: Ints,
    start_at: Ints,
    end_at: Ints,
    older: Links,
    newest: Links,
    found: Ints,
    places: Ints,
    i: int,
    place: int,
    count: int,
    touched: int,
    patience: int,
    looks: int,
) -> tuple[int, int, int, int]:
    """Continues at `place` in the chain of row i, until the room is used up; -2 is its start."""
    room = len(found)
    while i < len(codes):
        code, start, end = codes[i], starts[i], ends[i]
        if place == -2:
            if touched - count > patience + looks * i:
                break
            place = newest[code] if 0 <= code < len(newest) else -1
        while place >= 0:
            if start_at[place] < end and start < end_at[place]:
                if count == room:
                    return i, place, count, touched
                found[count] = i
                places[count] = place
                count += 1
            touched += 1
            place = older[place]
        place = -2
        i += 1
    return i, place, count, touched


@njit(cache=True)
def chains_of(codes: Ints, older: Links, newest: Links) -> tuple[Ints, Ints]:
    """The places of each of these codes, code by code, the oldest first; and the offset of each
    code, followed by the total."""
    bounds = np.zeros(len(codes) + 1, np.int64)
    for i in range(len(codes)):
        bounds[i + 1] = bounds[i]
        place = newest[codes[i]]
        while place >= 0:
            bounds[i + 1] += 1
            place = older[place]
    places = np.empty(bounds[-1], np.int64)
    for i in range(len(codes)):
        at, place = bounds[i + 1], newest[codes[i]]
        while place >= 0:
            at -= 1
            places[at] = place
            place = older[place]
    return places, bounds


@njit(cache=True)
def probe_all(
    codes: Ints,
    starts: Ints,
    ends: Ints,
    live: Ints,
    start_at: Ints,
    end_at: Ints,
    code_at: Links,
) -> tuple[Ints, Ints, int]:
    """As `probe_pool`, by a nested loop over the live places."""
    room = 2 * len(codes) + 16
    found, places = np.empty(room, np.int64), np.empty(room, np.int64)
    i, j, count = 0, 0, 0
    while True:
        i, j, count = _scan(
            codes, starts, ends, live, start_at, end_at, code_at, found, places, i, j, count
        )
        if i == len(codes):
            return found[:count], places[:count], len(codes) * len(live)
        found, places = _doubled(found), _doubled(places)


@njit(cache=True)
def _scan(
    codes: Ints,
    starts: Ints,
    ends: Ints,
    live: Ints,
    start_at: Ints,
    end_at: Ints,
    code_at: Links,
    found: Ints,
    places: Ints,
    i: int,
    j: int,
    count: int,
) -> tuple[int, int, int]:
    room = len(found)
    while i < len(codes):
        code, start, end = codes[i], starts[i], ends[i]
        while j < len(live):
            place = live[j]
            if code_at[place] == code and start_at[place] < end and start < end_at[place]:
                if count == room:
                    return i, j, count
                found[count] = i
                places[count] = place
                count += 1
            j += 1
        j = 0
        i += 1
    return i, j, count


@njit(cache=True)
def _doubled(array: Ints) -> Ints:
    larger = np.empty(2 * len(array), np.int64)
    larger[: len(array)] = array
    return larger


@njit(cache=True)
def close_elements(
    rows: Ints,
    codes: Ints,
    starts: Ints,
    ends: Ints,
    counts: Ints,
    width: int,
    free: int,
    start_at: Ints,
    end_at: Ints,
    weight_at: Ints,
    code_at: Links,
    row_at: Links,
    older: Links,
    newer: Links,
    newest: Links,
    row_older: Links,
    row_newer: Links,
    row_newest: Links,
    due: Ints,
    next_due: Links,
    keyed: bool,
    split_from: Ints,
) -> tuple[int, int, int, int]:
    """End elements early: `counts` (> 0) of each row end at `starts` instead of `ends`.

    A valid element of the same row and end is cut; one of larger weight is split, and `split_from`
    of the new place names the place whose row it shares. With `keyed` the element is found through
    the chains of rows, otherwise by a scan of the chain of its key. Counts without an element stay
    in `counts`. Returns the head of the free list, how many elements were added, how many were
    examined, and how many were split.
    """
    added = touched = splits = 0
    for i in range(len(rows)):
        chain = row_newest[rows[i]] if keyed else newest[codes[i]]
        place = chain
        while place >= 0 and counts[i] > 0:
            touched += 1
            following = row_older[place] if keyed else older[place]
            if (
                row_at[place] == rows[i]
                and end_at[place] == ends[i]
                and start_at[place] <= starts[i]
                and weight_at[place] > 0
            ):
                taken = min(weight_at[place], counts[i])
                counts[i] -= taken
                cut = place
                if taken < weight_at[place]:
                    weight_at[place] -= taken
                    cut = free
                    free = next_due[cut]
                    split_from[2 * splits] = place
                    split_from[2 * splits + 1] = cut
                    splits += 1
                    added += 1
                    next_due[cut] = -2
                    start_at[cut], weight_at[cut] = start_at[place], taken
                    row_at[cut], code_at[cut] = rows[i], codes[i]
                    _put(cut, codes[i], older, newer, newest)
                    if keyed:
                        _put(cut, rows[i], row_older, row_newer, row_newest)
                end_at[cut] = starts[i]
                if next_due[cut] == -2:  # it had no end, so it is in no partition
                    number = (starts[i] // width) % len(due)
                    next_due[cut] = due[number]
                    due[number] = cut
            place = following
    return free, added, touched, splits


@njit(cache=True)
def _put(place: int, code: int, older: Links, newer: Links, newest: Links) -> None:
    older[place] = newest[code]
    newer[place] = -1
    if newest[code] >= 0:
        newer[newest[code]] = place
    newest[code] = place
