"""docs/cli.md is true: its commands print what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from millstream.cli.main import app, run_command

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "cli.md"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_commands_print_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = 0
    for kind, text in _BLOCK.findall(DOCUMENT.read_text(encoding="utf-8")):
        if kind in ("csv", "sql"):
            Path(f"bids.{kind}").write_text(text)
        if kind == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, _, printed = part.partition("\n")
                program, *arguments = shlex.split(command)
                assert program == "millstream"
                assert run_command(arguments) == 0
                assert capsys.readouterr().out == printed
                ran += 1
    assert ran == 4


def test_it_tells_of_all_commands() -> None:
    told = set(re.findall(r"^\| `millstream (\w+)", DOCUMENT.read_text(), re.MULTILINE))
    assert told == {command.callback.__name__ for command in app.registered_commands}
