"""What the catalogue says about one code."""

from dataclasses import dataclass

SCHEMA = """\
CREATE SOURCE seat (desk TEXT, room TEXT, weight DOUBLE, ts TIMESTAMP,
                    WATERMARK FOR ts AS ts - INTERVAL '5 s') WITH (ttl = '1 h');
CREATE SOURCE badge (tag TEXT, room TEXT, ts TIMESTAMP, KEY (tag),
                     WATERMARK FOR ts AS ts - INTERVAL '5 s') WITH (ttl = '90 s');
CREATE SOURCE log (line TEXT, level INTEGER, ts TIMESTAMP);
CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE) WITH (ttl = '90 s');
CREATE TABLE machines (mid TEXT PRIMARY KEY, room TEXT, level INTEGER);
CREATE VIEW heavy AS SELECT desk, weight FROM seat WHERE weight > 50;
"""
"""What the examples of the catalogue read."""


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """One kind of refusal.

    Attributes:
        code: Stable identifier, as errors carry it.
        title: What is wrong, in a few words.
        meaning: When it comes, in a sentence or two.
        fix: What to do about it.
        example: A statement over `SCHEMA` that is refused with this code; empty for what happens
            outside of statements.
        instead: A statement that is accepted where the example is not.
    """

    code: str
    title: str
    meaning: str
    fix: str
    example: str = ""
    instead: str = ""
