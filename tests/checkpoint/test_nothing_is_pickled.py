"""Nothing that a checkpoint or a message holds is unpickled, and a keeper loads no parser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import millstream

SOURCES = Path(millstream.__file__).parent


def test_only_user_functions_are_pickled() -> None:
    named = {
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if "pickle" in path.read_text(encoding="utf-8")
    }
    assert named == {"spark/shipping.py"}


def test_a_keeper_loads_no_parser() -> None:
    code = (
        "import sys, millstream.spark.keeper_process; "
        "loaded = {name.partition('.')[0] for name in sys.modules}; "
        "assert not loaded & {'sqlglot', 'pandas'}, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
