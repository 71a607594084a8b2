"""Files of a checkpoint when the disk is full, and what crashes leave of them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.checkpoint.files import CheckpointError, LocalFiles


def full(handle: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


WRITES: list[Callable[[LocalFiles], None]] = [
    lambda files: files.write("state/1", [b"some", b"thing"]),
    lambda files: files.publish("manifests/1", b"something"),
    lambda files: files.replace("published", b"something"),
]


@pytest.mark.parametrize("write", WRITES)
def test_full_disk(
    tmp_path: Path, write: Callable[[LocalFiles], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = LocalFiles(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(CheckpointError, match="cannot be written: No space left on device"):
            write(files)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()], "nothing takes room"
    write(files)


def test_nobody_is_overwritten(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    files.publish("manifests/1", b"first")
    with pytest.raises(FileExistsError):
        files.publish("manifests/1", b"second")
    assert files.read("manifests/1") == b"first"


def test_tidy(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    files.publish("manifests/1", b"first")
    (tmp_path / "manifests/2.0a1b2c3d.draft").write_bytes(b"hal")
    assert files.names("manifests") == ["manifests/1"]
    files.tidy()
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["1"]
