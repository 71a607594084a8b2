"""Versions of rows in chains by key, and rows of one instant that look them up.

A version is a row with the time in which it holds with one weight. Each key has a chain of those
that hold now and one of those that have ended, the newest first: ends do not increase along it, so
the first one that ended too early says that all behind it did. Besides there is a line of all that
have ended, in the order of their ends, and one of the free places.

Changes of rows and the looking up go on together in order of time, so that what has ended concerns
only what is late, however many changes a batch brings.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Links = NDArray[np.int32]
Versions = NDArray[Any]  # of type VERSION

# A version, together in memory. `row` is -1 at a free place; `older` and `newer` are its neighbours
# in a chain, `next` is the next in line.
VERSION = np.dtype(
    [
        ("start", np.int64),
        ("end", np.int64),
        ("weight", np.int64),
        ("row", np.int32),
        ("older", np.int32),
        ("newer", np.int32),
        ("next", np.int32),
    ]
)
NOW, ENDED = 0, 1  # columns of newest
# Where free places begin; the first and the last version that has ended; how many there are in all.
FREE, FIRST, LAST, USED = 0, 1, 2, 3
_FOR_EVER = 2**63 - 1


class VersionPool(NamedTuple):
    """Versions by place; which one of each row holds now, and its key; the newest versions of each
    key, of those that hold and those that have ended. -1 where there is none.

    Kernels take its arrays one by one: they count references to a tuple's at every use.
    """

    versions: Versions
    holding: Links
    key_of: Links
    newest: Links
    lists: Ints


@njit(cache=True)
def look_up(
    versions: Versions,
    holding: Links,
    key_of: Links,
    newest: Links,
    lists: Ints,
    rows: Ints,
    instants: Ints,
    counts: Ints,
    codes: Ints,
    starts: Ints,
) -> tuple[Ints, Ints, Ints, int]:
    """For codes at `starts`: which of them finds which row, and how often that is there; and how
    many versions were looked at.

    Changes say that a row is there so often from an instant on. Both they and what looks them up
    are in order of time; of one instant, changes come first. All changes are made; there are free
    places for them.
    """
    room = 2 * len(codes) + 16
    found, numbers, weights = np.empty((3, room), np.int64)
    change, i, place, count, touched = 0, 0, -2, 0, 0
    while True:
        change, i, place, count, touched = _follow_chains(
            versions, holding, key_of, newest, lists, rows, instants, counts, codes, starts,
            found, numbers, weights, change, i, place, count, touched,
        )  # fmt: skip
        if i == len(codes):
            break
        found, numbers, weights = _doubled(found), _doubled(numbers), _doubled(weights)
    for j in range(change, len(rows)):
        _change(versions, holding, key_of, newest, lists, rows[j], instants[j], counts[j])
    return found[:count], numbers[:count], weights[:count], touched


# A loop that assigns its arrays anew is several times slower than one that does not: so this one
# stops where its room ends, and goes on from there with more.


@njit(cache=True)
def _follow_chains(
    versions: Versions,
    holding: Links,
    key_of: Links,
    newest: Links,
    lists: Ints,
    rows: Ints,
    instants: Ints,
    counts: Ints,
    codes: Ints,
    starts: Ints,
    found: Ints,
    numbers: Ints,
    weights: Ints,
    change: int,
    i: int,
    place: int,
    count: int,
    touched: int,
) -> tuple[int, int, int, int, int]:
    """From `place` in the chains of code i on, until there is no more room; -2 is the beginning."""
    room, changes, known = len(found), len(rows), len(newest)
    while i < len(codes):
        code, start = codes[i], starts[i]
        if place == -2:
            while change < changes and instants[change] <= start:
                _change(
                    versions, holding, key_of, newest, lists,
                    rows[change], instants[change], counts[change],
                )  # fmt: skip
                change += 1
            place = -1
            if 0 <= code < known:
                place = newest[code, NOW] if newest[code, NOW] >= 0 else newest[code, ENDED]
        while place >= 0:
            version = versions[place]
            if version.start <= start < version.end:
                if count == room:
                    return change, i, place, count, touched
                found[count], numbers[count], weights[count] = i, version.row, version.weight
                count += 1
            touched += 1
            if version.end <= start:
                break
            place = version.older
            if place < 0 and version.end == _FOR_EVER:
                place = newest[code, ENDED]
        place = -2
        i += 1
    return change, i, place, count, touched


@njit(cache=True, inline="always")
def _change(
    versions: Versions,
    holding: Links,
    key_of: Links,
    newest: Links,
    lists: Ints,
    row: int,
    instant: int,
    count: int,
) -> None:
    """From an instant on a row is there so often: its version ends, and another begins."""
    old = holding[row]
    if old >= 0 and versions[old].weight == count:
        return
    if old >= 0:
        _unlink(versions, key_of, newest, old, NOW)
        versions[old].end = instant
        _link(versions, key_of, newest, old, row, ENDED)
        _queue(versions, lists, old)
        holding[row] = -1
    if count != 0:
        place = lists[FREE]
        lists[FREE] = versions[place].next
        lists[USED] += 1
        versions[place].start = instant
        versions[place].end = _FOR_EVER
        versions[place].weight = count
        _link(versions, key_of, newest, place, row, NOW)
        holding[row] = place


@njit(cache=True, inline="always")
def _link(
    versions: Versions, key_of: Links, newest: Links, place: int, row: int, chain: int
) -> None:
    """Put it at the head of a chain of its row's key."""
    code = key_of[row]
    head = newest[code, chain]
    versions[place].row = row
    versions[place].older = head
    versions[place].newer = -1
    if head >= 0:
        versions[head].newer = place
    newest[code, chain] = place


@njit(cache=True, inline="always")
def _unlink(versions: Versions, key_of: Links, newest: Links, place: int, chain: int) -> None:
    older, newer = versions[place].older, versions[place].newer
    if newer >= 0:
        versions[newer].older = older
    else:
        newest[key_of[versions[place].row], chain] = older
    if older >= 0:
        versions[older].newer = newer


@njit(cache=True, inline="always")
def _queue(versions: Versions, lists: Ints, place: int) -> None:
    """Of all that have ended it is the last."""
    versions[place].next = -1
    if lists[LAST] >= 0:
        versions[lists[LAST]].next = place
    else:
        lists[FIRST] = place
    lists[LAST] = place


@njit(cache=True)
def drop_ended(
    versions: Versions, holding: Links, key_of: Links, newest: Links, lists: Ints, frontier: int
) -> None:
    """Take out the versions that have ended by the frontier."""
    place = lists[FIRST]
    while place >= 0 and versions[place].end <= frontier:
        following = versions[place].next
        _unlink(versions, key_of, newest, place, ENDED)
        versions[place].row = -1
        versions[place].next = lists[FREE]
        lists[FREE] = place
        lists[USED] -= 1
        place = following
    lists[FIRST] = place
    if place < 0:
        lists[LAST] = -1


@njit(cache=True)
def link_versions(
    versions: Versions, holding: Links, key_of: Links, newest: Links, lists: Ints, count: int
) -> None:
    """Make the chains of the versions that stand at the first places, in order of end and then of
    start."""
    for place in range(count):
        row = versions[place].row
        if versions[place].end == _FOR_EVER:
            _link(versions, key_of, newest, place, row, NOW)
            holding[row] = place
        else:
            _link(versions, key_of, newest, place, row, ENDED)
            _queue(versions, lists, place)


@njit(cache=True)
def _doubled(array: Ints) -> Ints:
    larger = np.empty(2 * len(array), np.int64)
    larger[: len(array)] = array
    return larger
