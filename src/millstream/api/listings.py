"""The results of SHOW STREAMS, SHOW TABLES and SHOW QUERIES."""

from __future__ import annotations

import pyarrow as pa

from millstream.logical.catalog import Catalog, DerivedStream, Stream, Table
from millstream.logical.text import literal_text
from millstream.model import types


def streams_table(catalog: Catalog, kind: str) -> pa.Table:
    """The streams, or the tables."""
    rows = [
        {
            "name": stream.name,
            "kind": _kind(stream),
            "columns": _columns(stream),
            "time": _time(stream),
        }
        for stream in catalog.streams
        if stream.kind == kind
    ]
    return _table(rows, "name", "kind", "columns", "time")


def _columns(stream: Stream | DerivedStream) -> str:
    comments = dict(stream.comments) if isinstance(stream, Stream) else {}
    texts = []
    for column in stream.columns:
        text = f"{column.name} {types.sql_name(column.type)}"
        if column.name in comments:
            text += f" COMMENT {literal_text(comments[column.name], types.STRING)}"
        texts.append(text)
    return ", ".join(texts)


def queries_table(catalog: Catalog) -> pa.Table:
    rows = [
        {"name": query.name, "state": query.state, "query": query.text} for query in catalog.queries
    ]
    return _table(rows, "name", "state", "query")


def _table(rows: list[dict[str, str]], *names: str) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=pa.schema([(name, pa.string()) for name in names]))


def _kind(stream: Stream | DerivedStream) -> str:
    if isinstance(stream, DerivedStream):
        return "derived"
    return stream.changes.value.lower() if isinstance(stream, Table) else "source"


def _time(stream: Stream | DerivedStream) -> str:
    if isinstance(stream, DerivedStream):
        return stream.plan.domain.describe()
    if not stream.time:
        return "as it changes" if isinstance(stream, Table) else "time of arrival"
    if len(stream.time) == 2:
        return f"valid from {stream.time[0]} to {stream.time[1]}"
    return stream.time[0]
