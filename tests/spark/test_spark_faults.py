"""What goes wrong on Spark costs time or is refused in words; it never changes the answer.

The usual run kills the driver twice; MILLSTREAM_KILLS=30 kills it so often.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import millstream as ms
from effort import kills
from millstream.spark import keepers
from spark import driven_query
from spark.driven_query import ROWS, answers, checkpoint, expected, run, session_of

pytestmark = pytest.mark.xdist_group("spark")

KILLS = kills(2)


# --- processes that are killed --------------------------------------------------------------------


def last_manifest(folder: Path) -> str:
    return max((path.name for path in checkpoint(folder).glob("manifests/*")), default="")


def test_driver_killed_again_and_again(tmp_path: Path) -> None:
    random = Random(KILLS)
    batch = ROWS // max(20, 3 * KILLS)
    command = [sys.executable, driven_query.__file__, str(tmp_path), str(batch), "local[2]"]
    for _ in range(KILLS):
        before = last_manifest(tmp_path)
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while process.poll() is None and last_manifest(tmp_path) == before:
            time.sleep(0.01)
        assert process.poll() is None, "it is killed within its work"
        time.sleep(random.uniform(0, 1.0))
        process.kill()
        process.wait()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    assert answers(tmp_path) == expected()
    assert not list(checkpoint(tmp_path).rglob("*.draft"))


def once(flag: Path) -> Callable[[pa.Array], pa.Array]:
    """A function that ends the process in which it is called for the first time."""

    def function(values: pa.Array) -> pa.Array:
        try:
            flag.touch(exist_ok=False)
        except FileExistsError:
            return values
        os._exit(1)

    return function


# In the first query the function is called by a task, in the second by a keeper.
CALLS = [
    "SELECT {f}(k) AS k, COUNT(*) AS n, SUM(v) AS s FROM A WINDOW(RANGE 50) GROUP BY {f}(k)",
    "SELECT {f}(k) AS k, COUNT(*) AS n, SUM(v) AS s FROM A WINDOW(RANGE 50) GROUP BY k",
]


@pytest.mark.parametrize("call", CALLS)
def test_process_that_ends_at_its_work(tmp_path: Path, call: str) -> None:
    sql = call.format(f="once")
    session = session_of("spark")
    flag = tmp_path / "called"
    session.function("once", once(flag), returns="BIGINT")
    run(session, tmp_path, ROWS // 4, sql=sql)
    assert flag.exists()
    local = session_of("local")
    local.function("once", lambda values: values, returns="BIGINT")
    assert answers(tmp_path) == driven_query.elements(local.sql(sql).run().to_pylist())


# --- files that are damaged or cannot be written --------------------------------------------------


@pytest.fixture(scope="module")
def halfway(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a query that was stopped between two batches."""
    folder = tmp_path_factory.mktemp("halfway")

    def stop(id: int) -> None:
        if id == 2:
            running.stop()

    with driven_query.batches_of(ROWS // 8):
        running = driven_query.start(session_of("spark"), folder, stop)
        running.wait()
    return folder


@pytest.fixture
def left(halfway: Path, tmp_path: Path) -> Path:
    subprocess.run(["cp", "-r", f"{halfway}/.", str(tmp_path)], check=True)
    return tmp_path


def test_goes_on(left: Path) -> None:
    (checkpoint(left) / "manifests/0000000001.ab12.draft").write_text("half of it")
    run(session_of("spark"), left, ROWS // 8)
    assert answers(left) == expected()
    assert not list(checkpoint(left).rglob("*.draft"))


@pytest.mark.parametrize("part", ["manifests", "state"])
def test_file_that_is_cut_off(left: Path, part: str) -> None:
    newest = max(checkpoint(left).glob(f"{part}/*"), key=lambda path: path.stat().st_size)
    if part == "manifests":
        newest = max(checkpoint(left).glob("manifests/*"))
    data = newest.read_bytes()
    newest.write_bytes(data[: len(data) // 2])
    with pytest.raises(ms.QueryError, match="is damaged") as error:
        run(session_of("spark"), left, ROWS // 8)
    assert len(str(error.value).splitlines()) <= 3


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("file systems cannot be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_full_disk(small_disk: Path) -> None:
    filler = small_disk / "filler"

    def fill(id: int) -> None:
        if id == 1:
            with filler.open("wb", buffering=0) as file:
                while os.statvfs(small_disk).f_bavail:
                    file.write(b"\0" * 4096)

    with pytest.raises(ms.QueryError, match="cannot be written: No space left on device") as error:
        run(session_of("spark"), small_disk, ROWS // 8, fill)
    assert 'query "driven"' in str(error.value)
    assert "resumes from its last batch" in str(error.value)
    filler.unlink()
    run(session_of("spark"), small_disk, ROWS // 8)
    assert answers(small_disk) == expected()


# --- people ---------------------------------------------------------------------------------------


def test_two_processes(halfway: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(checkpoint(halfway))], stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(ms.QueryError, match="is in use by another query"):
            driven_query.start(session_of("spark"), halfway)
    finally:
        holder.kill()
        holder.wait()


def test_keepers_whose_folder_is_not_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = secrets.token_hex(8)
    monkeypatch.setattr(keepers.KeptQuery, "new", lambda *given: keepers.KeptQuery(*given, token))
    folder = Path(tempfile.gettempdir()) / f"millstream-{os.getuid()}-{token}"
    folder.mkdir(0o755)
    try:
        with pytest.raises(ms.QueryError) as error:
            run(session_of("spark"), tmp_path, ROWS)
        assert list(folder.iterdir()) == []
    finally:
        folder.rmdir()
    assert str(error.value) == (
        f'error: query "driven" failed: the folder "{folder}" of the keepers of this query is not '
        "private\nhelp: another user may have created it: set TMPDIR to a folder of your own"
    )


_HOLD = """
import sys, time
from millstream.checkpoint.files import Lock
lock = Lock(sys.argv[1])
print("held", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("call", CALLS)
def test_function_that_raises(tmp_path: Path, call: str) -> None:
    def wrong(values: pa.Array) -> pa.Array:
        raise ValueError("the oil is gone")

    session = session_of("spark", rows=20)
    session._workspace.settings = replace(session._workspace.settings, on_error="stop")
    session.function("wrong", wrong, returns="BIGINT")
    with pytest.raises(ms.QueryError) as error:
        run(session, tmp_path, ROWS, sql=call.format(f="wrong"))
    told = str(error.value)
    assert "the oil is gone" in told
    assert "driven" in told
    assert "Traceback" not in told
    assert len(told.splitlines()) <= 3
