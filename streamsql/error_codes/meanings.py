"""Codes of types, values and shapes that are wrong."""

from streamsql.error_codes.entry import ErrorCode

MEANINGS = (
    ErrorCode(
        "type_mismatch",
        "Values of these types do not go together",
        "An operator, a comparison, a CASE or the branches of a UNION mix types that have no "
        "common one. Nothing is converted but INTEGER to DOUBLE, and texts that are constants.",
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
        "A constant text stands where another type is needed and is none of it.",
        "Write it as the type is written: times as '2026-01-01T08:00:00Z'.",
        "SELECT desk FROM seat WHERE ts > 'yesterday'",
        "SELECT desk FROM seat WHERE ts > '2026-01-01T08:00:00Z'",
    ),
    ErrorCode(
        "wrong_arguments",
        "A function is not called like this",
        "The number or the types of the arguments are not those of the function.",
        "The hint shows how it is called.",
        "SELECT SQRT(desk) FROM seat",
        "SELECT SQRT(weight) AS root FROM seat",
    ),
    ErrorCode(
        "bad_pattern",
        "A regular expression that cannot be used",
        "The pattern is malformed, no constant, or uses what means different things in different "
        "engines: back references, looking around, lazy repetition, flags, word boundaries.",
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
        "Rows that are inserted, and intervals, are known before anything runs.",
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
        "Branches of a UNION, rows of VALUES, values of an INSERT and lists of names have as many "
        "columns as what they belong to; a query used as a value has one.",
        "Add or leave out columns.",
        "SELECT desk, room FROM seat UNION SELECT mid FROM machines",
        "SELECT desk, room FROM seat UNION SELECT mid, room FROM machines",
    ),
    ErrorCode(
        "not_grouped",
        "A column is neither grouped nor aggregated",
        "With GROUP BY, or beside an aggregate, a row stands for many: of a column that is not "
        "grouped there is no single value.",
        "Put the column into GROUP BY, or into an aggregate such as MIN or ARG_MAX.",
        "SELECT room, desk, COUNT(*) FROM seat GROUP BY room",
        "SELECT room, ARG_MAX(desk, weight) AS desk, COUNT(*) AS n FROM seat GROUP BY room",
    ),
    ErrorCode(
        "misplaced_aggregate",
        "An aggregate cannot stand here",
        "Aggregates stand in the select list, in HAVING and in ORDER BY: WHERE and ON look at "
        "single rows, before there are groups.",
        "Move the condition into HAVING.",
        "SELECT room FROM seat WHERE COUNT(*) > 2 GROUP BY room",
        "SELECT room FROM seat GROUP BY room HAVING COUNT(*) > 2",
    ),
    ErrorCode(
        "nested_aggregate",
        "An aggregate inside an aggregate",
        "One query groups once.",
        "Compute the inner one in a query in FROM.",
        "SELECT MAX(COUNT(*)) FROM seat GROUP BY room",
        "SELECT MAX(n) AS most FROM (SELECT COUNT(*) AS n FROM seat GROUP BY room) AS q",
    ),
    ErrorCode(
        "empty_select",
        "The select list is empty",
        "A query gives at least one column.",
        "Name a column, or write *.",
        "SELECT FROM seat",
        "SELECT * FROM seat",
    ),
    ErrorCode(
        "missing_from",
        "* without FROM",
        "Without FROM there are no columns that * could stand for.",
        "Add FROM.",
        "SELECT *",
        "SELECT * FROM seat",
    ),
    ErrorCode(
        "missing_join_condition",
        "A JOIN without its condition",
        "Only CROSS JOIN and the comma take none.",
        "Add ON or USING.",
        "SELECT desk FROM seat JOIN machines",
        "SELECT desk FROM seat JOIN machines ON mid = desk",
    ),
    ErrorCode(
        "bad_asof_condition",
        "This is not the condition of an ASOF JOIN",
        "ASOF JOIN takes equalities of columns, and one comparison of a time of the left with one "
        "of the right, joined by AND.",
        "Put other conditions into WHERE.",
        "SELECT 1 FROM seat s ASOF JOIN badge b ON s.room = b.room",
        "SELECT tag FROM seat s ASOF JOIN badge b ON s.room = b.room AND s.ts >= b.ts",
    ),
    ErrorCode(
        "bad_limit",
        "LIMIT takes a number of rows",
        "LIMIT and OFFSET take whole numbers that are constants.",
        "Write LIMIT 10.",
        "SELECT desk FROM seat ORDER BY weight LIMIT 2.5",
        "SELECT desk FROM seat ORDER BY weight LIMIT 2",
    ),
    ErrorCode(
        "missing_columns",
        "Columns are missing",
        "A source needs columns, a link source at least the two ends of a link.",
        "Add them.",
        "CREATE LINK SOURCE l (src TEXT)",
        "CREATE LINK SOURCE l (src TEXT, dst TEXT)",
    ),
    ErrorCode(
        "bad_watermark",
        "This cannot be the event time",
        "The watermark is computed from a TIMESTAMP column of the same source; tables have none.",
        "WATERMARK FOR ts AS ts - INTERVAL '5 s'.",
        "CREATE SOURCE s (a TEXT, WATERMARK FOR a AS a - INTERVAL '5 s')",
        "CREATE SOURCE s (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 s')",
    ),
    ErrorCode(
        "misplaced_window",
        "A window cannot stand here",
        "[…] stands on streams, and on queries and views to which rows are only added: what is "
        "derived otherwise expires with the rows it rests on, and rows of tables do not expire. A "
        "stream takes one.",
        "Put the window on the stream, inside the view; write ISTREAM(…) around the query; or use "
        "TUMBLE, HOP or SESSION.",
        "SELECT n FROM (SELECT COUNT(*) AS n FROM seat) AS q [RANGE 10 MINUTES]",
        "SELECT desk FROM seat [RANGE 10 MINUTES] WHERE weight > 50",
    ),
    ErrorCode(
        "no_instants",
        "Stored tables have no instants",
        "ISTREAM, DSTREAM and RSTREAM follow a query through the times of readings; rows of stored "
        "tables have none.",
        "Leave it out and subscribe: readers get the changes of the relation.",
        "ISTREAM(SELECT mid FROM machines)",
        "SELECT mid FROM machines",
    ),
    ErrorCode(
        "bad_window",
        "A window of this shape is not possible",
        "TUMBLE, HOP and SESSION take a relation, a TIMESTAMP column of it and durations longer "
        "than nothing, SESSION also columns as keys. PARTITION BY takes columns of the stream "
        "and goes with ROWS.",
        "The hint shows the form.",
        "SELECT desk FROM TUMBLE(seat, desk, INTERVAL '1 minute')",
        "SELECT desk FROM TUMBLE(seat, ts, INTERVAL '1 minute')",
    ),
    ErrorCode(
        "no_watermark",
        "Nothing says when the window is over",
        "EMIT ON WINDOW CLOSE and LATE need a source with a watermark, and windows over its event "
        "time.",
        "Create the source with WATERMARK FOR ts AS ts - INTERVAL '5 s'.",
        "SELECT window_end, COUNT(*) FROM TUMBLE(log, ts, INTERVAL '1 minute') "
        "GROUP BY window_end EMIT ON WINDOW CLOSE",
        "SELECT window_end, COUNT(*) AS n FROM TUMBLE(seat, ts, INTERVAL '1 minute') "
        "GROUP BY window_end EMIT ON WINDOW CLOSE",
    ),
    ErrorCode(
        "emit_without_window",
        "EMIT ON WINDOW CLOSE without a window that closes",
        "The query groups by the end of a window of TUMBLE, HOP or SESSION over a stream as it "
        "arrives; every stream it joins has such a window.",
        "Group by window_end.",
        "SELECT room, COUNT(*) FROM seat GROUP BY room EMIT ON WINDOW CLOSE",
        "SELECT window_end, room, COUNT(*) AS n FROM TUMBLE(seat, ts, INTERVAL '1 minute') "
        "GROUP BY window_end, room EMIT ON WINDOW CLOSE",
    ),
    ErrorCode(
        "never_late",
        "Rows of a keyed source are not late",
        "Of each key the newest row counts, whenever it comes, so no window over it is ever over "
        "and nothing comes too late.",
        "Create the source without KEY.",
        "SELECT tag FROM LATE(badge)",
        "SELECT desk FROM LATE(seat)",
    ),
)
