"""Spark for the command line: started in view of the user, without the pages that Java prints."""

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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GROUP = "millstream"


def spark_started(session: Session) -> None:
    """Start Spark now, in view of the user, if the session runs on it."""
    if session.engine == "spark":
        with progress(lambda: "Spark starts"):
            started_quietly(lambda: session.spark)


def started_quietly(start: Callable[[], SparkSession]) -> SparkSession:
    """Spark, whose Java tells its warnings to nobody and its errors in a sentence."""
    with _java_apart() as printed:
        try:
            spark = start()
            # PySpark's own handler would cancel the batches of all queries, also of those that
            # are to end in good order.
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, signal.default_int_handler)
            return spark
        except MillstreamError:
            raise
        except Exception as error:  # whatever PySpark and Py4J raise
            raise QueryError(
                f"Spark cannot start: {_reason(printed, error)}",
                help="`millstream doctor` tells what is there; --engine local needs no Spark",
            ) from error


@contextmanager
def cancelled_by_interrupt(session: Session) -> Iterator[None]:
    """Ctrl-C also ends what Spark does for this thread; what others do goes on."""
    if session.engine != "spark":
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
    """While Java is started its stderr is a file, and stays that: what matters is raised."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as printed, open(os.dup(2), "w") as own:
        os.dup2(printed.fileno(), 2)
        try:
            with redirect_stderr(own):  # what we show meanwhile still goes to the terminal
                yield printed
        finally:
            os.dup2(own.fileno(), 2)


def _reason(printed: IO[bytes], error: Exception) -> str:
    printed.seek(0)
    lines = printed.read().decode("utf-8", "replace").splitlines() + str(error).splitlines()
    return next((line.strip() for line in lines if line.strip()), type(error).__name__)
