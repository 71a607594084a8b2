"""Keeper processes, which hold shards between the batches of a Spark query.

Spark assigns a partition to any free Python worker, and ends workers it does not need. So each
place of a query has its own process, on every machine where its tasks run: a task sends its
messages to the keeper of its place and returns the keeper's output. Losing a keeper costs only
time: the next one reads the checkpoint.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Client, Connection
from pathlib import Path

import pyarrow as pa

from millstream.checkpoint.folders import FOLDER_MODE, new_file
from millstream.fragments.failures import failure_of
from millstream.fragments.keeping import Order
from millstream.fragments.messages import (
    Message,
    as_record,
    messages_in,
    packed_messages,
    unpacked_messages,
)
from millstream.fragments.remote_query import RemoteQuery
from millstream.model.codec import packed, unpacked
from millstream.model.errors import QueryError
from millstream.spark.leaves import Task
from millstream.spark.shipping import shipped, unshipped

_PATIENCE = 60.0  # seconds until a keeper must be up


@dataclass(frozen=True)
class KeptQuery:
    """A running query as its keepers know it; `token` is new each time it starts."""

    work: RemoteQuery
    root: str
    durable: bool
    token: str

    @staticmethod
    def new(work: RemoteQuery, root: str, durable: bool) -> KeptQuery:
        return KeptQuery(work, root, durable, secrets.token_hex(8))

    def told(self) -> bytes:
        """As data, with the user functions as shipped."""
        work = self.work
        functions = shipped(work.functions, work.aggregates)
        return packed([work.told(), functions, self.root, self.durable, self.token])

    @staticmethod
    def of(told: bytes) -> KeptQuery:
        work, functions, root, durable, token = unpacked(told)
        return KeptQuery(RemoteQuery.of(work, *unshipped(functions)), root, durable, token)

    @property
    def folder(self) -> Path:
        return Path(tempfile.gettempdir()) / f"millstream-{os.getuid()}-{self.token}"


def kept_task(query: KeptQuery, level: int, order: Order) -> Task:
    """The task of a level, executed by the keeper of its place."""

    def task(records: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        messages = [message for record in records for message in messages_in(record)]
        if not messages:
            return
        try:
            answer = _asked(query, level, order, messages)
        except QueryError as error:  # a retry would not help
            answer = list(query.work.told_failure(error, level))
        for message in answer:
            yield as_record([message])

    return task


def _asked(query: KeptQuery, level: int, order: Order, messages: list[Message]) -> list[Message]:
    try:
        return _answer(query, level, order, messages)
    except (EOFError, ConnectionError):  # the keeper was killed while working
        return _answer(query, level, order, messages)


def _answer(query: KeptQuery, level: int, order: Order, messages: list[Message]) -> list[Message]:
    own = replace(order, attempt=f"{order.attempt}-{secrets.token_hex(3)}")
    with _connection(query, messages[0].place) as keeper:
        keeper.send_bytes(packed([level, own.told(), packed_messages(messages)]))
        told = unpacked(keeper.recv_bytes())
    if "failure" in told:
        raise failure_of(told["failure"])
    return unpacked_messages(told["messages"])


def _connection(query: KeptQuery, place: int) -> Connection:
    """A connection to the keeper of a place, which is started if there is none."""
    _make_private(query.folder)
    address = str(query.folder / str(place))
    with suppress(OSError):
        return Client(address, "AF_UNIX")
    with open(query.folder / f"{place}.lock", "a", opener=new_file) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two tasks may start it at the same time
        with suppress(OSError):
            return Client(address, "AF_UNIX")
        _start(query, place)
        return _awaited(address)


def _make_private(folder: Path) -> None:
    """Create the folder of the keepers' sockets and files, from which they load programs. Another
    user may have created one of that name, because everyone may write to /tmp."""
    with suppress(FileExistsError):
        folder.mkdir(FOLDER_MODE)
    found = folder.lstat()
    is_folder = stat.S_ISDIR(found.st_mode)
    if not is_folder or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise QueryError(
            f'the folder "{folder}" of the keepers of this query is not private',
            help="another user may have created it: set TMPDIR to a folder of your own",
        )


def _start(query: KeptQuery, place: int) -> None:
    (query.folder / str(place)).unlink(missing_ok=True)  # left by a killed keeper
    told = query.folder / f"{place}.query"
    told.unlink(missing_ok=True)
    with open(told, "xb", opener=new_file) as file:
        file.write(query.told())
    command = [sys.executable, "-m", "millstream.spark.keeper_process", str(told), str(_executor())]
    subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)


def _executor() -> int:
    """The process of the executor: the parent of the daemon that is the parent of this worker."""
    command = ["ps", "-o", "ppid=", "-p", str(os.getppid())]
    status = Path(f"/proc/{os.getppid()}/stat")
    if status.exists():
        return int(status.read_text().rpartition(")")[2].split()[1])
    return int(subprocess.run(command, capture_output=True, check=True).stdout)


def _awaited(address: str) -> Connection:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return Client(address, "AF_UNIX")
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def stop_keepers(query: KeptQuery) -> None:
    """Stop the keepers on this machine; others end with their executor."""
    for told in query.folder.glob("*.query"):
        try:
            with Client(str(told.with_suffix("")), "AF_UNIX") as keeper:
                keeper.send_bytes(b"")
        except OSError:  # it was killed
            clear_up(told)


def clear_up(told: Path) -> None:
    """Remove the files of a keeper."""
    for suffix in (".query", ".lock", ""):
        told.with_suffix(suffix).unlink(missing_ok=True)
    with suppress(OSError):  # other keepers may still be there
        told.parent.rmdir()
