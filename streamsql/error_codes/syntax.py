"""Codes of texts that are not StreamSQL."""

from streamsql.error_codes.entry import ErrorCode

SYNTAX = (
    ErrorCode(
        "unexpected_token",
        "A word or sign cannot stand here",
        "The parser expected something else at the place shown. Often a comma, an operator or a "
        "keyword is missing just before it, or a keyword is misspelt.",
        "Look at the place and the word before it; the hint names misspelt keywords.",
        "SELECT desk FORM seat",
        "SELECT desk FROM seat",
    ),
    ErrorCode(
        "unexpected_end",
        "The statement ends too early",
        "A part is incomplete, for example an operator without its right side or FROM "
        "without a relation.",
        "Add what the message names.",
        "SELECT desk FROM seat WHERE weight >",
        "SELECT desk FROM seat WHERE weight > 5",
    ),
    ErrorCode(
        "unclosed_bracket",
        "A bracket is not closed",
        "A bracket is open where another token stands.",
        "Close the bracket, or put the missing comma or operator inside.",
        "SELECT (desk FROM seat",
        "SELECT (desk) FROM seat",
    ),
    ErrorCode(
        "unclosed_quote",
        "A text, name or comment is not closed",
        "The text ends inside a quote or a /* comment.",
        "Close it. Inside a text, '' stands for one quote.",
        "SELECT 'it''s FROM seat",
        "SELECT 'it''s' AS x FROM seat",
    ),
    ErrorCode(
        "trailing_comma",
        "Nothing follows a comma",
        "A list ends with a comma.",
        "Remove the comma, or add the next element.",
        "SELECT desk, FROM seat",
        "SELECT desk FROM seat",
    ),
    ErrorCode(
        "empty_statement",
        "There is no statement",
        "The text contains only blanks and comments.",
        "Write a statement.",
        "-- nothing",
        "SHOW SOURCES",
    ),
    ErrorCode(
        "several_statements",
        "More than one statement",
        "Only one statement is allowed here.",
        "Send them one by one, or run them as a script: pando run FILE.",
        "SHOW SOURCES; SHOW VIEWS",
        "SHOW SOURCES",
    ),
    ErrorCode(
        "duplicate_clause",
        "A clause or option appears twice",
        "KEY, WATERMARK or an option of WITH stands there a second time.",
        "Remove one of them.",
        "CREATE SOURCE s (a TEXT) WITH (ttl = '5 s', ttl = '6 s')",
        "CREATE SOURCE s (a TEXT) WITH (ttl = '5 s')",
    ),
    ErrorCode(
        "misplaced_options",
        "Options stand inside the query",
        "WITH (option = …) applies to the whole statement and must follow it.",
        "Move it to the end.",
        "SELECT desk FROM (SELECT desk FROM seat WITH (strategy = 'set')) AS q",
        "SELECT desk FROM (SELECT desk FROM seat) AS q WITH (strategy = 'set')",
    ),
    ErrorCode(
        "misplaced_emit",
        "ISTREAM, DSTREAM, RSTREAM or EMIT stands in the wrong place",
        "ISTREAM, DSTREAM and RSTREAM enclose a whole query or a whole select list, in "
        "statements, views and FROM but not in conditions. EMIT ON WINDOW CLOSE already "
        "produces a stream and stands at the end.",
        "Write it around the query that produces the rows.",
        "SELECT ISTREAM(desk), weight FROM seat",
        "SELECT ISTREAM(desk, weight) FROM seat",
    ),
    ErrorCode(
        "misplaced_output",
        "OUTPUT TO DISPLAY cannot follow this query",
        "A display shows the result of a running query, not of a view, an alarm, a "
        "subscription or a subquery.",
        "Write it after a separate query.",
        "CREATE VIEW v AS SELECT desk FROM seat OUTPUT TO DISPLAY lobby",
        "CREATE VIEW v AS SELECT desk FROM seat",
    ),
    ErrorCode(
        "misplaced_envelope",
        "A stream has no upserts",
        "ENVELOPE UPSERT sends the changes of a relation by key: a row replaces the row of "
        "the same key. Rows of ISTREAM, DSTREAM and RSTREAM are never replaced.",
        "Remove one of the two.",
        "SUBSCRIBE TO (ISTREAM(SELECT desk, weight FROM seat)) ENVELOPE UPSERT (KEY (desk))",
        "SUBSCRIBE TO (SELECT desk, MAX(weight) AS w FROM seat GROUP BY desk) "
        "ENVELOPE UPSERT (KEY (desk))",
    ),
    ErrorCode(
        "misplaced_explain",
        "EXPLAIN cannot explain this",
        "EXPLAIN explains queries and views, not itself. ANALYZE explains plans, not rows.",
        "Write EXPLAIN once, before a query.",
        "EXPLAIN EXPLAIN SELECT desk FROM seat",
        "EXPLAIN SELECT desk FROM seat",
    ),
    ErrorCode(
        "bad_duration",
        "Not a duration",
        "A duration has a unit, from microseconds to weeks.",
        "Write for example '500 ms', '90 s', '10 min' or '1 h 30 min'.",
        "CREATE SOURCE s (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL 'soon')",
        "CREATE SOURCE s (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 s')",
    ),
    ErrorCode(
        "bad_time",
        "Not a time",
        "ADVANCE TIME takes a time in ISO 8601, or BY and a duration.",
        "Write '2026-01-01T08:00:00Z' or BY '10 s'.",
        "ADVANCE TIME TO 'tomorrow'",
        "ADVANCE TIME TO '2026-01-01T08:00:00Z'",
    ),
    ErrorCode(
        "bad_refresh_time",
        "Not a time of day for REFRESH AT",
        "REFRESH AT takes times from 00:00 to 24:00, each once. 24:00 is midnight at the "
        "end of the day, the same time as 00:00.",
        "Write for example REFRESH AT ('14:00', '24:00').",
        "CREATE MATERIALIZED VIEW v REFRESH AT ('25:00') AS SELECT mid FROM machines",
        "CREATE MATERIALIZED VIEW v REFRESH AT ('14:00') AS SELECT mid FROM machines",
    ),
    ErrorCode(
        "bad_cost_weights",
        "COST WEIGHTS do not match the times",
        "COST WEIGHTS needs one number greater than 0 for each time of REFRESH AT.",
        "Write as many numbers as times, or remove the weights.",
        "CREATE MATERIALIZED VIEW v REFRESH AT ('14:00', '24:00') COST WEIGHTS (1) AS "
        "SELECT mid FROM machines",
        "CREATE MATERIALIZED VIEW v REFRESH AT ('14:00', '24:00') COST WEIGHTS (0.5, 1) AS "
        "SELECT mid FROM machines",
    ),
    ErrorCode(
        "unsupported_statement",
        "Not a statement of StreamSQL",
        "The statement, or a part of it such as OR REPLACE, is SQL but not StreamSQL.",
        "Follow the hint.",
        "UPDATE seat SET weight = 0",
        "INSERT INTO badge (tag, room) VALUES ('t1', 'a')",
    ),
    ErrorCode(
        "limit_exceeded",
        "Larger than a limit",
        "The text, brackets, relations, columns and rows of one statement are bounded, and "
        "so is the number of running queries. The reference lists the limits.",
        "Split the statement: name parts in WITH or in views; load many rows from a table.",
        "SELECT " + "(" * 101 + "1" + ")" * 101,
        "SELECT (1) AS one",
    ),
)
