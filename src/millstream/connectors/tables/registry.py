"""The connectors that tables can have, each loaded when it is first used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from millstream.connectors.tables.table_source import TableSource
from millstream.logical.catalog import Table
from millstream.model.errors import DataError, one_of

# What `CREATE TABLE … SOURCE name(…)` calls: the `connect` of a module of this package.
TABLE_SOURCES: Mapping[str, str] = {
    "postgres": "postgres",
    "duckdb": "duckdb_file",
    "sqlite": "sqlite_file",
    "csv": "data_files",
    "parquet": "data_files",
    "json": "data_files",
}


def table_source(table: Table) -> TableSource:
    """Where the table is read from. What its declaration says is checked; nothing is opened."""
    assert table.connector is not None
    name = table.connector.name.text
    if name.lower() not in TABLE_SOURCES:
        raise DataError(
            f'table "{table.name}" cannot be read by a connector "{name}"',
            table.connector.name.span,
            one_of(name, TABLE_SOURCES, "connector"),
        )
    module = import_module(f"millstream.connectors.tables.{TABLE_SOURCES[name.lower()]}")
    source: TableSource = module.connect(table)
    return source
