"""Codes of types, values and shapes that are wrong."""

from streamsql.error_codes.entry import ErrorCode

MEANINGS = (
    ErrorCode(
        "type_mismatch",
        "Values of these types cannot be combined",
        "An operator, a comparison, a CASE or the branches of a UNION mix types without a "
        "common type. Only INTEGER to DOUBLE and constant text are converted.",
        "CAST one side.",
        "SELECT desk + weight FROM seat",
        "SELECT desk || weight AS label FROM seat",
    ),
    ErrorCode(
        "not_a_condition",
        "A condition is needed here",
        "WHERE, HAVING, ON, FILTER and CASE WHEN take a BOOLEAN.",
        "Compare the value with something.",
        "SELECT desk FROM seat WHERE weight",
        "SELECT desk FROM seat WHERE weight > 0",
    ),
    ErrorCode(
        "bad_literal",
        "The value cannot be read as this type",
        "A constant text stands where another type is needed, and it is not a value of that type.",
        "Write a value of the type, for example a time as '2026-01-01T08:00:00Z'.",
        "SELECT desk FROM seat WHERE ts > 'yesterday'",
        "SELECT desk FROM seat WHERE ts > '2026-01-01T08:00:00Z'",
    ),
    ErrorCode(
        "wrong_arguments",
        "A function does not take these arguments",
        "The function needs another number of arguments, or other types.",
        "The hint shows the correct call.",
        "SELECT SQRT(desk) FROM seat",
        "SELECT SQRT(weight) AS root FROM seat",
    ),
    ErrorCode(
        "bad_pattern",
        "The regular expression cannot be used",
        "The pattern is malformed, is not a constant, or uses constructs that differ "
        "between engines: back references, lookaround, lazy repetition, flags, word "
        "boundaries.",
        "Write it with . [ ] ( ) | * + ? { } ^ $ and \\d \\w \\s.",
        "SELECT desk FROM seat WHERE desk ~ '(d+'",
        "SELECT desk FROM seat WHERE desk ~ '(d+)'",
    ),
    ErrorCode(
        "bad_fraction",
        "A percentile needs a constant from 0 to 1",
        "The fraction of a percentile is part of the query.",
        "0.5 is the median.",
        "SELECT QUANTILE_CONT(weight, 95) FROM seat",
        "SELECT QUANTILE_CONT(weight, 0.95) AS p95 FROM seat",
    ),
    ErrorCode(
        "not_constant",
        "A constant is needed here",
        "Inserted rows and intervals must be known before the query runs.",
        "Write the value itself.",
        "INSERT INTO seat (desk, weight) VALUES ('d1', weight)",
        "INSERT INTO seat (desk, weight) VALUES ('d1', 60.0 + 1)",
    ),
    ErrorCode(
        "not_computable",
        "The value cannot be computed",
        "An expression of constants fails.",
        "Write the value itself.",
    ),
    ErrorCode(
        "column_count",
        "The numbers of columns differ",
        "Branches of a UNION, rows of VALUES, values of an INSERT and lists of names must "
        "have matching numbers of columns; a query used as a value must have one column.",
        "Add or remove columns.",
        "SELECT desk, room FROM seat UNION SELECT mid FROM machines",
        "SELECT desk, room FROM seat UNION SELECT mid, room FROM machines",
    ),
    ErrorCode(
        "not_grouped",
        "A column is neither grouped nor aggregated",
        "With GROUP BY or an aggregate, one row stands for many, so a column that is not "
        "grouped has no single value.",
        "Put the column into GROUP BY, or into an aggregate such as MIN or ARG_MAX.",
        "SELECT room, desk, COUNT(*) FROM seat GROUP BY room",
        "SELECT room, ARG_MAX(desk, weight) AS desk, COUNT(*) AS n FROM seat GROUP BY room",
    ),
    ErrorCode(
        "misplaced_aggregate",
        "An aggregate cannot stand here",
        "Aggregates stand in the select list, in HAVING and in ORDER BY: WHERE and ON test "
        "single rows, before grouping.",
        "Move the condition into HAVING.",
        "SELECT room FROM seat WHERE COUNT(*) > 2 GROUP BY room",
        "SELECT room FROM seat GROUP BY room HAVING COUNT(*) > 2",
    ),
    ErrorCode(
        "nested_aggregate",
        "An aggregate inside an aggregate",
        "A query groups only once.",
        "Compute the inner one in a query in FROM.",
        "SELECT MAX(COUNT(*)) FROM seat GROUP BY room",
        "SELECT MAX(n) AS most FROM (SELECT COUNT(*) AS n FROM seat GROUP BY room) AS q",
    ),
    ErrorCode(
        "empty_select",
        "The select list is empty",
        "A query has at least one column.",
        "Name a column, or write *.",
        "SELECT FROM seat",
        "SELECT * FROM seat",
    ),
    ErrorCode(
        "missing_from",
        "* without FROM",
        "Without FROM, * has no columns to stand for.",
        "Add FROM.",
        "SELECT *",
        "SELECT * FROM seat",
    ),
    ErrorCode(
        "missing_join_condition",
        "A JOIN without its condition",
        "Only CROSS JOIN and the comma need no condition.",
        "Add ON or USING.",
        "SELECT desk FROM seat JOIN machines",
        "SELECT desk FROM seat JOIN machines ON mid = desk",
    ),
    ErrorCode(
        "bad_asof_condition",
        "This is not the condition of an ASOF JOIN",
        "ASOF JOIN takes equalities of columns, and one comparison of a left time with a "
        "right time, joined by AND.",
        "Put other conditions into WHERE.",
        "SELECT 1 FROM seat s ASOF JOIN badge b ON s.room = b.room",
        "SELECT tag FROM seat s ASOF JOIN badge b ON s.room = b.room AND s.ts >= b.ts",
    ),
    ErrorCode(
        "bad_limit",
        "LIMIT takes a whole number of rows",
        "LIMIT and OFFSET take whole numbers that are constants.",
        "Write LIMIT 10.",
        "SELECT desk FROM seat ORDER BY weight LIMIT 2.5",
        "SELECT desk FROM seat ORDER BY weight LIMIT 2",
    ),
    ErrorCode(
        "missing_columns",
        "Columns are missing",
        "A source needs columns; a link source needs at least the two ends of a link.",
        "Add them.",
        "CREATE LINK SOURCE l (src TEXT)",
        "CREATE LINK SOURCE l (src TEXT, dst TEXT)",
    ),
    ErrorCode(
        "bad_watermark",
        "This cannot be the event time",
        "The watermark is computed from a TIMESTAMP column of the same source. Tables have "
        "no watermark.",
        "WATERMARK FOR ts AS ts - INTERVAL '5 s'.",
        "CREATE SOURCE s (a TEXT, WATERMARK FOR a AS a - INTERVAL '5 s')",
        "CREATE SOURCE s (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 s')",
    ),
    ErrorCode(
        "misplaced_window",
        "A window cannot stand here",
        "A window […] is allowed on streams, and on queries and views that only gain rows. "
        "Other derived rows expire with the rows they are derived from, and rows of tables "
        "do not expire. A stream can have only one window.",
        "Put the window on the stream, inside the view; write ISTREAM(…) around the query; or use "
        "TUMBLE, HOP or SESSION.",
        "SELECT n FROM (SELECT COUNT(*) AS n FROM seat) AS q [RANGE 10 MINUTES]",
        "SELECT desk FROM seat [RANGE 10 MINUTES] WHERE weight > 50",
    ),
    ErrorCode(
        "no_instants",
        "Stored tables have no instants",
        "ISTREAM, DSTREAM and RSTREAM emit at the instants of readings; rows of stored "
        "tables have no instants.",
        "Remove it and subscribe: readers receive the changes of the relation.",
        "ISTREAM(SELECT mid FROM machines)",
        "SELECT mid FROM machines",
    ),
    ErrorCode(
        "bad_window",
        "A window of this shape is not possible",
        "TUMBLE, HOP and SESSION take a relation, one of its TIMESTAMP columns and "
        "durations longer than 0; SESSION also takes key columns. PARTITION BY takes "
        "columns of the stream and needs ROWS.",
        "The hint shows the form.",
        "SELECT desk FROM TUMBLE(seat, desk, INTERVAL '1 minute')",
        "SELECT desk FROM TUMBLE(seat, ts, INTERVAL '1 minute')",
    ),
    ErrorCode(
        "no_watermark",
        "The window has no end",
        "EMIT ON WINDOW CLOSE and LATE need a source with a watermark and windows over its "
        "event time.",
        "Create the source with WATERMARK FOR ts AS ts - INTERVAL '5 s'.",
        "SELECT window_end, COUNT(*) FROM TUMBLE(log, ts, INTERVAL '1 minute') "
        "GROUP BY window_end EMIT ON WINDOW CLOSE",
        "SELECT window_end, COUNT(*) AS n FROM TUMBLE(seat, ts, INTERVAL '1 minute') "
        "GROUP BY window_end EMIT ON WINDOW CLOSE",
    ),
    ErrorCode(
        "emit_without_window",
        "EMIT ON WINDOW CLOSE without a window that closes",
        "The query must group by the end of a TUMBLE, HOP or SESSION window directly over "
        "a stream, and every stream that it joins must have such a window.",
        "Group by window_end.",
        "SELECT room, COUNT(*) FROM seat GROUP BY room EMIT ON WINDOW CLOSE",
        "SELECT window_end, room, COUNT(*) AS n FROM TUMBLE(seat, ts, INTERVAL '1 minute') "
        "GROUP BY window_end, room EMIT ON WINDOW CLOSE",
    ),
    ErrorCode(
        "never_late",
        "Rows of a keyed source are not late",
        "The newest row of each key counts, whenever it arrives, so windows over the "
        "source never close and no row is late.",
        "Create the source without KEY.",
        "SELECT tag FROM LATE(badge)",
        "SELECT desk FROM LATE(seat)",
    ),
)
