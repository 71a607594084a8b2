"""Spark sessions for Millstream: one partition per core, no web UI, quiet logs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from millstream.model.errors import QueryError
from millstream.spark.java import provide_java

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000000",
    "spark.sql.execution.arrow.localRelationThreshold": "0",  # keeps rows out of plans
    "spark.sql.session.timeZone": "UTC",
}

# Queries run endless jobs: limits what Spark remembers of finished ones for its web UI.
_MEMORY = {
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "40",
    "spark.ui.retainedTasks": "400",
    "spark.sql.ui.retainedExecutions": "20",
}


# For each session of our own, the user's session that it was made of.
_ORIGINS: WeakKeyDictionary[SparkSession, SparkSession] = WeakKeyDictionary()


def for_batches(spark: SparkSession) -> SparkSession:
    """A session with its own settings on the same Spark: whatever the user's session sets, tasks
    must run at every place, even without rows."""
    own = spark.newSession()
    _ORIGINS[own] = spark
    for name, value in _SETTINGS.items():
        if name.startswith("spark.sql."):
            own.conf.set(name, value)
    return own


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A table as a DataFrame of a session of our own. PySpark makes the session that creates one
    the active session of all threads; the user's stays it."""
    from pyspark.sql import SparkSession

    before = SparkSession._activeSession
    frame = spark.createDataFrame(table)
    if before is not None:
        SparkSession._activeSession = before = _ORIGINS.get(before, before)
        assert spark._jvm is not None
        own = SparkSession._get_j_spark_session_class(spark._jvm)
        own.setActiveSession(before._jsparkSession)
    return frame


def taken_over(spark: SparkSession) -> SparkSession:
    """The user's session; Spark Connect sessions are rejected. Unless configured otherwise, its
    tasks on this machine run in the current Python: another one may lack Millstream."""
    if ".connect." in type(spark).__module__:
        raise QueryError(
            "a Spark Connect session cannot run queries: their state is in processes next to "
            "Spark's tasks, which its server does not start",
            help="pass a classic Spark session, or none",
        )
    context = spark.sparkContext
    asked = context.getConf().contains("spark.pyspark.python") or "PYSPARK_PYTHON" in os.environ
    if not asked and (context.master or "").startswith("local"):
        context.pythonExec = sys.executable
    return spark


def local_spark(master: str = "local[*, 4]") -> SparkSession:
    """The active session, or a new one: as configured by spark-submit, or local with retries of
    failed tasks."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return taken_over(_ORIGINS.get(active, active))
    settings = {**_SETTINGS, **_MEMORY}
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit
        from pyspark import SparkConf

        asked = SparkConf()
        settings = {name: value for name, value in settings.items() if not asked.contains(name)}
    else:
        provide_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        cores = str(os.cpu_count() or 1)
        settings |= {"spark.master": master, "spark.app.name": "millstream"}
        settings |= {"spark.sql.shuffle.partitions": cores}
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
