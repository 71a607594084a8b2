"""Spark for the command line: started with visible progress, without Java's output."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from typing import IO, TYPE_CHECKING

from millstream.api.session import Session
from millstream.cli.progress import progress
from millstream.model.errors import MillstreamError, QueryError
from millstream.model.modes import EngineName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GROUP = "millstream"


def spark_started(session: Session) -> None:
    """Start Spark now, with visible progress, if the session runs on it."""
    if session.engine is EngineName.SPARK:
        with progress(lambda: "Spark starts"):
            started_quietly(lambda: session.spark)


def started_quietly(start: Callable[[], SparkSession]) -> SparkSession:
    """Spark, without Java's warnings and with its errors as one sentence."""
    with _java_apart() as printed:
        try:
            spark = start()
            # PySpark's own handler would cancel the batches of all queries, including those that
            # should end in an orderly way.
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, signal.default_int_handler)
            return spark
        except MillstreamError:
            raise
        except Exception as error:  # whatever PySpark and Py4J raise
            raise QueryError(
                f"Spark cannot start: {_reason(printed, error)}",
                help="`millstream doctor` checks the machine; --engine local needs no Spark",
            ) from error


@contextmanager
def cancelled_by_interrupt(session: Session) -> Iterator[None]:
    """Ctrl-C also cancels the Spark jobs of this thread; jobs of others continue."""
    if session.engine is not EngineName.SPARK:
        yield
        return
    context = session.spark.sparkContext
    context.setJobGroup(_GROUP, "asked on the command line")
    try:
        yield
    except KeyboardInterrupt:
        context.cancelJobGroup(_GROUP)
        raise


@contextmanager
def _java_apart() -> Iterator[IO[bytes]]:
    """Java's stderr is redirected to a file for good: errors that matter are raised."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as printed, open(os.dup(2), "w") as own:
        os.dup2(printed.fileno(), 2)
        try:
            with redirect_stderr(own):  # our own progress still goes to the terminal
                yield printed
        finally:
            os.dup2(own.fileno(), 2)


def _reason(printed: IO[bytes], error: Exception) -> str:
    printed.seek(0)
    lines = printed.read().decode("utf-8", "replace").splitlines() + str(error).splitlines()
    return next((line.strip() for line in lines if line.strip()), type(error).__name__)
