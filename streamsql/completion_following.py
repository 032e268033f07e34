"""Places where the grammar leaves few words: what alone is offered there.

After CREATE comes what is made, after GROUP comes BY, in `OVER (` a partition or an order. Like all
of completion it looks at words, because the text is unfinished.
"""

from collections.abc import Sequence

_EXPLAIN = "TYPE FEDERATED,TYPE LOGICAL,TYPE VALIDATE,FORMAT TEXT,FORMAT JSON,FORMAT DOT"
_AFTER: dict[tuple[str, ...], str] = {
    ("CREATE",): "SOURCE,LINK SOURCE,TABLE,VIEW,RECURSIVE VIEW,MATERIALIZED VIEW,FUNCTION,"
    "AGGREGATE,DISPLAY,ALARM",
    ("CREATE", "LINK"): "SOURCE",
    ("CREATE", "RECURSIVE"): "VIEW",
    ("CREATE", "MATERIALIZED"): "VIEW",
    ("ALTER",): "SITE",
    ("INSERT",): "INTO",
    ("DELETE",): "FROM",
    ("IF", "DELETE"): "GATEWAY,NODE",
    ("ADVANCE",): "TIME BY",
    ("ADVANCE", "TIME"): "BY",
    ("GROUP",): "BY",
    ("ORDER",): "BY",
    ("PARTITION",): "BY",
    ("IS",): "NULL,NOT NULL,DISTINCT FROM,NOT DISTINCT FROM,TRUE,FALSE,UNKNOWN",
    ("NULLS",): "FIRST,LAST",
    ("WITHIN",): "GROUP (ORDER BY",
    ("FILTER",): "(WHERE",
    ("FILTER", "("): "WHERE",
    ("OVER", "("): "PARTITION BY,ORDER BY,ROWS BETWEEN,RANGE BETWEEN",
    ("EMIT",): "ON WINDOW CLOSE",
    ("EMIT", "ON"): "WINDOW CLOSE",
    ("ON", "WINDOW"): "CLOSE",
    ("OUTPUT",): "TO DISPLAY",
    ("EXPLAIN", "("): _EXPLAIN,
    ("ISTREAM", "("): "SELECT,WITH",
    ("DSTREAM", "("): "SELECT,WITH",
    ("RSTREAM", "("): "SELECT,WITH",
    ("WITH", "RECURSIVE"): "",
}
"""What follows the one or two words before the place."""
_DELIVERY = "WITH (SNAPSHOT = false),WITH (PROGRESS),ENVELOPE UPSERT (KEY ("
_SETTINGS = "scheduler =,slice_ms =,queue_rows =,sharing =,report_seconds ="


def following(before: Sequence[str]) -> str | None:
    """Return the words that may follow, with commas between; None where the grammar leaves more.

    Args:
        before: The words of the statement before the place.
    """
    words = [word.upper() for word in before]
    for length in (2, 1):
        found = _AFTER.get(tuple(words[-length:]))
        if found is not None:
            return found
    return _of_statement(words)


def _of_statement(words: list[str]) -> str | None:
    """Return what a statement without a query's clauses goes on with."""
    depth = words.count("(") - words.count(")")
    match words:
        case ["CREATE", "DISPLAY", _]:
            return "WITH ("
        case ["CREATE", "ALARM", _]:
            return "AS"
        case ["ALTER", "SITE", _, *_] if depth > 0:
            return _SETTINGS if words[-1] in ("(", ",") else None
        case ["ALTER", "SITE", _, *rest] if "SET" not in rest:
            return "SET ("
        case ["SUBSCRIBE", *_]:
            return _of_subscription(words, depth)
        case _:
            return None


def _of_subscription(words: list[str], depth: int) -> str | None:
    if words[-2:] == ["WITH", "("] and depth == 1:
        return "SNAPSHOT = false,PROGRESS"
    if depth or ("SELECT" in words and words[-1] != ")"):
        return None
    named = [word for word in words[1:] if word != "TO"]
    return _DELIVERY if named else None
