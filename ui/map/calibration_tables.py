"""The tables of positions: which are missing, and the statements that create them."""

from collections.abc import Collection

TABLES = {
    "receiver": "receiver TEXT, room TEXT, floor INTEGER, x DOUBLE, y DOUBLE",
    "calibration_point": "point TEXT, room TEXT, floor INTEGER, x DOUBLE, y DOUBLE",
    "radio_map": "point TEXT, receiver TEXT, rssi DOUBLE",
}
"""Their columns as CREATE TABLE has them."""


def missing_tables(names: Collection[str]) -> tuple[str, ...]:
    """Return the tables of positions that are not among the relations of a catalog."""
    known = {name.lower() for name in names}
    return tuple(name for name in TABLES if name not in known)


def create_script(tables: Collection[str]) -> str:
    """Return the statements that create managed tables."""
    return ";\n".join(f"CREATE TABLE {name} ({TABLES[name]})" for name in tables)
