"""The files of a view: what another version wrote is refused in words."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millstream.checkpoint.files import CheckpointError
from millstream.relations.view_files import ViewFiles


def written(folder: Path, notes: dict[str, int]) -> ViewFiles:
    """Files whose notes are replaced by these."""
    files = ViewFiles(folder)
    files.log(pa.table({"a": [1]}), 3, frontier=7)
    (path,) = folder.glob("changes-*.parquet")
    table = pq.read_table(path)
    assert json.loads(table.schema.metadata[b"millstream"]) == {"format": 1, "frontier": 7}
    pq.write_table(table.replace_schema_metadata({b"millstream": json.dumps(notes)}), path)
    return ViewFiles(folder)


def test_files_without_a_format_are_of_the_first(tmp_path: Path) -> None:
    ((_, batch, frontier),) = written(tmp_path, {"frontier": 7}).logs()
    assert (batch, frontier) == (3, 7)


def test_files_of_another_format(tmp_path: Path) -> None:
    files = written(tmp_path, {"format": 2, "frontier": 7})
    with pytest.raises(CheckpointError) as raised:
        list(files.logs())
    assert str(raised.value) == (
        f'error: the files of the view in "{tmp_path}" have format 2, this version reads format 1\n'
        "help: use the version that wrote them, or drop the view and create it again"
    )
