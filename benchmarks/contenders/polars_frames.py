"""Polars: the whole input at once, in frames made beforehand, on all cores.

The first form of each workload is the fastest found; the techniques are those of DuckDB's forms:
buckets for joins, and key and time as one number where an order by key and time is needed. Polars'
streaming engine is used where it is faster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pyarrow as pa
from polars import col

from benchmarks.contenders.form import Form
from benchmarks.workloads import BATCH, INFINITY, WINDOW, Workload

NAME = "Polars"
SHARE = 1.0

BUCKET = 4 * WINDOW
SPREAD = 10**12  # more than any time, so that k * SPREAD + t orders by key and time
NUMBER = col.k * SPREAD + col.t
KEY_AND_TIME = {"k": col.x // SPREAD, "valid_from": col.x % SPREAD}

Frames = dict[str, pl.LazyFrame]


def prepare(workload: Workload) -> Frames:
    frames = {name: pl.DataFrame(stream) for name, stream in workload.streams.items()}
    return {name: frame.lazy() for name, frame in frames.items()}


def answer(result: pl.DataFrame) -> pa.Table:
    return result.to_arrow()


# --- joins ----------------------------------------------------------------------------------------


def _near(left: str, right: str) -> pl.Expr:
    return (col(right) - col(left)).is_between(-WINDOW, WINDOW, closed="none")


def _shared(*times: str) -> dict[str, Any]:
    """The intersection of the windows that begin at these times."""
    valid_to = pl.min_horizontal(*times) + WINDOW
    return {"valid_from": pl.max_horizontal(*times), "valid_to": valid_to}


def _in_near_buckets(stream: pl.LazyFrame, name: str) -> pl.LazyFrame:
    """Rows of another stream, in their bucket and, near its edge, also in the next."""
    bucket, within = col.k * 1_000_000 + col.t // BUCKET, col.t % BUCKET
    named = {f"{name}t": "t", f"{name}v": "v"}
    parts = [
        stream.select(g=bucket, **named),
        stream.filter(within < WINDOW).select(g=bucket - 1, **named),
        stream.filter(within >= BUCKET - WINDOW).select(g=bucket + 1, **named),
    ]
    return pl.concat(parts)


def _bucketed_pairs(streams: Frames) -> pl.LazyFrame:
    left = streams["A"].select("k", "t", av="v", g=col.k * 1_000_000 + col.t // BUCKET)
    right = _in_near_buckets(streams["B"], "b")
    return left.join(right, on="g", maintain_order="none").filter(_near("t", "bt"))


def join_buckets(streams: Frames) -> pl.DataFrame:
    pairs = _bucketed_pairs(streams)
    return pairs.select("k", "av", "bv", **_shared("t", "bt")).collect(engine="streaming")


def join_ranges(streams: Frames) -> pl.DataFrame:
    left = streams["A"].select("k", "t", av="v", x=NUMBER)
    right = streams["B"].select(bt="t", bv="v", y=NUMBER)
    pairs = left.join_where(right, col.y > col.x - WINDOW, col.y < col.x + WINDOW)
    return pairs.select("k", "av", "bv", **_shared("t", "bt")).collect()


def join_plain(streams: Frames) -> pl.DataFrame:
    left, right = streams["A"].rename({"v": "av"}), streams["B"].rename({"t": "bt", "v": "bv"})
    pairs = left.join(right, on="k", maintain_order="none").filter(_near("t", "bt"))
    return pairs.select("k", "av", "bv", **_shared("t", "bt")).collect()


def join3_buckets(streams: Frames) -> pl.DataFrame:
    third = _in_near_buckets(streams["C"], "c")
    triples = _bucketed_pairs(streams).join(third, on="g", maintain_order="none")
    triples = triples.filter(_near("t", "ct") & _near("bt", "ct"))
    return triples.select("k", "av", "bv", "cv", **_shared("t", "bt", "ct")).collect()


# --- aggregates -----------------------------------------------------------------------------------


def aggregate_events(streams: Frames) -> pl.DataFrame:
    """Arrivals have a value, expiries none; the count of a key rises and falls back to 0."""
    s, length = streams["S"], f"{WINDOW}i"
    arrivals = s.select(x=NUMBER, v="v", d=pl.lit(1, pl.Int64))
    expiries = s.select(x=NUMBER + WINDOW, v=pl.lit(None, pl.Float64), d=pl.lit(-1, pl.Int64))
    largest = col.v.rolling_max_by("x", length, closed="right")
    sweep = pl.concat([arrivals, expiries]).sort("x")
    sweep = sweep.select("x", n=col.d.cum_sum(), m=largest, y=col.x.shift(-1))
    pieces = sweep.filter((col.n > 0) & (col.y > col.x))
    return pieces.select("n", "m", **KEY_AND_TIME, valid_to=col.y % SPREAD).collect()


def aggregate_arrivals(streams: Frames) -> pl.DataFrame:
    windows = streams["S"].sort("k", "t").rolling("t", period=f"{WINDOW}i", group_by="k")
    return windows.agg(n=pl.len(), m=col.v.max()).collect()


def rows_rolling(streams: Frames) -> pl.DataFrame:
    """The stream is in the order of time already."""
    total = col.v.rolling_sum(1000, min_samples=1)
    valid_to = col.t.shift(-1, fill_value=INFINITY)
    return streams["S"].select(s=total, valid_from="t", valid_to=valid_to).collect()


def doubles_whole(streams: Frames) -> pl.DataFrame:
    """Random doubles are integer multiples of 2⁻⁵³, so their sums are rounded once."""
    whole = streams["S"].with_columns(v=(col.v * 2**53).cast(pl.Int64))
    return rows_rolling({"S": whole}).with_columns(s=col.s.cast(pl.Float64) / 2**53)


# --- distinct, difference, anti-join --------------------------------------------------------------


def _islands(stream: pl.LazyFrame) -> pl.LazyFrame:
    """Where a key is present without a gap, from x to e."""
    rows = stream.select(x=NUMBER).sort("x")
    rows = rows.with_columns(before=col.x.shift(1, fill_value=-SPREAD), last=col.x.last())
    begun = rows.filter(col.x > col.before + WINDOW)
    return begun.select("x", e=col.before.shift(-1).fill_null(col.last) + WINDOW)


def distinct_islands(streams: Frames) -> pl.DataFrame:
    return _islands(streams["S"]).select(**KEY_AND_TIME, valid_to=col.e % SPREAD).collect()


def difference_islands(streams: Frames) -> pl.DataFrame:
    """A is present, which counts 1, and B, which counts 2, is not."""
    events = []
    for stream, step in ((streams["A"], 1), (streams["B"], 2)):
        islands = _islands(stream)
        events.append(islands.select("x", d=pl.lit(step, pl.Int8)))
        events.append(islands.select(x="e", d=pl.lit(-step, pl.Int8)))
    sweep = pl.concat(events).sort("x").select("x", present=col.d.cum_sum(), y=col.x.shift(-1))
    pieces = sweep.filter((col.present == 1) & (col.y > col.x))
    return pieces.select(**KEY_AND_TIME, valid_to=col.y % SPREAD).collect(engine="streaming")


def antijoin_fill(streams: Frames) -> pl.DataFrame:
    """A row of A is free from the end of the last row of B before it to the next one after it."""
    nothing = pl.lit(None, pl.Int64)
    rows = streams["A"].select(x=NUMBER, v="v", b=nothing)
    covers = streams["B"].select(x=NUMBER, v=nothing, b=NUMBER)
    begin = pl.max_horizontal("x", col.b.forward_fill() + WINDOW)
    end = pl.min_horizontal(col.x + WINDOW, col.b.backward_fill())
    sweep = pl.concat([rows, covers]).sort("x").select("x", "v", f=begin, e=end)
    free = sweep.filter((col.e > col.f) & col.v.is_not_null())
    times = {"valid_from": col.f % SPREAD, "valid_to": col.e % SPREAD}
    return free.select("v", k=col.x // SPREAD, **times).collect()


def antijoin_asof(streams: Frames) -> pl.DataFrame:
    rows = streams["A"].select("v", x=NUMBER).sort("x")
    covers = streams["B"].select(x=NUMBER, b=NUMBER).sort("x")
    last = rows.join_asof(covers, on="x", strategy="backward")
    both = last.join_asof(
        covers, on="x", strategy="forward", allow_exact_matches=False, suffix="_next"
    )
    begin = pl.max_horizontal("x", col.b + WINDOW)
    free = both.select("x", "v", f=begin, e=pl.min_horizontal(col.x + WINDOW, "b_next"))
    times = {"valid_from": col.f % SPREAD, "valid_to": col.e % SPREAD}
    return free.filter(col.e > col.f).select("v", k=col.x // SPREAD, **times).collect()


# --- filter and map -------------------------------------------------------------------------------

NOW = {"valid_from": col.t, "valid_to": col.t + 1}


def filter_rows(stream: pl.LazyFrame) -> pl.LazyFrame:
    return stream.filter((col.k % 10 == 3) & (col.v > 0.5)).select("k", "v", **NOW)


def map_rows(stream: pl.LazyFrame) -> pl.LazyFrame:
    columns = {"x": col.k * 2 + 1, "y": col.v * 0.89, "z": col.v * col.v + col.k}
    return stream.select(**columns, **NOW)


def _at_once_and_in_batches(query: Callable[[pl.LazyFrame], pl.LazyFrame]) -> list[Form]:
    """The query over all rows at once, and batch by batch as they would arrive."""

    def at_once(streams: Frames) -> pl.DataFrame:
        return query(streams["S"]).collect(engine="streaming")

    def in_batches(streams: Frames) -> pl.DataFrame:
        batches = streams["S"].collect().iter_slices(BATCH)
        return pl.concat([query(batch.lazy()).collect() for batch in batches], rechunk=False)

    return [
        Form("lazy frame", at_once),
        Form(f"batches of {BATCH:,}", in_batches, always=True),
    ]


# --- the latest of a key --------------------------------------------------------------------------


def latest_asof(streams: Frames) -> pl.DataFrame:
    right = streams["B"].select("t", "k", bv="v")
    found = streams["A"].join_asof(right, on="t", by="k", check_sortedness=False)
    given = found.filter(col.bv.is_not_null())
    return given.select("k", "bv", av="v", valid_from="t", valid_to=col.t + 1).collect()


FORMS = {
    "join": [
        Form("buckets by hand", join_buckets),
        Form("two ranges", join_ranges),
        Form("join and filter", join_plain, always=True),
    ],
    "aggregate": [
        Form("arrivals and expiries", aggregate_events),
        Form("arrivals only", aggregate_arrivals, exact=False),
    ],
    "distinct": [Form("islands, one number", distinct_islands)],
    "difference": [Form("sweep over islands", difference_islands)],
    "antijoin": [Form("last and next", antijoin_fill), Form("ASOF joins", antijoin_asof)],
    "rows": [Form("rolling sum", rows_rolling)],
    "doubles": [
        Form("rolling sum of integers", doubles_whole),
        Form("rolling sum, inexact", rows_rolling, exact=False),
    ],
    "join3": [Form("buckets by hand", join3_buckets)],
    "latest": [Form("ASOF join", latest_asof)],
    "filter": _at_once_and_in_batches(filter_rows),
    "map": _at_once_and_in_batches(map_rows),
}
