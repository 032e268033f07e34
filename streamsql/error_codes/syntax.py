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
        "Something has begun that is not finished: an operator without its right side, FROM "
        "without a relation.",
        "Add what the message names.",
        "SELECT desk FROM seat WHERE weight >",
        "SELECT desk FROM seat WHERE weight > 5",
    ),
    ErrorCode(
        "unclosed_bracket",
        "A bracket is not closed",
        "A bracket was opened, and something else stands where it should close.",
        "Close the bracket, or put the missing comma or operator inside.",
        "SELECT (desk FROM seat",
        "SELECT (desk) FROM seat",
    ),
    ErrorCode(
        "unclosed_quote",
        "A text, name or comment is not closed",
        "A quote or /* was opened and the text ends before it is closed.",
        "Close it. Inside a text, '' stands for one quote.",
        "SELECT 'it''s FROM seat",
        "SELECT 'it''s' AS x FROM seat",
    ),
    ErrorCode(
        "trailing_comma",
        "Nothing follows a comma",
        "A list ends with a comma.",
        "Leave the comma out, or add what it announces.",
        "SELECT desk, FROM seat",
        "SELECT desk FROM seat",
    ),
    ErrorCode(
        "empty_statement",
        "There is no statement",
        "The text holds nothing but blanks and comments.",
        "Write a statement.",
        "-- nothing",
        "SHOW SOURCES",
    ),
    ErrorCode(
        "several_statements",
        "More than one statement",
        "This place takes one statement, and there are several.",
        "Give them one by one, or run them as a script: pando run FILE.",
        "SHOW SOURCES; SHOW VIEWS",
        "SHOW SOURCES",
    ),
    ErrorCode(
        "duplicate_clause",
        "A clause or option is given twice",
        "KEY, WATERMARK or an option of WITH stands there a second time.",
        "Leave one of them out.",
        "CREATE SOURCE s (a TEXT) WITH (ttl = '5 s', ttl = '6 s')",
        "CREATE SOURCE s (a TEXT) WITH (ttl = '5 s')",
    ),
    ErrorCode(
        "misplaced_options",
        "Options stand inside the query",
        "WITH (option = …) is about the whole statement and stands behind it.",
        "Move it to the end.",
        "SELECT desk FROM (SELECT desk FROM seat WITH (strategy = 'set')) AS q",
        "SELECT desk FROM (SELECT desk FROM seat) AS q WITH (strategy = 'set')",
    ),
    ErrorCode(
        "misplaced_emit",
        "What is emitted is said in the wrong place",
        "ISTREAM, DSTREAM and RSTREAM stand around a whole query or a whole select list: in "
        "statements, views and FROM, not in conditions. EMIT ON WINDOW CLOSE gives a stream "
        "already, and stands at the end.",
        "Write it around the query that gives the rows.",
        "SELECT ISTREAM(desk), weight FROM seat",
        "SELECT ISTREAM(desk, weight) FROM seat",
    ),
    ErrorCode(
        "misplaced_output",
        "OUTPUT TO DISPLAY is not about this query",
        "A display shows the answer of a running query: not of a view, an alarm, a subscription or "
        "a query inside another one.",
        "Write it behind a query of its own.",
        "CREATE VIEW v AS SELECT desk FROM seat OUTPUT TO DISPLAY lobby",
        "CREATE VIEW v AS SELECT desk FROM seat",
    ),
    ErrorCode(
        "misplaced_envelope",
        "A stream has no upserts",
        "ENVELOPE UPSERT gives the changes of a relation by key: a row replaces the one of the "
        "same key. What ISTREAM, DSTREAM and RSTREAM give is never replaced.",
        "Leave one of the two out.",
        "SUBSCRIBE TO (ISTREAM(SELECT desk, weight FROM seat)) ENVELOPE UPSERT (KEY (desk))",
        "SUBSCRIBE TO (SELECT desk, MAX(weight) AS w FROM seat GROUP BY desk) "
        "ENVELOPE UPSERT (KEY (desk))",
    ),
    ErrorCode(
        "misplaced_explain",
        "There is nothing here to explain",
        "EXPLAIN explains queries and views, not itself, and ANALYZE is about plans, not rows.",
        "Write EXPLAIN once, before a query.",
        "EXPLAIN EXPLAIN SELECT desk FROM seat",
        "EXPLAIN SELECT desk FROM seat",
    ),
    ErrorCode(
        "bad_duration",
        "Not a duration",
        "Durations are written with a unit, from microseconds to weeks.",
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
        "Not a time of day at which a view is refreshed",
        "REFRESH AT takes times from 00:00 to 24:00, each once; 24:00 is midnight at the day's "
        "end, the same moment as 00:00.",
        "Write for example REFRESH AT ('14:00', '24:00').",
        "CREATE MATERIALIZED VIEW v REFRESH AT ('25:00') AS SELECT mid FROM machines",
        "CREATE MATERIALIZED VIEW v REFRESH AT ('14:00') AS SELECT mid FROM machines",
    ),
    ErrorCode(
        "bad_cost_weights",
        "Cost weights that do not fit the times",
        "COST WEIGHTS has one number greater than 0 for each time of REFRESH AT.",
        "Write as many numbers as times, or leave the weights out.",
        "CREATE MATERIALIZED VIEW v REFRESH AT ('14:00', '24:00') COST WEIGHTS (1) AS "
        "SELECT mid FROM machines",
        "CREATE MATERIALIZED VIEW v REFRESH AT ('14:00', '24:00') COST WEIGHTS (0.5, 1) AS "
        "SELECT mid FROM machines",
    ),
    ErrorCode(
        "unsupported_statement",
        "Not a statement of StreamSQL",
        "The statement, or a part of it such as OR REPLACE, belongs to SQL but not to StreamSQL.",
        "Write what the hint says.",
        "UPDATE seat SET weight = 0",
        "INSERT INTO badge (tag, room) VALUES ('t1', 'a')",
    ),
    ErrorCode(
        "limit_exceeded",
        "Larger than a limit",
        "Texts, brackets, relations, columns and rows of one statement, and queries at once, are "
        "bounded; see the limits in the reference.",
        "Split the statement: name parts in WITH or in views; load many rows from a table.",
        "SELECT " + "(" * 101 + "1" + ")" * 101,
        "SELECT (1) AS one",
    ),
)
