"""What a killed query left behind."""

from __future__ import annotations

from pathlib import Path

from millstream.model.elements import Element, normal_form


def elements(rows: list[dict[str, int]]) -> list[Element]:
    return normal_form(
        Element((row["k"], row["n"], row["s"]), row["valid_from"], row["valid_to"]) for row in rows
    )


def last_manifest(folder: Path) -> str:
    return max((path.name for path in folder.glob("checkpoint/manifests/*")), default="")
