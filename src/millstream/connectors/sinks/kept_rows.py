"""Sinks that keep a table: they take changes, and have the rows that these leave."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.connectors.contracts import SinkContext
from millstream.connectors.tables.comparing import net_changes
from millstream.connectors.tables.table_source import TableChanges
from millstream.model.errors import QueryError

_OF_CHANGES = ("at", "change")


def kept_schema(context: SinkContext, sink: str) -> pa.Schema:
    """The columns of the rows alone."""
    if context.emit != "CHANGES":
        raise QueryError(
            f'sink "{sink}" keeps a table from changes, and the query gives EMIT {context.emit}',
            help="write EMIT CHANGES, or CREATE MATERIALIZED VIEW … INTO",
        )
    return pa.schema([field for field in context.schema if field.name not in _OF_CHANGES])


def changed_rows(table: pa.Table) -> TableChanges:
    """What a batch of changes comes to in the end."""
    weight = np.asarray(table.column("change"), np.int64)
    return net_changes(table.drop_columns(list(_OF_CHANGES)), weight)


def gone(query: str, target: str) -> QueryError:
    return QueryError(
        f'query "{query}": rows that are to go from {target} are not there: somebody else has '
        "changed it",
        help="leave the table to the query; begin anew with another table, or drop this one",
    )
