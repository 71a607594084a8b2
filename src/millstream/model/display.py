"""Tables and values for display, as text and as HTML.

>>> import pyarrow as pa
>>> print("\\n".join(text_lines(pa.table({"item": ["vase", None], "price": [5, 12]}))))
item  price
----  -----
vase      5
NULL     12
"""

from __future__ import annotations

import datetime
import unicodedata
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import pyarrow as pa

from millstream.model.types import LAST_TIMESTAMP

_SHOWN_ROWS = 20
_ENDS = {2**63 - 1, pa.scalar(LAST_TIMESTAMP).cast(pa.timestamp("us")).as_py()}


class _Forever:
    """The end of an unbounded validity."""

    def __repr__(self) -> str:
        return "∞"


FOREVER = _Forever()


def rows_of(table: pa.Table) -> list[list[Any]]:
    """The rows as Python values; an unbounded `valid_to` is FOREVER."""
    columns = [_values(name, table.column(i)) for i, name in enumerate(table.column_names)]
    return [list(row) for row in zip(*columns, strict=True)] if columns else []


def _values(name: str, column: pa.ChunkedArray) -> list[Any]:
    values: list[Any] = column.to_pylist()
    if name != "valid_to":
        return values
    return [FOREVER if value in _ENDS else value for value in values]


def text_of(value: Any) -> str:
    """A value on one line; control characters are escaped."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    return "".join(c if c.isprintable() else _escaped(c) for c in str(value))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


# --- text -----------------------------------------------------------------------------------------


def text_lines(table: pa.Table) -> list[str]:
    """The names of the columns, a rule, and one line per row; numbers are right-aligned."""
    names = [text_of(name) for name in table.column_names]
    cells = [[text_of(value) for value in row] for row in rows_of(table)]
    widths = [max(map(_width, column)) for column in zip(names, *cells, strict=True)]
    right = [is_number(field.type) for field in table.schema]
    rule = ["-" * width for width in widths]
    return [_line(row, widths, right) for row in (names, rule, *cells)]


def is_number(type: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(test(type) for test in tests)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for cell, width, is_right in zip(cells, widths, right, strict=True):
        space = " " * (width - _width(cell))
        padded.append(space + cell if is_right else cell + space)
    return "  ".join(padded).rstrip()


def _width(text: str) -> int:
    """The width of a text on a terminal, in columns."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


# --- HTML, for notebooks --------------------------------------------------------------------------


def table_html(table: pa.Table) -> str:
    """The first rows, and how many more there are."""
    head = _row_html("th", table.column_names)
    rows = [_row_html("td", map(text_of, row)) for row in rows_of(table.slice(0, _SHOWN_ROWS))]
    more = table.num_rows - len(rows)
    tail = f"<p>… and {more} more</p>" if more > 0 else ""
    return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>{tail}"


def _row_html(tag: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
