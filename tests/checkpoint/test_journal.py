"""Notes of a source: they are there in order, however often their files are made one."""

from __future__ import annotations

import pytest

from checkpoint.crash_recording import Recorder, left_by_crash
from fragments.fragment_agreement import MemoryFiles
from millstream.checkpoint import journal
from millstream.checkpoint.files import CheckpointError
from millstream.checkpoint.journal import Journal


def noted(files: MemoryFiles, count: int) -> None:
    """So many notes more, by a program that was started again."""
    notes = Journal(files, "S")
    known = notes.notes()
    assert known == [(10 * number, f"note {number}") for number in range(len(known))]
    for number in range(len(known), len(known) + count):
        notes.add(10 * number, f"note {number}")


def test_notes_come_again() -> None:
    files = MemoryFiles()
    assert Journal(files, "S").notes() == []
    for _ in range(3):
        noted(files, 4)
    assert len(Journal(files, "S").notes()) == 12
    assert Journal(files, "T").notes() == []


def test_many_files_become_one_whenever_the_program_crashes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal, "MOST_FILES", 3)
    files = Recorder()
    for _ in range(5):
        noted(files, 2)
    assert len(files.content) <= 5
    for count in range(len(files.writes) + 1):
        for torn in (False, True):
            left = left_by_crash(files.writes[:count], torn)
            noted(left, 5)
            noted(left, 1)
    assert len(Journal(files, "S").notes()) == 10


def test_a_file_that_is_gone() -> None:
    for name in ("journal/S/0000000000", "journal/S/0000000001"):
        files = MemoryFiles()
        noted(files, 3)
        del files.content[name]
        with pytest.raises(CheckpointError, match="a file of the checkpoint is missing"):
            Journal(files, "S").notes()


def test_notes_are_plain_values() -> None:
    notes = Journal(MemoryFiles(), "S")
    notes.notes()
    with pytest.raises(CheckpointError) as raised:
        notes.add(0, {"file": object()})
    assert str(raised.value) == (
        'error: the source of stream "S" keeps a note that is not plain: a record '
        "cannot contain a value of type object\n"
        "help: use numbers, strings, bytes, and lists, tuples and dicts of these"
    )
