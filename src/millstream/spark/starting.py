"""A Spark session that suits this work: as many partitions as cores, no page, quiet logs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from millstream.model.errors import QueryError
from millstream.spark.java import provide_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000000",
    "spark.sql.execution.arrow.localRelationThreshold": "0",  # rows are no part of plans
    "spark.sql.session.timeZone": "UTC",
}

# Jobs without end: what Spark remembers of those that are done, for a page that nobody sees.
_MEMORY = {
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "40",
    "spark.ui.retainedTasks": "400",
    "spark.sql.ui.retainedExecutions": "20",
}


def for_batches(spark: SparkSession) -> SparkSession:
    """A session with settings of its own over the same Spark: whatever yours says, tasks must run
    at every place, also where there are no rows."""
    own = spark.newSession()
    for name, value in _SETTINGS.items():
        if name.startswith("spark.sql."):
            own.conf.set(name, value)
    return own


def taken_over(spark: SparkSession) -> SparkSession:
    """A session of the user's, unless it is a client of a server elsewhere. Its tasks on this
    machine run in the Python that this program runs in, unless somebody has said in which: any
    other may know nothing of Millstream."""
    if ".connect." in type(spark).__module__:
        raise QueryError(
            "a session of Spark Connect cannot run queries: their state is in processes beside "
            "Spark's tasks, which its server does not start",
            help="pass a classic Spark session, or none",
        )
    context = spark.sparkContext
    asked = context.getConf().contains("spark.pyspark.python") or "PYSPARK_PYTHON" in os.environ
    if not asked and (context.master or "").startswith("local"):
        context.pythonExec = sys.executable
    return spark


def local_spark(master: str = "local[*, 4]") -> SparkSession:
    """The active session, or a new one: that which spark-submit asks for, or one on this machine,
    where tasks that fail are tried again."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return taken_over(active)
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
