"""Sinks that keep a table: they apply changes and hold the resulting rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.connectors.contracts import SinkContext
from millstream.connectors.tables.comparing import net_changes
from millstream.connectors.tables.table_source import TableChanges
from millstream.model.errors import QueryError
from millstream.model.modes import Emit

_OF_CHANGES = ("at", "change")


def kept_schema(context: SinkContext, sink: str) -> pa.Schema:
    """The columns of the rows, without those of changes."""
    if context.emit is not Emit.CHANGES:
        raise QueryError(
            f'sink "{sink}" needs changes to keep a table, but the query has EMIT {context.emit}',
            help="write EMIT CHANGES, or CREATE MATERIALIZED VIEW … INTO",
        )
    return pa.schema([field for field in context.schema if field.name not in _OF_CHANGES])


def changed_rows(table: pa.Table) -> TableChanges:
    """The net changes of a batch."""
    weight = np.asarray(table.column("change"), np.int64)
    return net_changes(table.drop_columns(list(_OF_CHANGES)), weight)


def gone(query: str, target: str) -> QueryError:
    return QueryError(
        f'query "{query}": rows to delete from {target} are missing: something else has changed it',
        help="only the query may change the table; start over with another table, or drop this one",
    )
