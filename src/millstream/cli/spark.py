"""Spark for the command line: started in view of the user, without the pages that Java prints."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from typing import IO, TYPE_CHECKING

from millstream.cli.doctor import java_found
from millstream.cli.progress import progress
from millstream.errors import MillstreamError, QueryError
from millstream.session import Session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_started(session: Session) -> None:
    """Start Spark now, if the session runs on it."""
    if session.engine == "spark":
        in_view(lambda: session.spark)


def in_view(start: Callable[[], SparkSession]) -> SparkSession:
    """Start Spark while the user sees that it does."""
    with progress(lambda: "Spark starts"), _java_apart() as printed:
        try:
            return start()
        except MillstreamError:
            raise
        except Exception as error:  # whatever PySpark and Py4J raise
            _, java, remedy = java_found()
            reason = f"java {java}" if remedy is not None else _reason(printed, error)
            raise QueryError(
                f"Spark cannot start: {reason}", help=remedy or "--engine local needs no Spark"
            ) from error


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
