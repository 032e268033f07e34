"""Defaults: what is assumed of what nobody has measured, with the range it may well lie in.

Each is one constant of the optimizer. `sys_costs` lists them, and EXPLAIN says which it used.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Default:
    """An assumed number.

    Attributes:
        words: The quantity, with its unit.
        low: The least that is usual.
        high: The most that is usual.
        why: Where the number comes from.
    """

    words: str
    value: float
    low: float
    high: float
    why: str = "default"

    @property
    def range_text(self) -> str:
        """The range in words.

        Examples:
            >>> Default("rows of a stream", 400.0, 1.0, 100_000.0).range_text
            '1 to 100,000'
        """
        return f"{_text(self.low)} to {_text(self.high)}"


def _text(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:g}"


_PAPER = "default: the network of the papers"
_MEASURED = "measured when this release was made"
_SERVER = "measured on a core of the server class of the 2020s"

STREAM_ROWS = Default("rows of a stream", 400.0, 1.0, 100_000.0, _PAPER)
TABLE_ROWS = Default("rows of a table", 1_000.0, 1.0, 10_000_000.0)
DATABASE_ROWS = Default(
    "rows of a table in a database that has not answered", 1_000_000.0, 1.0, 1_000_000_000.0
)
ROW_LIFE = Default("seconds that a row of a stream stays", 600.0, 1.0, 86_400.0)
RENEWALS = Default("times that a row is renewed before it ends", 10.0, 1.0, 1_000.0)
REPLACED = Default(
    "share of a device's changes that put a reading in the place of its last one", 0.9, 0.1, 1.0
)
SAME_VALUE = Default(
    "share of a device's readings that bring the same text or truth", 0.9, 0.1, 1.0
)
EQUALITY = Default("share of rows that pass an equality", 0.1, 0.0001, 1.0)
COMPARISON = Default("share of rows that pass another comparison", 1 / 3, 0.0001, 1.0)
DEGREE = Default("base rows of a recursion for a value joined", 4.0, 1.0, 100.0, _PAPER)
DEPTH = Default("values of a computed column of a recursion", 8.0, 1.0, 100.0, _PAPER)
SUPPORT = Default("tokens in a shortest conjunction", 8.0, 1.0, 20.0, _PAPER)
ROWS_PER_MESSAGE = Default("derived rows in a message", 4.0, 1.0, 10.0, _MEASURED)
ENVELOPE_BYTES = Default("bytes of a message without its rows", 20.0, 18.0, 100.0, _MEASURED)
TOPIC_BYTES = Default("bytes of a message around its payload", 48.0, 20.0, 150.0, _MEASURED)
STEP_SECONDS = Default("seconds between two steps of a busy site", 0.02, 0.001, 10.0, "tick_ms")
SNAPSHOT_SECONDS = Default("seconds after which rows are sent anew", 3_600.0, 60.0, 86_400.0)
TOKEN_BYTES = Default("bytes of a token", 5.0, 2.0, 9.0, _MEASURED)
LITERAL_BYTES = Default("bytes of a token in an annotation", 0.5, 0.1, 2.0, _MEASURED)
HOP_MILLISECONDS = Default("milliseconds from a site to the next", 2.0, 0.5, 100.0, _MEASURED)
HOP_ENERGY = Default("microjoules of a byte from a site to the next", 1.0, 0.01, 5.0)
STEP_MICROSECONDS = Default(
    "microseconds of a step of a fragment that reads something new", 14.0, 2.0, 500.0, _SERVER
)
FILTER_MICROSECONDS = Default(
    "microseconds of a changed row in a filter or projection", 0.8, 0.05, 50.0, _SERVER
)
FILTER_ROW_MICROSECONDS = Default(
    "microseconds of a further changed row at once in a filter or projection",
    0.2,
    0.02,
    10.0,
    _SERVER,
)
LOOKUP_MICROSECONDS = Default(
    "microseconds of a changed row of which a site looks up who reads it", 0.03, 0.005, 5.0, _SERVER
)
WINDOW_MICROSECONDS = Default("microseconds of a changed row in a window", 3.0, 0.2, 100.0, _SERVER)
JOIN_MICROSECONDS = Default("microseconds of a changed row in a join", 6.0, 0.2, 100.0, _SERVER)
JOIN_ROW_MICROSECONDS = Default(
    "microseconds of a further changed row at once in a join", 1.2, 0.05, 50.0, _SERVER
)
GROUP_MICROSECONDS = Default(
    "microseconds of a changed row in groups, orders or DISTINCT", 7.0, 0.2, 100.0, _SERVER
)
GROUP_ROW_MICROSECONDS = Default(
    "microseconds of a further changed row at once in groups, orders or DISTINCT",
    1.3,
    0.05,
    50.0,
    _SERVER,
)
RECURSION_MICROSECONDS = Default(
    "microseconds of a changed row that a recursion reads or derives", 45.0, 2.0, 1_000.0, _SERVER
)
BATCH_MICROSECONDS = Default(
    "microseconds of a batch: encoded, decoded, and the step that reads it",
    42.0,
    5.0,
    2_000.0,
    _SERVER,
)
BYTE_NANOSECONDS = Default(
    "nanoseconds of a byte of a small batch, encoded and decoded", 150.0, 10.0, 5_000.0, _SERVER
)
MESSAGE_MICROSECONDS = Default(
    "microseconds of a message in the broker clients of both ends", 100.0, 10.0, 5_000.0, _SERVER
)
WINDOW_BYTES = Default("bytes of a row kept in a window", 420.0, 40.0, 4_000.0, _SERVER)
JOIN_BYTES = Default("bytes of a row kept in a join", 140.0, 10.0, 2_000.0, _SERVER)
GROUP_BYTES = Default("bytes of a kept group", 450.0, 30.0, 4_000.0, _SERVER)
ORDER_BYTES = Default(
    "bytes of a row kept in an order, a set, MIN or MAX", 105.0, 5.0, 2_000.0, _SERVER
)
RECURSION_BYTES = Default("bytes of a row kept in a recursion", 240.0, 30.0, 10_000.0, _SERVER)
LOCAL_FLOOR = Default("seconds of the smallest local evaluation", 0.0005, 0.0001, 0.1, _SERVER)
LOCAL_ROWS = Default(
    "rows a second of the local executor", 600_000.0, 20_000.0, 5_000_000.0, _SERVER
)
SPARK_FLOOR = Default("seconds of the smallest evaluation of Spark", 0.3, 0.05, 5.0)
SPARK_ROWS = Default("rows a second of Spark", 1_000_000.0, 100_000.0, 100_000_000.0)
BOOLEAN_BYTES = Default("bytes of a truth value", 1.0, 1.0, 1.0, "the encoding")
INTEGER_BYTES = Default("bytes of a whole number", 3.0, 1.0, 9.0)
DOUBLE_BYTES = Default("bytes of a DOUBLE", 9.0, 3.0, 9.0, "the encoding")
TEXT_BYTES = Default("bytes of a text", 8.0, 1.0, 100.0)
TIMESTAMP_BYTES = Default("bytes of a time", 9.0, 9.0, 9.0, "the encoding")

DEFAULTS = (
    STREAM_ROWS,
    TABLE_ROWS,
    DATABASE_ROWS,
    ROW_LIFE,
    RENEWALS,
    REPLACED,
    SAME_VALUE,
    EQUALITY,
    COMPARISON,
    DEGREE,
    DEPTH,
    SUPPORT,
    ROWS_PER_MESSAGE,
    ENVELOPE_BYTES,
    TOPIC_BYTES,
    STEP_SECONDS,
    SNAPSHOT_SECONDS,
    TOKEN_BYTES,
    LITERAL_BYTES,
    HOP_MILLISECONDS,
    HOP_ENERGY,
    STEP_MICROSECONDS,
    FILTER_MICROSECONDS,
    FILTER_ROW_MICROSECONDS,
    LOOKUP_MICROSECONDS,
    WINDOW_MICROSECONDS,
    JOIN_MICROSECONDS,
    JOIN_ROW_MICROSECONDS,
    GROUP_MICROSECONDS,
    GROUP_ROW_MICROSECONDS,
    RECURSION_MICROSECONDS,
    BATCH_MICROSECONDS,
    BYTE_NANOSECONDS,
    MESSAGE_MICROSECONDS,
    WINDOW_BYTES,
    JOIN_BYTES,
    GROUP_BYTES,
    ORDER_BYTES,
    RECURSION_BYTES,
    LOCAL_FLOOR,
    LOCAL_ROWS,
    SPARK_FLOOR,
    SPARK_ROWS,
    BOOLEAN_BYTES,
    INTEGER_BYTES,
    DOUBLE_BYTES,
    TEXT_BYTES,
    TIMESTAMP_BYTES,
)
"""All of them, in the order of `sys_costs`."""
