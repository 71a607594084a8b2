"""Files of statements that the tests of the commands share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

READINGS = """\
t,sensor,value
1,a,5
3,b,9
4,a,7
"""

STREAM = """\
CREATE STREAM Reading (t BIGINT, sensor STRING, value BIGINT)
    SOURCE csv(path => 'readings.csv', header => TRUE) ORDERED BY t;
"""
QUERY = "SELECT sensor, MAX(value) AS best FROM Reading WINDOW(RANGE 3) GROUP BY sensor;\n"

LIVE = """\
CREATE STREAM Bid (itemID INT, bid_price REAL, bidderID INT, timestamp TIMESTAMP)
    SOURCE nexmark('Bid', speed => 100, bids => 100000, rate => 20) ORDERED BY timestamp;
"""


def write(folder: Path, statements: str) -> str:
    """A file of statements beside the readings that they ask for; its name."""
    (folder / "readings.csv").write_text(READINGS)
    (folder / "file.sql").write_text(statements)
    return "file.sql"


def command(
    *arguments: str,
    folder: Path,
    input: bytes | None = None,
    program: str | None = None,
    **environment: str,
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*([program] if program else [sys.executable, "-m", "millstream"]), *arguments],
        input=input,
        capture_output=True,
        timeout=300,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONUTF8": "1", **environment},
    )
