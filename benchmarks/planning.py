"""Measures planning: the processor time from a bound query to its operators.

Chains, stars and cliques of windowed streams with groups above, with declared rates; and the same
streams with ten times as many rows as the processors can handle, so that shedding is planned too.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping

import millstream as ms

BOUNDS = {6: 0.05, 10: 1.0}  # seconds, by inputs
SHEDDING = {10: 5.0}
REPEAT = 5  # the minimum of this many runs

Condition = Callable[[int], str]

SHAPES: Mapping[str, Condition] = {
    "chain": lambda i: f"s{i - 1}.{'ku'[i % 2]} = s{i}.{'ku'[i % 2]}",
    "star": lambda i: f"s0.{'kuv'[i % 3]} = s{i}.{'kuv'[i % 3]}",
    "clique": lambda i: " AND ".join(f"s{j}.k = s{i}.k" for j in range(i)),
}


def query_of(shape: str, inputs: int, shed: bool = False) -> ms.Query:
    session = ms.Session(engine="local", shed=shed)
    for i in range(inputs):
        rate = (1 + 7 * i % 5) * (100_000 if shed else 1_000)
        session.sql(
            f"CREATE STREAM S{i} (t BIGINT, k BIGINT, u BIGINT, v BIGINT) SOURCE memory('S{i}') "
            f"ORDERED BY t UNIT MICROSECONDS WITH (rate = {rate}, "
            f"distinct(k) = {100 * (1 + 3 * i % 4)}, distinct(u) = {1000 + 100 * i})"
        )
    windows = [f"S{i} WINDOW(RANGE {1 + i % 3} SECONDS) s{i}" for i in range(inputs)]
    joined = [f"JOIN {windows[i]} ON {SHAPES[shape](i)}" for i in range(1, inputs)]
    sql = f"SELECT s0.v, COUNT(*) AS n FROM {windows[0]} {' '.join(joined)} GROUP BY s0.v"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        query = session.sql(sql)
    assert isinstance(query, ms.Query)
    return query


def seconds(shape: str, inputs: int, shed: bool = False) -> float:
    """Processor seconds until the operators and what they may shed are known."""
    query = query_of(shape, inputs, shed)
    began = time.process_time()
    _ = query.physical_plan
    if shed:
        query.estimates()
    return time.process_time() - began


def report(quick: bool = False) -> None:
    seconds("chain", 3, shed=True)  # imports what it needs
    for shed, bounds in ((False, BOUNDS), (True, SHEDDING)):
        for inputs, bound in bounds.items():
            for shape in SHAPES:
                repeat = range(1 if quick else REPEAT)
                least = min(seconds(shape, inputs, shed) for _ in repeat)
                title = f"{shape} of {inputs}" + (" with drops" if shed else "")
                missed = "" if least < bound else f"   misses {bound * 1000:.0f} ms"
                print(f"{title:<28}{least * 1000:>8.0f} ms{missed}", flush=True)
