"""Stateless queries, entirely as Spark SQL.

Every operator becomes a Spark operator over the columns c0, c1, … of its input and the chronons
`start` and `end` between which a row is valid. Spark fuses them into one pass over the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.logical.analysis import lives_one_instant
from millstream.logical.catalog import Stream
from millstream.logical.plan import Filter, Map, Plan, Schema, Source, TimeWindow, Union
from millstream.model.time import INFINITY
from millstream.model.types import LAST_TIMESTAMP
from millstream.spark import native_intake
from millstream.spark.native import Names, spark_sql
from millstream.spark.sql_text import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TIMES = ("start", "end")


@dataclass(frozen=True)
class NativeQuery:
    """A plan that Spark can run by itself, with its streams by name."""

    plan: Plan
    streams: Mapping[str, Stream]

    def frame(self, frames: Mapping[str, DataFrame]) -> DataFrame:
        """The answer over typed frames of the streams, with `valid_from` and `valid_to`.

        Bad rows are left out; `refused` returns them. Equal rows are not coalesced, and there is no
        order.
        """
        schema = self.plan.schema
        names = [f"{_name(number)} AS {quoted(field.name)}" for number, field in enumerate(schema)]
        times = [_shown(self.plan, "start", "valid_from"), _shown(self.plan, "end", "valid_to")]
        return self._rows(self.plan, frames).selectExpr(*names, *times)

    def refused(self, frames: Mapping[str, DataFrame], stream: str) -> DataFrame:
        """The bad rows of a stream, with the reason in `fault`."""
        why = native_intake.fault(self.streams[stream])
        return frames[stream].selectExpr("*", f"{why} AS fault").where("fault IS NOT NULL")

    def _rows(self, plan: Plan, frames: Mapping[str, DataFrame]) -> DataFrame:
        match plan:
            case Source():
                return self._source(plan, frames[plan.stream])
            case Filter():
                condition = spark_sql(plan.predicate, _names(plan.schema))
                assert condition is not None
                return self._rows(plan.input, frames).where(condition)
            case Map():
                texts = [spark_sql(o.expression, _names(plan.input.schema)) for o in plan.outputs]
                outputs = [f"{text} AS {_name(number)}" for number, text in enumerate(texts)]
                return self._rows(plan.input, frames).selectExpr(*outputs, *_TIMES)
            case TimeWindow():
                rows = self._rows(plan.input, frames)
                kept = [_name(number) for number in range(len(plan.schema))]
                return rows.selectExpr(*kept, *_windowed(plan)).where("start < end")
            case Union():
                return self._rows(plan.left, frames).union(self._rows(plan.right, frames))
        raise AssertionError(plan)

    def _source(self, plan: Source, frame: DataFrame) -> DataFrame:
        stream = self.streams[plan.stream]
        columns = [f"{quoted(f.name)} AS {_name(n)}" for n, f in enumerate(stream.columns)]
        times = native_intake.start(stream), native_intake.end(stream)
        sound = frame.where(f"{native_intake.fault(stream)} IS NULL")
        return sound.selectExpr(
            *columns, *(f"{time} AS {name}" for time, name in zip(times, _TIMES, strict=True))
        )


def native_query(plan: Plan, streams: Mapping[str, Stream]) -> NativeQuery | None:
    """The plan for plain Spark, or None if part of it needs Millstream's operators. For EMIT
    FINAL."""
    return NativeQuery(plan, streams) if _is_native(plan, streams) else None


def _is_native(plan: Plan, streams: Mapping[str, Stream]) -> bool:
    match plan:
        case Source():
            known = plan.stream in streams and bool(streams[plan.stream].time)
            plain = all("${" not in field.name for field in plan.schema)
            return known and plain and not plan.arrival
        case Filter():
            own = spark_sql(plan.predicate, _names(plan.schema)) is not None
        case Map():
            names = _names(plan.input.schema)
            own = all(spark_sql(o.expression, names) is not None for o in plan.outputs)
        case TimeWindow():
            own = plan.minimum is None and plan.granule == 1 and lives_one_instant(plan.input)
        case _:
            own = isinstance(plan, Union)
    return own and all(_is_native(child, streams) for child in plan.inputs)


def _names(schema: Schema) -> Names:
    return {field.key: _name(number) for number, field in enumerate(schema)}


def _name(number: int) -> str:
    return f"c{number}"


def _windowed(window: TimeWindow) -> tuple[str, str]:
    """When the rows of an instant enter a window, and when they leave it."""
    if window.size == INFINITY:
        return f"{_enter('start', window.slide)} AS start", f"{INFINITY}L AS end"
    until = f"(start + {window.size}L)"
    return f"{_enter('start', window.slide)} AS start", f"{_enter(until, window.slide)} AS end"


def _enter(instant: str, slide: int) -> str:
    """The last instant of the slide that contains `instant`."""
    return instant if slide == 1 else f"{instant} - PMOD({instant}, {slide}L) + {slide - 1}L"


def _shown(plan: Plan, time: str, name: str) -> str:
    if pa.types.is_timestamp(plan.domain.type):
        time = f"TIMESTAMP_MICROS(LEAST({time}, {LAST_TIMESTAMP}L))"
    return f"{time} AS {name}"
