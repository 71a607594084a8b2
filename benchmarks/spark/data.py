"""The streams as parquet files, written before anything is measured: one file is one batch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RATE = 1_000  # rows per second of each stream
KEYS = 10_000
STEP = 1_000_000 // RATE  # microseconds between two rows
_GROUP = 50_000  # rows, so that several tasks can read a file
_BEGINNING = 1_700_000_000  # the modification time of the first file


@dataclass(frozen=True)
class Shape:
    """How keys are drawn: from all of them, or from a range that drifts with time (`drift`), so
    that rows join only with near ones however long the window is."""

    keys: int = KEYS
    drift: bool = False


UNIFORM = Shape()


def write_stream(folder: Path, seed: int, rows: int, files: int, shape: Shape) -> None:
    """Files of `rows` rows, in order of time, as are their names and dates."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(seed)
    for number in range(files):
        path = folder / f"{number:06d}.parquet"
        pq.write_table(_rows(random, number * rows, rows, shape), path, row_group_size=_GROUP)
        os.utime(path, (_BEGINNING + number, _BEGINNING + number))


def _rows(random: np.random.Generator, first: int, count: int, shape: Shape) -> pa.Table:
    number = np.arange(first, first + count)
    keys = random.integers(0, shape.keys, count)
    return pa.table(
        {
            "ts": pa.array(number * STEP, pa.timestamp("us", "UTC")),
            "k": (number + keys) // 2 if shape.drift else keys,
            "v": random.integers(0, 1_000, count),
        }
    )


def make_streams(folder: Path, names: str, rows: int, files: int, shape: Shape = UNIFORM) -> Path:
    """A folder with one subfolder per stream."""
    for seed, name in enumerate(names):
        write_stream(folder / name, seed, rows, files, shape)
    return folder
