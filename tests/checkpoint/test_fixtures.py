"""Checkpoints restore: of this release, and of one whose classes have other names.

Each fixture is an archive of what `fixture_queries.py` writes; after a change of the format, the
program writes the next one: python fixture_queries.py <folder>, then zip the folder.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from checkpoint import fixture_queries
from checkpoint.fixture_queries import QUERIES, RENAMED, Streams
from millstream.checkpoint import identity
from millstream.checkpoint.records import sealed, unsealed
from millstream.model.elements import Element, normal_form

HERE = Path(__file__).parent
FIXTURES = sorted((HERE / "fixtures").glob("*.zip"))


def settled(rows: list[list[Any]]) -> object:
    """Rows with an interval in normal form; changes as a bag."""
    if rows and rows[0][-1] in ("1", "-1"):
        return Counter(map(tuple, rows))
    elements = [Element(tuple(row), _instant(start), _instant(end), 1) for *row, start, end in rows]
    return normal_form(elements)


def _instant(text: str) -> int:
    return 2**63 - 1 if text == "None" else int(text)


@cache
def expected(name: str) -> object:
    return settled(fixture_queries.whole(name))


def unpacked_to(folder: Path, fixture: Path) -> Path:
    with zipfile.ZipFile(fixture) as archive:
        archive.extractall(folder)
    return folder


def test_there_is_one_of_this_format() -> None:
    assert f"format-{identity.FORMAT}" in [fixture.stem for fixture in FIXTURES]


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.stem)
def test_a_fixture_restores(fixture: Path, name: str, tmp_path: Path) -> None:
    folder = unpacked_to(tmp_path, fixture) / name.replace(" ", "-")
    assert settled(fixture_queries.resumed(folder, name)) == expected(name)


def written(folder: Path, *options: str) -> Path:
    program = [sys.executable, str(HERE / "fixture_queries.py"), str(folder), *options]
    subprocess.run(program, check=True, timeout=300)
    return folder


@pytest.fixture(scope="module")
def renamed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert len(RENAMED) >= 20
    return written(tmp_path_factory.mktemp("renamed") / "all", "renamed")


@pytest.mark.parametrize("name", QUERIES)
def test_names_of_classes_do_not_matter(renamed: Path, name: str) -> None:
    folder = renamed / name.replace(" ", "-")
    assert settled(fixture_queries.resumed(folder, name)) == expected(name)


def test_no_name_of_a_class_or_module_is_in_it(tmp_path: Path) -> None:
    unpacked_to(tmp_path, HERE / f"fixtures/format-{identity.FORMAT}.zip")
    for path in tmp_path.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        assert b"millstream." not in data, path
        assert b"numpy" not in data, path


# --- what cannot be read --------------------------------------------------------------------------


@pytest.fixture
def join(tmp_path: Path) -> Path:
    fixture = HERE / f"fixtures/format-{identity.FORMAT}.zip"
    return unpacked_to(tmp_path, fixture) / "join" / "checkpoint"


def refusal(checkpoint: Path) -> str:
    try:
        streams = Streams()
        running = streams.session.sql(QUERIES["join"]).start(checkpoint=str(checkpoint))
        streams.close()
        running.wait(30)
    except ms.QueryError as error:
        return str(error)
    return "none"


def changed(path: Path, change: Any) -> None:
    told = json.loads(unsealed(path.name, path.read_bytes()))
    change(told)
    path.write_bytes(sealed(json.dumps(told).encode()))


@pytest.mark.parametrize(
    ("format", "version", "writer"),
    [(4, None, "an earlier version"), (identity.FORMAT + 1, "9.9", "version 9.9")],
)
def test_another_format(join: Path, format: int, version: str | None, writer: str) -> None:
    def change(told: dict[str, Any]) -> None:
        told.update(format=format, version=version)
        if version is None:  # as in the formats before versions were written
            del told["version"]

    changed(join / "query", change)
    assert refusal(join) == (
        f"error: the checkpoint has format {format} of {writer}, but version {ms.__version__} "
        f"reads format {identity.FORMAT}\n"
        "help: use the version that wrote it, or start the query with a new checkpoint"
    )


def test_an_unknown_kind_of_operator(join: Path) -> None:
    changed(join / "query", lambda told: told.update(version="9.9"))
    changed(join / "plan", lambda told: told["plan"]["nodes"][-1].update({"is": "merge join"}))
    assert refusal(join) == (
        "error: the plan of the checkpoint cannot be read: it has a part of the unknown kind "
        '"merge join"; it was written by version 9.9, this is version '
        f"{ms.__version__}\n"
        "help: use the version that wrote it, or start the query with a new checkpoint"
    )


def test_a_state_that_does_not_fit(join: Path) -> None:
    changed(join / "query", lambda told: told.update(version="9.9"))
    changed(
        join / "plan",
        lambda told: told["fragments"]["value"][1]["signatures"].__setitem__(2, "lost"),
    )
    told = refusal(join)
    assert "a state of the checkpoint does not fit the query (" in told
    assert "it was written by version 9.9, this is version" in told


def test_fragments_whose_operators_have_no_names(join: Path) -> None:
    changed(join / "plan", lambda told: told["fragments"]["nodes"][-1].update(sources=[0]))
    assert "the plan of the checkpoint cannot be read: it has 5 names for 2 operators" in refusal(
        join
    )


@pytest.mark.parametrize("folder", ["state", "manifests", "spool", ".", "spool/A"])
def test_damage_is_told(join: Path, folder: str) -> None:
    for path in (join / folder).glob("*"):
        if path.is_file() and path.name not in ("lock", "token"):
            path.write_bytes(path.read_bytes()[:-3] + b"xyz")
    if folder == "spool":
        for path in (join / folder).glob("*/*"):
            path.write_bytes(path.read_bytes()[:-3] + b"xyz")
    assert "of the checkpoint is damaged: its checksum is wrong" in refusal(join)
