"""Latency: one row at a time through filter, join and aggregate, from `send` to the sink.

A row of one of two pushed streams is sent, and the clock stops when the sink has got the change it
makes. The bound is on the median; the longest ones belong to whoever shares the machine.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pyarrow as pa

import millstream as ms

BOUND = 1_000  # µs, of the median
SQL = """SELECT a.k, COUNT(*) AS n, SUM(a.v) AS s FROM A WINDOW(RANGE 1000) a
JOIN B WINDOW(RANGE 1000) b ON a.k = b.k WHERE a.v >= 0 GROUP BY a.k EMIT CHANGES"""


def measure(rows: int = 2_000, warm_up: int = 300) -> list[float]:
    """Microseconds from each row that is sent to the answer that it makes certain."""
    session = ms.Session()
    schema = {"t": "BIGINT", "k": "BIGINT", "v": "DOUBLE"}
    feeds = [session.feed(name, schema, time="t") for name in ("A", "B")]
    reached = threading.Event()
    wanted = [0]

    def sink(table: pa.Table, batch: Any) -> None:
        if batch.frontier is not None and batch.frontier >= wanted[0]:
            reached.set()

    found = []
    with session.sql(SQL).start(sink):
        for number in range(warm_up + rows):
            for feed in feeds:  # the second one lets the frontier pass: that is timed
                wanted[0] = number * 10
                reached.clear()
                began = time.perf_counter()
                feed.send({"t": number * 10, "k": number % 50, "v": float(number)})
                if feed is feeds[1]:
                    reached.wait()
                    found.append((time.perf_counter() - began) * 1e6)
    return found[warm_up:]


def report() -> bool:
    """Print what was measured; whether the bound holds."""
    found = measure()
    median, late = np.median(found), np.percentile(found, 99)
    holds = bool(median <= BOUND)
    print("Latency: one row at a time through filter, join and aggregate, send to sink")
    print(f"median {median:,.0f} µs (bound {BOUND:,}), 99 % within {late:,.0f} µs"
          + ("" if holds else "  MISSED"))  # fmt: skip
    return holds
