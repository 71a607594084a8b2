"""Checkpoints are private to their owner, and names of streams never leave their folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.checkpoint import folders
from millstream.checkpoint.folders import file_name
from millstream.spark import keepers

NOBODY = 65_534


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """The widest: every mode that is narrower is intended."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def given_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a path belong to another user."""
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
        looks_like(monkeypatch, NOBODY, 0o600)


def looks_like(monkeypatch: pytest.MonkeyPatch, owner: int, mode: int) -> None:
    """Let new files have this owner and this mode."""
    made = os.stat_result((mode, 0, 0, 1, owner, owner, 0, 0, 0, 0))
    monkeypatch.setattr(folders, "_new_file_in", lambda folder: made)


def run(name: str, checkpoint: Path, rows: list[tuple[int]]) -> list[Any]:
    session = ms.Session("local")
    feed = session.feed(name, {"t": "BIGINT"}, time="t")
    query = session.sql(f"SELECT t FROM `{name}`")
    with query.start(name="q", checkpoint=str(checkpoint)) as running:
        feed.send(rows)
    return [row["t"] for row in running.results().to_pylist()]


@pytest.mark.parametrize("name", ["..", ".", "a/../../b", "x.draft", "é" * 200, "a b", ".hidden"])
def test_streams_of_any_name_stay_in_the_checkpoint(name: str, tmp_path: Path) -> None:
    checkpoint = tmp_path / "below" / "checkpoint"
    assert run(name, checkpoint, [(0,), (1,)]) == [0, 1]
    assert run(name, checkpoint, [(2,)]) == [2]
    assert [path.name for path in tmp_path.iterdir()] == ["below"]
    assert [path.name for path in checkpoint.parent.iterdir()] == ["checkpoint"]
    (spool,) = (checkpoint / "spool").iterdir()
    assert spool.is_dir()


def test_tables_of_any_name_stay_in_the_checkpoint(tmp_path: Path) -> None:
    for number in range(2):
        session = ms.Session("local")
        feed = session.feed("S", {"t": "BIGINT"}, time="t")
        table = session.table("..", schema={"k": "BIGINT"})
        query = session.sql("SELECT t, k FROM S JOIN `..` ON k <= t")
        with query.start(name="q", checkpoint=str(tmp_path / "checkpoint")):
            table.insert([(number,)])
            feed.send([(number,)])
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]
    folders = [path for path in (tmp_path / "checkpoint").iterdir() if path.is_dir()]
    assert {path.name for folder in folders for path in folder.iterdir()} >= {"S", "%2E%2E"}


def test_names_of_files() -> None:
    names = ["a", "..", ".", "a/b", "a%2Fb", "x.draft", "é" * 200, "é" * 201, "A"]
    told = [file_name(name) for name in names]
    assert len(set(told)) == len(names)
    assert max(map(len, told)) <= 255
    assert told[0] == "a"


def test_a_checkpoint_is_private(tmp_path: Path) -> None:
    checkpoint = tmp_path / "a" / "checkpoint"
    run("S", checkpoint, [(0,)])
    assert mode(checkpoint.parent) == 0o777  # follows the umask
    found = [checkpoint, *checkpoint.rglob("*")]
    assert {mode(path) for path in found if path.is_dir()} == {0o700}
    assert {mode(path) for path in found if not path.is_dir()} == {0o600}


