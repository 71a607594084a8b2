"""A PostgreSQL table: `SOURCE postgres(url => '…', table => 'schema.name', …)`.

    CREATE TABLE Person (id BIGINT, city STRING, PRIMARY KEY (id))
      SOURCE postgres('postgresql://host/shop', table => 'person', follow => 'decoding');

| option    | means                                                         |
| --------- | ------------------------------------------------------------- |
| `url`     | the database; may be the first value                          |
| `table`   | "name" or "schema.name", of a table or a view                 |
| `refresh` | how often to read it again and compare: '5 seconds'           |
| `follow`  | 'decoding': read each transaction from the server's log       |

Without `refresh` and `follow` it is read once.
"""

from __future__ import annotations

from millstream.connectors.arguments import Arguments
from millstream.connectors.postgres_sql import need_psycopg
from millstream.connectors.tables.followed_table import FollowedTable
from millstream.connectors.tables.postgres_table import PostgresTable, WholeTable
from millstream.connectors.tables.refreshed import Refreshed, refresh_of
from millstream.connectors.tables.table_source import TableSource
from millstream.logical.catalog import Table


def connect(table: Table) -> TableSource:
    need_psycopg("connector")
    given = Arguments(table, ["url", "table", "refresh", "follow"])
    there = PostgresTable(table, given.text("url"), given.text("table"))
    if not given.has("follow"):
        return Refreshed(table, WholeTable(there), refresh_of(given))
    given.one_of("follow", ["decoding"])
    if given.has("refresh"):
        raise given.error("has both refresh and follow", "a followed table needs no refresh")
    return FollowedTable(there)
