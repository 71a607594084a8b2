"""Stream declarations by methods of a session: name, columns, time, delay and keys."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.connectors.intake.data import check_columns
from millstream.logical.catalog import Stream, column_named
from millstream.logical.plan import Schema
from millstream.model.durations import length
from millstream.model.errors import DataError
from millstream.model.names import Name
from millstream.sql.declarations import number_unit, time_domain


def stream_of(
    name: str,
    columns: Schema,
    time: str | tuple[str, str] | None,
    delay: str | int | None,
    idle: str | int | None,
    unit: str | None,
    unique: Sequence[str],
    bounded: bool = False,
) -> Stream:
    """The stream that a method of the session declares."""
    check_name(name)
    check_columns(columns, name)
    times = () if time is None else (time,) if isinstance(time, str) else tuple(time)
    if len(times) > 2 or len(set(times)) < len(times):
        raise DataError("time names one column, or the two between which a row is valid")
    domain = time_domain(columns, [Name(column) for column in times], unit, name)
    return Stream(
        name,
        columns,
        domain,
        tuple(column_named(columns, Name(column), name).name for column in times),
        length(delay, domain, "the delay") or 0,
        length(idle, domain, "the idle time"),
        bounded=bounded,
        unique=(_unique(columns, unique, name),) if unique else (),
        unit=number_unit(domain, unit),
    )


def one_delay(delay: str | int | None, watermark: str | int | None) -> str | int | None:
    if delay is not None and watermark is not None:
        raise DataError("delay and watermark are the same", help="leave one of them out")
    return watermark if delay is None else delay


def _unique(columns: Schema, names: Sequence[str], stream: str) -> tuple[str, ...]:
    if isinstance(names, str):
        raise DataError(f'unique is a list of columns: ["{names}"]')
    return tuple(column_named(columns, Name(column), stream).name for column in names)


def check_unit(stream: Stream) -> None:
    """Reject a unit for times that are not numbers in the data."""
    if stream.unit is not None:
        raise DataError(
            f'stream "{stream.name}": column "{stream.time[0]}" is a TIMESTAMP, which has its own '
            "unit",
            help="leave the unit out",
        )


def check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise DataError(f"a stream needs a name, not {name!r}")
