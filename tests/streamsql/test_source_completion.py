"""Completion of CREATE SOURCE and ALTER SOURCE."""

import pytest

from streamsql.completion import complete

RELATIONS = {"climate": ("device", "temp"), "hot": ("device",)}


def labels(marked: str) -> list[str]:
    text, place = marked.replace("|", ""), marked.index("|")
    return [found.label for found in complete(text, place, RELATIONS)]


@pytest.mark.parametrize(
    ("marked", "offered"),
    [
        ("CREATE or |", ["REPLACE SOURCE", "REPLACE LINK SOURCE"]),
        ("CREATE OR REPLACE |", ["SOURCE", "LINK SOURCE"]),
        ("CREATE SOURCE |", []),
        ("CREATE OR REPLACE SOURCE c|", ["climate"]),
        ("CREATE SOURCE s |", ["("]),
        ("CREATE SOURCE s (|", ["KEY (", "PRIMARY KEY (", "WATERMARK FOR"]),
        ("CREATE SOURCE s (a TEXT, k|", ["KEY ("]),
        ("CREATE SOURCE s (a T|", ["TEXT", "TIMESTAMP"]),
        ("CREATE LINK SOURCE s (a DOUBLE UNIT 'Cel' FROM 'x' S|", ["SCALE"]),
        ("CREATE SOURCE s (a DOUBLE F|", ["FROM", "FORMAT"]),
        ("CREATE SOURCE s (a DOUBLE FROM 'x' F|", ["FORMAT"]),
        ("CREATE SOURCE s (a TIMESTAMP FORMAT 'iso' Z|", ["ZONE"]),
        ("CREATE SOURCE s (a BOOLEAN VALUES ('ON' = |", ["TRUE", "FALSE", "NULL"]),
        ("CREATE SOURCE s (a BOOLEAN VALUES ('ON' = TRUE), b BOOLEAN VAL|", ["VALUES"]),
        ("CREATE SOURCE s (a TEXT) |", ["WITH ("]),
        ("CREATE SOURCE s (a TEXT) WITH (conn|", ["connector ="]),
        ("CREATE SOURCE s (a TEXT) WITH (connector = 'mqtt', topic = 'a', i|", ["idle ="]),
        ("CREATE SOURCE s (a TEXT) WITH (header = |", ["'true'", "'false'"]),
        ("CREATE SOURCE s (a TEXT) WITH (topic = |", []),
        ("ALTER SOURCE |", ["climate", "hot"]),
        ("ALTER SOURCE climate |", ["ADD COLUMN", "DROP COLUMN"]),
        ("ALTER SOURCE climate ADD COLUMN hum D|", ["DOUBLE"]),
        ("ALTER SOURCE climate ADD COLUMN hum DOUBLE UN|", ["UNIT"]),
        ("SELECT 1; ALTER SOURCE climate ADD |", ["COLUMN"]),
    ],
)
def test_only_what_fits_is_offered(marked: str, offered: list[str]) -> None:
    assert labels(marked) == offered


def test_connectors_formats_and_facts_are_offered() -> None:
    assert "'modbus'" in labels("CREATE SOURCE s (a TEXT) WITH (connector = |")
    assert "'senml'" in labels("CREATE SOURCE s (a TEXT) WITH (format = |")
    assert "'@topic'" in labels("CREATE SOURCE s (a TEXT FROM |")
    assert "'comma'" in labels("CREATE SOURCE s (a DOUBLE FORMAT |")
