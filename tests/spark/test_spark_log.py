"""Spark's own log is brought to what a mark says, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.checkpoint.files import CheckpointError
from millstream.spark.log import LoggedBatch, SparkLog

OFFSETS = 'v1\n{{"batchWatermarkMs":0}}\n{{"logOffset":{0}}}\n{{"topic":{{"0":{0}}}}}'


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def log_of(folder: Path, batches: int) -> SparkLog:
    """As Spark leaves it: a source of files, whose list is compacted at every tenth batch, and
    another one; the last batch is not done."""
    write(folder, "metadata", '{"id":"x"}')
    write(folder, "sources/1/0", "where it began")
    for batch in range(batches):
        write(folder, f"offsets/{batch}", OFFSETS.format(batch))
        name = f"{batch}.compact" if batch % 10 == 9 else str(batch)
        write(folder, f"sources/0/{name}", f"files of batch {batch}")
        if batch < batches - 1:
            write(folder, f"commits/{batch}", 'v1\n{"nextBatchWatermarkMs":0}')
    return SparkLog(folder)


def content(folder: Path) -> dict[str, str]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_text() for path in paths}


@pytest.mark.parametrize("batches", [1, 2, 9, 10, 11, 15])
def test_the_batch_of_the_mark_is_the_last_and_done(tmp_path: Path, batches: int) -> None:
    log = log_of(tmp_path, batches)
    mark = log.mark(batches - 1)
    write(tmp_path, f"offsets/{batches}", "v1\ntorn")
    write(tmp_path, f"sources/0/{batches}", "torn")
    log.bring_to(mark)
    found = content(tmp_path)
    assert f"offsets/{batches}" not in found
    assert f"sources/0/{batches}" not in found
    assert found[f"commits/{batches - 1}"] == 'v1\n{"nextBatchWatermarkMs":0}'
    assert log.mark(batches - 1) == mark


@pytest.mark.parametrize(
    "name", ["metadata", "offsets/11", "offsets/10", "sources/0/11", "sources/1/0"]
)
def test_what_is_missing_or_damaged_is_written_anew(tmp_path: Path, name: str) -> None:
    log = log_of(tmp_path, 12)
    mark, before = log.mark(11), content(tmp_path)
    (tmp_path / name).write_text("")
    (tmp_path / name).with_name(f".{Path(name).name}.crc").write_text("of the other text")
    log.bring_to(mark)
    after = content(tmp_path)
    assert {n: t for n, t in after.items() if not n.startswith("commits")} == {
        n: t for n, t in before.items() if not n.startswith("commits")
    }


@pytest.mark.parametrize("damage", ["removed", "changed"])
def test_a_long_list_of_files_is_not_kept_twice(tmp_path: Path, damage: str) -> None:
    log = log_of(tmp_path, 12)
    mark = log.mark(11)
    if damage == "removed":
        (tmp_path / "sources/0/9.compact").unlink()
    else:
        (tmp_path / "sources/0/9.compact").write_text("other files")
    with pytest.raises(CheckpointError, match="list of the files"):
        log.bring_to(mark)


def test_without_a_mark_nothing_was_done(tmp_path: Path) -> None:
    log = log_of(tmp_path / "log", 3)
    log.bring_to(None)
    assert not (tmp_path / "log").exists()


def test_the_watermark_of_a_lost_commit(tmp_path: Path) -> None:
    log = SparkLog(tmp_path)
    offsets = 'v1\n{"batchWatermarkMs":7}\n-'
    log.bring_to(LoggedBatch(0, {"metadata": "{}", "offsets/0": offsets}, {}))
    assert (tmp_path / "commits/0").read_text() == 'v1\n{"nextBatchWatermarkMs":7}'
