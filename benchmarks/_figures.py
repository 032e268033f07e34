"""What benchmarks print of their figures."""

from collections.abc import Mapping

Table = Mapping[str, Mapping[str, float]]
"""Figures by label, by what was measured."""


def print_tables(tables: Mapping[str, Table], *, digits: int) -> None:
    """Print tables under their titles."""
    for title, table in tables.items():
        print(f"\n{title}")
        for name, figures in table.items():
            print(f"  {name}")
            for label, figure in figures.items():
                print(f"    {label:<32} {figure:12.{digits}f}")
