"""Versions of rows in chains by key, and rows of one instant that look them up.

A version is a row with the time in which it holds with one weight. Each key has a chain of those
that hold now and one of those that have ended, the newest first: ends do not increase along it, so
the first one that ended too early says that all behind it did. Further links are the row, and the
next in line: of all versions that have ended, in the order of their ends, or of the free places.

Changes of rows and the looking up go on together in order of time, so that what has ended concerns
only what is late, however many changes a batch brings.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Links = NDArray[np.int32]

START, END = 0, 1  # columns of times
ROW, OLDER, NEWER, NEXT = 0, 1, 2, 3  # columns of links; the row of a free place is -1
NOW, ENDED = 0, 1  # columns of newest
# Where free places begin; the first and the last version that has ended; how many there are in all.
FREE, FIRST, LAST, USED = 0, 1, 2, 3
_FOR_EVER = 2**63 - 1


class Pool(NamedTuple):
    """Versions by place; which one of each row holds now, and its key; the newest versions of each
    key, of those that hold and those that have ended. -1 where there is none."""

    times: Ints
    weights: Ints
    links: Links
    holding: Links
    key_of: Links
    newest: Links
    lists: Ints


@njit(cache=True)
def look_up(
    pool: Pool, rows: Ints, instants: Ints, counts: Ints, codes: Ints, starts: Ints
) -> tuple[Ints, Ints, int]:
    """Pairs (i, place) of the rows that come at `starts` with the versions of their code that hold
    then; and how many versions were looked at.

    Changes say that a row is there so often from an instant on. Both they and what looks them up
    are in order of time; of one instant, changes come first. All changes are made; there are free
    places for them.
    """
    room = 2 * len(codes) + 16
    found, places = np.empty(room, np.int64), np.empty(room, np.int64)
    change, i, place, count, touched = 0, 0, -2, 0, 0
    while True:
        change, i, place, count, touched = _follow_chains(
            pool, rows, instants, counts, codes, starts,
            found, places, change, i, place, count, touched,
        )  # fmt: skip
        if i == len(codes):
            break
        found, places = _doubled(found), _doubled(places)
    for j in range(change, len(rows)):
        _change(pool, rows[j], instants[j], counts[j])
    return found[:count], places[:count], touched


# A loop that assigns its arrays anew is several times slower than one that does not: so this one
# stops where its room ends, and goes on from there with more.


@njit(cache=True)
def _follow_chains(
    pool: Pool,
    rows: Ints,
    instants: Ints,
    counts: Ints,
    codes: Ints,
    starts: Ints,
    found: Ints,
    places: Ints,
    change: int,
    i: int,
    place: int,
    count: int,
    touched: int,
) -> tuple[int, int, int, int, int]:
    """From `place` in the chain of row i on, until there is no more room; -2 is its beginning."""
    times, links, newest = pool.times, pool.links, pool.newest
    room, changes, known = len(found), len(rows), len(newest)
    while i < len(codes):
        code, start = codes[i], starts[i]
        if place == -2:
            while change < changes and instants[change] <= start:
                _change(pool, rows[change], instants[change], counts[change])
                change += 1
            place = -1
            if 0 <= code < known:
                place = newest[code, NOW] if newest[code, NOW] >= 0 else newest[code, ENDED]
        while place >= 0:
            end = times[place, END]
            if times[place, START] <= start < end:
                if count == room:
                    return change, i, place, count, touched
                found[count] = i
                places[count] = place
                count += 1
            touched += 1
            if end <= start:
                break
            place = links[place, OLDER]
            if place < 0 and end == _FOR_EVER:
                place = newest[code, ENDED]
        place = -2
        i += 1
    return change, i, place, count, touched


@njit(cache=True)
def _change(pool: Pool, row: int, instant: int, count: int) -> None:
    """From an instant on a row is there so often: its version ends, and another begins."""
    old = pool.holding[row]
    if old >= 0:
        if pool.weights[old] == count:
            return
        _unlink(pool, old, NOW)
        pool.times[old, END] = instant
        _link(pool, old, row, ENDED)
        _queue(pool, old)
        pool.holding[row] = -1
    if count != 0:
        place = pool.lists[FREE]
        pool.lists[FREE] = pool.links[place, NEXT]
        pool.lists[USED] += 1
        pool.times[place, START], pool.times[place, END] = instant, _FOR_EVER
        pool.weights[place] = count
        _link(pool, place, row, NOW)
        pool.holding[row] = place


@njit(cache=True)
def _link(pool: Pool, place: int, row: int, chain: int) -> None:
    """Put it at the head of a chain of its row's key."""
    links, code = pool.links, pool.key_of[row]
    head = pool.newest[code, chain]
    links[place, ROW], links[place, OLDER], links[place, NEWER] = row, head, -1
    if head >= 0:
        links[head, NEWER] = place
    pool.newest[code, chain] = place


@njit(cache=True)
def _unlink(pool: Pool, place: int, chain: int) -> None:
    links = pool.links
    older, newer = links[place, OLDER], links[place, NEWER]
    if newer >= 0:
        links[newer, OLDER] = older
    else:
        pool.newest[pool.key_of[links[place, ROW]], chain] = older
    if older >= 0:
        links[older, NEWER] = newer


@njit(cache=True)
def _queue(pool: Pool, place: int) -> None:
    """Of all that have ended it is the last."""
    pool.links[place, NEXT] = -1
    if pool.lists[LAST] >= 0:
        pool.links[pool.lists[LAST], NEXT] = place
    else:
        pool.lists[FIRST] = place
    pool.lists[LAST] = place


@njit(cache=True)
def drop_ended(pool: Pool, frontier: int) -> None:
    """Take out the versions that have ended by the frontier."""
    links, lists = pool.links, pool.lists
    place = lists[FIRST]
    while place >= 0 and pool.times[place, END] <= frontier:
        following = links[place, NEXT]
        _unlink(pool, place, ENDED)
        links[place, ROW], links[place, NEXT] = -1, lists[FREE]
        lists[FREE] = place
        lists[USED] -= 1
        place = following
    lists[FIRST] = place
    if place < 0:
        lists[LAST] = -1


@njit(cache=True)
def link_versions(pool: Pool, rows: Ints) -> None:
    """Make the chains of versions that stand at the first places, in order of end and then of
    start, of these rows."""
    for place in range(len(rows)):
        if pool.times[place, END] == _FOR_EVER:
            _link(pool, place, rows[place], NOW)
            pool.holding[rows[place]] = place
        else:
            _link(pool, place, rows[place], ENDED)
            _queue(pool, place)


@njit(cache=True)
def _doubled(array: Ints) -> Ints:
    larger = np.empty(2 * len(array), np.int64)
    larger[: len(array)] = array
    return larger
