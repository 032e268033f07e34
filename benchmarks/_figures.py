"""Printing and publishing of the figures of benchmarks."""

import json
from collections.abc import Mapping
from pathlib import Path

Table = Mapping[str, Mapping[str, float | None]]
"""Figures by label, by what was measured. None: there is none."""


def print_tables(tables: Mapping[str, Table], *, digits: int) -> None:
    """Print tables under their titles."""
    for title, table in tables.items():
        print(f"\n{title}")
        for name, figures in table.items():
            print(f"  {name}")
            for label, figure in figures.items():
                shown = "-" if figure is None else f"{figure:.{digits}f}"
                print(f"    {label:<32} {shown:>12}")


def write_results(folder: Path | None, name: str, found: object) -> None:
    """Write figures into a folder, if there is one."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
        (folder / name).write_text(text, encoding="utf-8")
