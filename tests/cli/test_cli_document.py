"""docs/cli.md tells of every command; that they print what it says is tested with all documents."""

from __future__ import annotations

import re
from pathlib import Path

from millstream.cli.main import app

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "cli.md"


def test_it_tells_of_all_commands() -> None:
    told = set(re.findall(r"^\| `millstream (\w+)", DOCUMENT.read_text(), re.MULTILINE))
    assert told == {command.callback.__name__ for command in app.registered_commands}
