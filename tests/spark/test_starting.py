"""Programs that bring their own Spark: by spark-submit, or a session that knows nothing of us."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import pyarrow.compute as pc
import millstream as ms

{session}
session.stream("S", [{{"t": 1, "x": 1.0}}, {{"t": 2, "x": 4.0}}], time="t")
session.function("twice", lambda x: pc.multiply(x, 2.0), returns="DOUBLE")
rows = session.sql("SELECT twice(x) AS y FROM S").run().to_pylist()
print(session.spark.sparkContext.master, [row["y"] for row in rows])
"""


def last_line(command: list[str], program: Path, **environment: str) -> str:
    """What a program prints at last, started with little more than a PATH."""
    kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME") if name in os.environ}
    done = subprocess.run(
        [*command, str(program)],
        env=kept | {"HOME": str(program.parent)} | environment,
        cwd=program.parent,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-1]


def test_spark_submit_says_where(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(session="session = ms.Session()"))
    submit = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[1]"]
    assert last_line(submit, program, PYSPARK_PYTHON=sys.executable) == "local[1] [2.0, 8.0]"


def test_a_session_of_yours_runs_in_this_python(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    own = """from pyspark.sql import SparkSession
session = ms.Session(spark=SparkSession.builder.master("local[1]").getOrCreate())"""
    program.write_text(PROGRAM.format(session=own))
    told = last_line([sys.executable], program, MILLSTREAM_ENGINE="local")
    assert told == "local[1] [2.0, 8.0]"