@pytest.mark.parametrize("below", ["", "below/deeper"])
def test_a_checkpoint_that_names_a_file(below: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    checkpoint = tmp_path / "file" / below
    with pytest.raises(ms.QueryError) as raised:
        run("S", checkpoint, [(0,)])
    assert str(raised.value) == (
        f'error: the checkpoint "{checkpoint}" cannot be created: "{tmp_path / "file"}" is not a '
        "folder\nhelp: name a folder; it is created if it does not exist"
    )


def test_a_checkpoint_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not the current folder, as an empty path would be."""
    monkeypatch.chdir(tmp_path)
    session = ms.Session("local")
    session.feed("S", {"t": "BIGINT"}, time="t")
    with pytest.raises(ms.QueryError, match="the name of the checkpoint is empty"):
        session.sql("SELECT t FROM S").start(checkpoint="")
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_links_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ms.QueryError, match=r'"\S+link" cannot be created: "\S+link" is not a fol'):
        run("S", tmp_path / "link", [(0,)])


def test_a_checkpoint_that_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert run("S", tmp_path / "link", [(0,)]) == [0]


def test_a_checkpoint_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir(0o755)
    given_away(checkpoint, monkeypatch)
    with pytest.raises(ms.QueryError) as raised:
        run("S", checkpoint, [(0,)])
    assert str(raised.value) == (
        f'error: the checkpoint "{checkpoint}" belongs to another user\nhelp: its owner could '
        "change the answers: use a folder of your own"
    )


def test_a_checkpoint_where_all_users_are_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on NFS with squashed users: files of ours have the owner that the folder has."""
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir(0o700)
    given_away(checkpoint, monkeypatch)
    looks_like(monkeypatch, checkpoint.stat().st_uid, 0o600)
    assert run("S", checkpoint, [(0,)]) == [0]


def test_a_checkpoint_that_every_user_may_write_to(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir(0o777)
    with pytest.raises(ms.QueryError) as raised:
        run("S", checkpoint, [(0,)])
    assert str(raised.value) == (
        f'error: the checkpoint "{checkpoint}" is writable by every user\nhelp: any of them could '
        f'change the answers: if you trust its contents, run "chmod -R go-w {checkpoint}"; or name '
        "a folder inside it that does not exist yet"
    )
    assert run("S", checkpoint / "inside", [(0,)]) == [0]
    checkpoint.chmod(0o755)
    assert run("S", checkpoint, [(0,)]) == [0]


def test_a_checkpoint_where_files_have_no_modes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir(0o777)
    looks_like(monkeypatch, os.geteuid(), 0o777)
    assert run("S", checkpoint, [(0,)]) == [0]


@pytest.mark.parametrize("wider", [0o755, 0o775])
def test_a_checkpoint_that_others_may_read(wider: int, tmp_path: Path) -> None:
    """As users make folders, and as earlier versions made them: it is used as it is."""
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir(wider)
    assert run("S", checkpoint, [(0,)]) == [0]
    for path in checkpoint.rglob("*"):
        path.chmod(wider if path.is_dir() else 0o644)
    assert run("S", checkpoint, [(1,)]) == [1]
    assert mode(checkpoint) == wider


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o007])
def test_the_umask_makes_no_difference(umask: int, tmp_path: Path) -> None:
    os.umask(umask)
    checkpoint = tmp_path / "checkpoint"
    assert run("S", checkpoint, [(0,)]) == [0]
    assert run("S", checkpoint, [(1,)]) == [1]
    found = [checkpoint, *checkpoint.rglob("*")]
    assert {mode(path) for path in found} == {0o700, 0o600}


def test_a_checkpoint_that_cannot_be_created(tmp_path: Path) -> None:
    checkpoint = tmp_path / ("x" * 300)
    with pytest.raises(ms.QueryError) as raised:
        run("S", checkpoint, [(0,)])
    assert str(raised.value) == (
        f'error: the checkpoint "{checkpoint}" cannot be created: File name too long\n'
        "help: name a folder that you may write to"
    )


def test_a_checkpoint_that_cannot_be_written(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    (checkpoint / "lock").mkdir(parents=True, mode=0o700)
    checkpoint.chmod(0o700)
    with pytest.raises(ms.QueryError) as raised:
        run("S", checkpoint, [(0,)])
    assert str(raised.value) == (
        f'error: the checkpoint "{checkpoint}" cannot be written: Is a directory\n'
        "help: name a folder that you may write to"
    )


def test_the_folder_of_a_view(tmp_path: Path) -> None:
    """Others may read its rows, but not the checkpoint of its query."""
    session = ms.Session("local")
    feed = session.feed("S", {"t": "BIGINT"}, time="t")
    statement = "CREATE MATERIALIZED VIEW {} AS SELECT t FROM S WINDOW(RANGE 5) RETAIN 10 IN '{}'"
    session.sql(statement.format("v", tmp_path / "view"))
    feed.send([(1,), (9,)])
    session.views["v"].stop()
    assert mode(tmp_path / "view" / "checkpoint") == 0o700
    rows = list((tmp_path / "view" / "rows").iterdir())
    assert {mode(path) for path in rows} == {0o666}
    (tmp_path / "file").write_text("")
    with pytest.raises(ms.QueryError, match=r'cannot be created: ".*file" is not a folder'):
        session.sql(statement.format("w", tmp_path / "file"))


# --- the folder of keepers ------------------------------------------------------------------------


def test_the_folder_of_keepers_is_private(tmp_path: Path) -> None:
    keepers._make_private(tmp_path / "keepers")
    assert mode(tmp_path / "keepers") == 0o700
    keepers._make_private(tmp_path / "keepers")


@pytest.mark.parametrize("kind", ["open", "file", "link", "another's"])
def test_a_folder_of_keepers_that_is_not_private(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "keepers"
    if kind == "file":
        folder.write_text("")
    elif kind == "link":
        (tmp_path / "real").mkdir(0o700)
        folder.symlink_to(tmp_path / "real")
    else:
        folder.mkdir(0o755 if kind == "open" else 0o700)
    if kind == "another's":
        given_away(folder, monkeypatch)
    with pytest.raises(ms.QueryError) as raised:
        keepers._make_private(folder)
    assert str(raised.value) == (
        f'error: the folder "{folder}" of the keepers of this query is not private\n'
        "help: another user may have created it: set TMPDIR to a folder of your own"
    )
