"""Table sources that retry after errors."""

from __future__ import annotations

import datetime
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator

import pyarrow as pa

from millstream.connectors.tables.table_source import TableChanges, TableEvent, TableTrouble
from millstream.model.errors import MillstreamError

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0  # seconds between retries
_IMPATIENCE = 0.05  # seconds between two interrupts of the reader on close
_CALLS = 40  # interrupts at most; then the reader tidies up when it returns


class RetryingSource(ABC):
    """A source that is polled for the next change. `every` is the pause in seconds between two
    polls, None if the table is not followed.

    The reader holds `_reading`; `close` interrupts it until it releases the lock. Whichever is last
    tidies up.
    """

    def __init__(self, every: float | None) -> None:
        self._every = every
        self._closed = threading.Event()
        self._reading = threading.Lock()

    def contents(self) -> pa.Table:
        with self._reading:
            try:
                return self._begin()
            finally:
                if self._closed.is_set():
                    self._tidy()

    def changes(self) -> Iterator[TableEvent]:
        if self._every is None:
            return
        trouble: TableTrouble | None = None
        pause, wait = _FIRST_PAUSE, self._every
        while not self._closed.wait(wait):
            try:
                found = self._read()
            except MillstreamError as error:
                new = _trouble(error, trouble)
                if new != trouble and not self._closed.is_set():
                    yield new
                trouble = new
                wait, pause = pause, min(2 * pause, _LONGEST_PAUSE)
            else:
                if found is not None and (len(found) or trouble is not None):
                    trouble, pause = None, _FIRST_PAUSE
                    yield found
                wait = self._every

    def _read(self) -> TableChanges | None:
        with self._reading:
            try:
                return None if self._closed.is_set() else self._next()
            finally:
                if self._closed.is_set():
                    self._tidy()

    def close(self) -> None:
        self._closed.set()
        for _ in range(_CALLS):
            if self._reading.acquire(timeout=_IMPATIENCE):
                try:
                    self._tidy()
                finally:
                    self._reading.release()
                return
            self._interrupt()

    @abstractmethod
    def _begin(self) -> pa.Table:
        """The whole table."""

    @abstractmethod
    def _next(self) -> TableChanges | None:
        """The changes since the last call; None if they are not known yet. After a MillstreamError
        the next call starts again from the known state."""

    @abstractmethod
    def _interrupt(self) -> None:
        """Wake the reader from another thread: `_begin` or `_next` may then raise a
        MillstreamError."""

    @abstractmethod
    def _tidy(self) -> None:
        """Close everything; reading has ended."""


def _trouble(error: MillstreamError, before: TableTrouble | None) -> TableTrouble:
    since = datetime.datetime.now(datetime.UTC) if before is None else before.since
    return TableTrouble(error.diagnostic.message, error.diagnostic.help, since)
