"""Plain Python: row by row as they arrive, with dictionaries and deques, written in the obvious
way.

It gets only the first part of the data, since it is slow; rates and windows are the same, so its
rows per second are comparable. Its input is lists; building them is not timed.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Iterable
from itertools import product
from typing import Any

import pyarrow as pa

from benchmarks.contenders.form import Form
from benchmarks.workloads import INFINITY, WINDOW, Workload

NAME = "Python"
SHARE = 0.1

Row = tuple[Any, ...]
Arrivals = list[tuple[int, int, int, Any]]  # time, number of the stream, key, value


def prepare(workload: Workload) -> tuple[Arrivals, Workload]:
    streams = []
    for number, stream in enumerate(workload.streams.values()):
        t, k, v = (stream[name].to_pylist() for name in ("t", "k", "v"))
        streams.append(zip(t, [number] * len(t), k, v, strict=True))
    return list(heapq.merge(*streams)), workload


def answer(result: tuple[list[Row], Workload]) -> pa.Table:
    rows, workload = result
    columns = (*workload.columns, "valid_from", "valid_to")
    if not rows:
        return pa.table({name: pa.array([], pa.int64()) for name in columns})
    return pa.table(dict(zip(columns, map(pa.array, zip(*rows, strict=True)), strict=True)))


# --- joins ----------------------------------------------------------------------------------------

Window = dict[int, deque[tuple[int, Any]]]


def _live(window: Window, key: int, now: int) -> Iterable[tuple[int, Any]]:
    """The rows of a key that have not expired; the others are forgotten."""
    rows = window.get(key)
    if rows is None:
        return ()
    while rows and rows[0][0] + WINDOW <= now:
        rows.popleft()
    return rows


def join(arrivals: Arrivals) -> list[Row]:
    out: list[Row] = []
    windows: tuple[Window, Window] = defaultdict(deque), defaultdict(deque)
    for t, side, k, v in arrivals:
        for since, other in _live(windows[1 - side], k, t):
            pair = (v, other) if side == 0 else (other, v)
            out.append((k, *pair, t, since + WINDOW))
        windows[side][k].append((t, v))
    return out


def join3(arrivals: Arrivals) -> list[Row]:
    out: list[Row] = []
    windows: tuple[Window, ...] = tuple(defaultdict(deque) for _ in range(3))
    for t, side, k, v in arrivals:
        windows[side][k].append((t, v))
        live = [_live(window, k, t) for window in windows]
        live[side] = [(t, v)]
        for (at, av), (bt, bv), (ct, cv) in product(*live):
            out.append((k, av, bv, cv, t, min(at, bt, ct) + WINDOW))
    return out


def latest(arrivals: Arrivals) -> list[Row]:
    out: list[Row] = []
    values: dict[int, Any] = {}
    waiting: list[tuple[int, int, Any]] = []  # the row of A at this instant: B's may still come
    for t, side, k, v in arrivals:
        if waiting and (side == 0 or waiting[0][0] < t):
            out.extend(_found(values, *waiting.pop()))
        if side == 0:
            waiting.append((t, k, v))
        else:
            values[k] = v
    if waiting:
        out.extend(_found(values, *waiting.pop()))
    return out


def _found(values: dict[int, Any], t: int, k: int, v: Any) -> list[Row]:
    other = values.get(k)
    return [] if other is None else [(k, v, other, t, t + 1)]


# --- aggregates -----------------------------------------------------------------------------------


class Group:
    """A count, the rows that may become the largest, and when the current values started."""

    __slots__ = ("best", "count", "since")

    def __init__(self) -> None:
        self.count = 0
        self.since = 0
        self.best: deque[tuple[int, float]] = deque()


def aggregate(arrivals: Arrivals) -> list[Row]:
    out: list[Row] = []
    groups: dict[int, Group] = {}
    agenda: deque[tuple[int, int]] = deque()

    def change(key: int, group: Group, at: int) -> None:
        if group.count and at > group.since:
            out.append((key, group.count, group.best[0][1], group.since, at))
        group.since = at

    def expire(now: int) -> None:
        while agenda and agenda[0][0] + WINDOW <= now:
            t, key = agenda.popleft()
            group = groups[key]
            change(key, group, t + WINDOW)
            group.count -= 1
            if group.best[0][0] == t:
                group.best.popleft()
            if not group.count:
                del groups[key]

    for t, _, k, v in arrivals:
        expire(t)
        group = groups.setdefault(k, Group())
        change(k, group, t)
        group.count += 1
        while group.best and group.best[-1][1] <= v:
            group.best.pop()
        group.best.append((t, v))
        agenda.append((t, k))
    expire(INFINITY)
    return out


def rows(arrivals: Arrivals) -> list[Row]:
    out: list[Row] = []
    window: deque[int] = deque()
    total, since = 0, None
    for t, _, _, v in arrivals:
        if since is not None:
            out.append((total, since, t))
        if len(window) == 1000:
            total -= window.popleft()
        window.append(v)
        total, since = total + v, t
    out.append((total, since, INFINITY))
    return out


def doubles(arrivals: Arrivals) -> list[Row]:
    """Exact for any finite doubles: they are integers in units of the finest one so far."""
    out: list[Row] = []
    window: deque[int] = deque()
    total, unit, since = 0, 1, None
    for t, _, _, v in arrivals:
        if since is not None:
            out.append((total / unit, since, t))
        if len(window) == 1000:
            total -= window.popleft()
        whole, parts = v.as_integer_ratio()
        if parts > unit:
            window = deque(value * (parts // unit) for value in window)
            total, unit = total * (parts // unit), parts
        whole *= unit // parts
        window.append(whole)
        total, since = total + whole, t
    out.append((total / unit, since, INFINITY))
    return out


# --- distinct, difference, anti-join --------------------------------------------------------------


def distinct(arrivals: Arrivals) -> list[Row]:
    out: list[Row] = []
    present: dict[int, list[int]] = {}
    for t, _, k, _ in arrivals:
        piece = present.get(k)
        if piece is not None and t <= piece[1]:
            piece[1] = t + WINDOW
            continue
        if piece is not None:
            out.append((k, *piece))
        present[k] = [t, t + WINDOW]
    out.extend((k, *piece) for k, piece in present.items())
    return out


def difference(arrivals: Arrivals) -> list[Row]:
    out: list[Row] = []
    counts: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    begun: dict[int, int] = {}
    agenda: deque[tuple[int, int, int]] = deque()

    def change(at: int, side: int, key: int, step: int) -> None:
        count = counts[key]
        count[side] += step
        if count[0] and not count[1]:
            begun.setdefault(key, at)
        elif key in begun:
            since = begun.pop(key)
            if at > since:
                out.append((key, since, at))

    def expire(now: int) -> None:
        while agenda and agenda[0][0] + WINDOW <= now:
            t, side, key = agenda.popleft()
            change(t + WINDOW, side, key, -1)

    for t, side, k, _ in arrivals:
        expire(t)
        change(t, side, k, 1)
        agenda.append((t, side, k))
    expire(INFINITY)
    return out


def antijoin(arrivals: Arrivals) -> list[Row]:
    out: list[Row] = []
    live: Window = defaultdict(deque)  # rows of A
    covers: dict[int, int] = defaultdict(int)  # how many rows of B have the key
    free: dict[int, int] = {}  # since when there is none
    agenda: deque[tuple[int, int, int]] = deque()

    def give(key: int, row: tuple[int, Any], at: int) -> None:
        since = max(row[0], free.get(key, 0))
        if at > since:
            out.append((key, row[1], since, at))

    def expire(now: int) -> None:
        while agenda and agenda[0][0] + WINDOW <= now:
            t, side, key = agenda.popleft()
            if side == 1:
                covers[key] -= 1
                if not covers[key]:
                    free[key] = t + WINDOW
            else:
                row = live[key].popleft()
                if not covers[key]:
                    give(key, row, t + WINDOW)

    for t, side, k, v in arrivals:
        expire(t)
        if side == 0:
            live[k].append((t, v))
        else:
            if not covers[k]:
                for row in live[k]:
                    give(k, row, t)
            covers[k] += 1
        agenda.append((t, side, k))
    expire(INFINITY)
    return out


# --- filter and map -------------------------------------------------------------------------------


def filter_rows(arrivals: Arrivals) -> list[Row]:
    return [(k, v, t, t + 1) for t, _, k, v in arrivals if k % 10 == 3 and v > 0.5]


def map_rows(arrivals: Arrivals) -> list[Row]:
    return [(k * 2 + 1, v * 0.89, v * v + k, t, t + 1) for t, _, k, v in arrivals]


def _form(function: Any, name: str = "row by row", exact: bool = True) -> list[Form]:
    def run(prepared: tuple[Arrivals, Workload]) -> tuple[list[Row], Workload]:
        return function(prepared[0]), prepared[1]

    return [Form(name, run, exact)]


FORMS = {
    "join": _form(join),
    "aggregate": _form(aggregate),
    "distinct": _form(distinct),
    "difference": _form(difference),
    "antijoin": _form(antijoin),
    "rows": _form(rows),
    "doubles": _form(doubles) + _form(rows, "running sum, inexact", exact=False),
    "join3": _form(join3),
    "latest": _form(latest),
    "filter": _form(filter_rows),
    "map": _form(map_rows),
}
