"""Reads the files of a stream one after the other, and resumes in the middle of a file after a
crash.

With a checkpoint, the source notes there which files it is about to read: files that appear later
may have older timestamps, and the order must be the same after a restart.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import chain

from millstream.connectors.contracts import Notes, RowSource
from millstream.connectors.files import StreamFiles, file_arguments
from millstream.connectors.interruptible import InterruptibleItems
from millstream.connectors.listing import DataFile, unchanged
from millstream.logical.catalog import Stream
from millstream.model.records import Checked

NOTED_FILES = 100  # at most this many are noted at once and read again after a crash


def connect(stream: Stream, available_now: bool) -> FileSource:
    return FileSource(StreamFiles(stream, file_arguments(stream), available_now))


class FileSource(RowSource):
    """`_noted` are the files that were started before a restart and must be read again, with the
    number of the first row of each group; `_known` are the paths of all files started so far."""

    def __init__(self, files: StreamFiles) -> None:
        super().__init__(
            lambda: InterruptibleItems(self._rows),
            for_now=files.may_grow,
            bounded=not files.follows,
        )
        self._files = files
        self._notes: Notes | None = None  # set while the query runs
        self._noting = threading.Lock()
        self._noted: list[tuple[int, list[DataFile]]] = []
        self._known: set[str] = set()

    def resume(self, notes: Notes | None, received: int) -> int:
        self._notes = notes
        told = [] if notes is None else notes.notes()
        found = [(row, [DataFile(*file) for file in files]) for row, files in told]
        begun = [number for number, (row, _) in enumerate(found) if row <= received]
        self._noted = found[begun[-1] :] if begun else found
        self._known = {file.path for _, files in found for file in files}
        return self._first

    def release(self) -> None:
        with self._noting:
            self._notes = None

    @property
    def _first(self) -> int:
        """The number of the first row."""
        return self._noted[0][0] if self._noted else 0

    def _rows(self, closed: threading.Event) -> Iterator[Checked]:
        row = self._first
        for noted, files in chain(self._noted, self._new(closed)):
            if noted is None:
                self._note(row, files)
            self._check(noted in (None, row), f'they have {row} rows before "{files[0].path}"')
            for file in files:
                self._check(
                    noted is None or unchanged(file), f'"{file.path}" has changed or is gone'
                )
                for rows in self._files.rows(file):
                    row += len(rows)
                    yield rows

    def _note(self, row: int, files: list[DataFile]) -> None:
        with self._noting:
            if self._notes is not None:
                self._notes.add(row, [file.told() for file in files])

    def _new(self, closed: threading.Event) -> Iterator[tuple[None, list[DataFile]]]:
        """The files that are not noted, in groups."""
        for present in self._files.follow(closed):
            new = [file for file in present if file.path not in self._known]
            self._known.update(file.path for file in new)
            for first in range(0, len(new), NOTED_FILES):
                yield None, new[first : first + NOTED_FILES]

    def _check(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise self._files.error(
                f"its files have changed since the last run: {otherwise}",
                "restore them, or start the query with a new checkpoint",
            )
