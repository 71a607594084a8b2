"""Streams that Spark reads: each is its own streaming query, which hands over its batches."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.checkpoint.files import CheckpointError
from millstream.checkpoint.folders import file_name
from millstream.fragments.remote_input import RemoteInput
from millstream.model.errors import QueryError
from millstream.runtime.inputs import InputPlace
from millstream.spark.job import reason
from millstream.spark.leaves import SparkRows
from millstream.spark.log import LoggedBatch, SparkLog
from millstream.spark.native_leaves import NativeLeaf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_LOOK = "100 milliseconds"  # default polling interval


@dataclass(frozen=True)
class SparkStream:
    """A stream that is a Spark DataFrame. A bounded one is read once and ends. For others
    `available_now` reads what is there. With a `leaf` its batches can be read again."""

    frame: DataFrame
    bounded: bool
    available_now: bool = False
    look: str | None = None
    leaf: NativeLeaf | None = None

    def open(self, place: InputPlace) -> RemoteInput:
        stream, sources, inbox = place.stream, place.sources, place.inbox
        if not self.frame.isStreaming:
            return RemoteInput(stream, sources, _Whole(self.frame), inbox, bounded=True)
        assert place.folder is not None, "Spark reads streams only for remote operators"
        folder = place.folder / "spark" / file_name(stream.name)
        ends = self.bounded or self.available_now
        return RemoteInput(stream, sources, _Batches(self, folder), inbox, ends)


class _Whole:
    """A bounded frame as one batch."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    def begin(self, input: RemoteInput) -> None:
        def run() -> None:
            if input.mark is not None or input.hand(SparkRows(self._frame), True):
                input.end()

        threading.Thread(target=run, name="millstream frame", daemon=True).start()

    def stop(self) -> None:
        pass


class _Batches:
    """The batches of a streaming frame, with Spark's numbers."""

    def __init__(self, stream: SparkStream, folder: Path) -> None:
        self._stream = stream
        self._log = SparkLog(folder)
        self._stopping = False
        self._query: StreamingQuery | None = None

    def begin(self, input: RemoteInput) -> None:
        self._log.bring_to(_mark_of(input))
        writer = self._stream.frame.writeStream.foreachBatch(self._handing(input))
        writer = writer.option("checkpointLocation", str(self._log.folder))
        if self._stream.bounded or self._stream.available_now:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=self._stream.look or _LOOK)
        self._query = writer.start()
        watcher = threading.Thread(
            target=self._watch, args=(self._query, input), name="millstream frames", daemon=True
        )
        watcher.start()

    def _handing(self, input: RemoteInput) -> Any:
        def hand(frame: DataFrame, id: int) -> None:
            mark = self._log.mark(id)
            _check_next(_mark_of(input), mark)
            if not input.hand(SparkRows(frame, self._stream.leaf), mark.told()):
                _sleep_until_stopped(frame)

        return hand

    def _watch(self, query: StreamingQuery, input: RemoteInput) -> None:
        """Report the end of the stream."""
        try:
            query.awaitTermination()
        except Exception as error:  # any Spark error ends the stream
            input.end(None if self._stopping else QueryError(reason(error)))
        else:
            if self._stream.bounded:
                input.end()
            else:
                input.run_dry()

    def stop(self) -> None:
        self._stopping = True
        if self._query is not None:
            self._query.stop()


def _mark_of(input: RemoteInput) -> LoggedBatch | None:
    """The mark of the last batch taken."""
    return None if input.mark is None else LoggedBatch.of(input.mark)


def _check_next(before: LoggedBatch | None, mark: LoggedBatch) -> None:
    """Check that batches are consecutive: the log was reset to the last one."""
    if mark.batch != (0 if before is None else before.batch + 1):
        raise CheckpointError(
            f"Spark sent batch {mark.batch} after {'none' if before is None else before.batch}",
            help="restore the checkpoint's folder, or start the query with a new one",
        )


def _sleep_until_stopped(frame: DataFrame) -> None:
    """The batch will not be answered, so Spark must not commit it. This runs in the thread of
    Spark's query, which stopping the query interrupts."""
    jvm = frame.sparkSession.sparkContext._jvm
    while jvm is not None:
        jvm.java.lang.Thread.sleep(60_000)
