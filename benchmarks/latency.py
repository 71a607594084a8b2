"""Latency: one row at a time through filter, join and aggregate, from `send` to the sink.

A row is sent to one of two pushed streams and, once received, one to the other. Timing runs from
there until the sink has received the changes that this makes final. The bound is on the median; the
largest values are due to other load on the machine.
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
    """Microseconds from sending each row to the answer that it makes final."""
    session = ms.Session(engine="local")
    schema = {"t": "BIGINT", "k": "BIGINT", "v": "DOUBLE"}
    feeds = [session.feed(name, schema, time="t") for name in ("A", "B")]
    reached = threading.Event()
    wanted = [0]

    def sink(table: pa.Table, batch: Any) -> None:
        if batch.frontier is not None and batch.frontier >= wanted[0]:
            reached.set()

    found = []
    with session.sql(SQL).start(sink) as running:
        for number in range(warm_up + rows):
            row = {"t": number * 10, "k": number % 50, "v": float(number)}
            first, second = feeds[:: 1 if number % 2 else -1]
            first.send(row)
            while running.progress.rows_in <= 2 * number:  # one row at a time
                time.sleep(0.0005)
            wanted[0] = number * 10
            reached.clear()
            began = time.perf_counter()
            second.send(row)  # the frontier passes the previous row: the answer follows
            reached.wait()
            found.append((time.perf_counter() - began) * 1e6)
    return found[warm_up:]


def report() -> bool:
    """Print the results; returns whether the bound holds."""
    found = measure()
    median, late = np.median(found), np.percentile(found, 99)
    holds = bool(median <= BOUND)
    print("Latency: one row at a time through filter, join and aggregate, send to sink")
    print(f"median {median:,.0f} µs (bound {BOUND:,}), 99 % within {late:,.0f} µs"
          + ("" if holds else "  MISSED"))  # fmt: skip
    return holds
