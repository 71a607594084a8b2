"""Versions of rows in chains by key, and lookups at instants.

A version is a row with the interval in which it has one weight. Each key has a chain of current
versions and one of ended versions, the newest first: ends do not increase along it, so once one
version ended too early, all older ones did. In addition there is a queue of all ended versions in
order of end, and a list of the free places.

Changes and lookups are processed together in order of time, so only late lookups need ended
versions, however many changes a batch has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Links = NDArray[np.int32]
Versions = NDArray[Any]  # with dtype VERSION

# A version, contiguous in memory. `row` is -1 at a free place; `older` and `newer` are its
# neighbours in a chain, `next` is the next in the queue.
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
# The head of the free list; the first and the last ended version; the number of versions.
FREE, FIRST, LAST, USED = 0, 1, 2, 3
_FOR_EVER = 2**63 - 1


class VersionPool(NamedTuple):
    """Versions by place; the current version of each row, and its key; the newest current and ended
    versions of each key. -1 means none.

    Kernels take its arrays as separate arguments: with a tuple they would count references at every
    use.
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
    """For codes at `starts`: which lookup finds which row, and its multiplicity; and how many
    versions were examined.

    Changes give the multiplicity of a row from an instant on. Changes and lookups are in order of
    time; at one instant, changes come first. All changes are applied; there must be free places for
    them.
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


# A loop that reassigns its arrays is several times slower. So this one stops when its room is used
# up, and is called again with more.


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
    """Continues at `place` in the chains of code i, until the room is used up; -2 is the start."""
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
    """Change the multiplicity of a row from an instant on: its version ends, and another begins."""
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
    """Put a version at the head of a chain of its row's key."""
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
    """Append a version to the queue of ended ones."""
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
    """Remove the versions that have ended by the frontier."""
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
    """Build the chains of the versions at the first places, which are in order of end, then
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
