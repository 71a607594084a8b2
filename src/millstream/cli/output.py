"""Rows on standard output: a table for people, CSV or JSON lines for programs."""

from __future__ import annotations

import base64
import csv
import datetime
import json
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO

import pyarrow as pa

from millstream.model.display import FOREVER, rows_of, text_lines, text_of


def default_format() -> str:
    """A table on a terminal, CSV in a pipe."""
    return "table" if sys.stdout.isatty() else "csv"


class Output:
    """Writes tables one after the other. The column names are printed at the beginning of a query,
    and again after rows of another query."""

    def __init__(self, format: str, file: TextIO | None = None) -> None:
        self._lines = FORMATS[format]
        self._file = file or sys.stdout
        self._last: str | None = None

    def give(self, query: str, table: pa.Table) -> None:
        """A query without rows also prints its column names, once."""
        if not table.num_rows and query == self._last:
            return
        is_other = query != self._last
        if is_other and self._last is not None:
            print(file=self._file)
        self._last = query
        for line in self._lines(table, is_other):
            print(line, file=self._file)
        self._file.flush()


def _table(table: pa.Table, headed: bool) -> Iterator[str]:
    names, rule, *rows = text_lines(table)
    yield from [names, rule, *rows] if headed else rows


def _csv(table: pa.Table, headed: bool) -> Iterator[str]:
    written = _Lines()
    writer = csv.writer(written, lineterminator="")
    if headed:
        writer.writerow(table.column_names)
    for row in rows_of(table):
        writer.writerow([_csv_value(value) for value in row])
    yield from written


class _Lines(list[str]):
    """The output of a csv.writer, line by line."""

    write = list.append


def _csv_value(value: Any) -> object:
    if value is None or value is FOREVER:
        return ""
    return value if isinstance(value, str | float) else text_of(value)


def _json(table: pa.Table, headed: bool) -> Iterator[str]:
    for row in rows_of(table):
        told = dict(zip(table.column_names, map(_json_value, row), strict=True))
        yield json.dumps(told, ensure_ascii=False)


def _json_value(value: Any) -> object:
    """NULL and an unbounded end are null; types that JSON lacks are strings."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case list():
            return [_json_value(item) for item in value]
        case dict():
            return {name: _json_value(item) for name, item in value.items()}
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case datetime.datetime():
            return value.isoformat(sep=" ")
    return None if value is FOREVER else str(value)


Lines = Callable[[pa.Table, bool], Iterator[str]]
FORMATS: dict[str, Lines] = {"table": _table, "csv": _csv, "json": _json}
