"""Codes of names: unknown, ambiguous, taken, in use."""

from streamsql.error_codes.entry import ErrorCode

NAMES = (
    ErrorCode(
        "unknown_relation",
        "There is nothing of that name",
        "No source, table, view or name of WITH is called like this here.",
        "Look at the hint for names that are close, or at SHOW SOURCES, TABLES and VIEWS.",
        "SELECT desk FROM seats",
        "SELECT desk FROM seat",
    ),
    ErrorCode(
        "unknown_column",
        "There is no such column",
        "No relation of FROM has a column of that name. A name given in the select list is known "
        "in GROUP BY, HAVING and ORDER BY, not in WHERE.",
        "The hint lists the columns there are. Write single quotes around texts.",
        "SELECT wieght FROM seat",
        "SELECT weight FROM seat",
    ),
    ErrorCode(
        "ambiguous_column",
        "More than one relation has this column",
        "Two relations of FROM have a column of that name.",
        "Write the relation before it: name.column.",
        "SELECT room FROM seat, machines WHERE desk = mid",
        "SELECT seat.room FROM seat, machines WHERE desk = mid",
    ),
    ErrorCode(
        "unknown_qualifier",
        "No relation of that name in FROM",
        "The name before the dot is none of FROM. A relation with an alias is called by it.",
        "Use the alias, or add the relation to FROM.",
        "SELECT seat.desk FROM seat AS s",
        "SELECT s.desk FROM seat AS s",
    ),
    ErrorCode(
        "bad_column_name",
        "A column is written name or relation.name",
        "There are no schemas and no fields inside of values, so a name has one dot at most.",
        "Leave the first parts out.",
        "SELECT a.b.desk FROM seat",
        "SELECT seat.desk FROM seat",
    ),
    ErrorCode(
        "unknown_position",
        "There is no column of this number",
        "GROUP BY and ORDER BY count the columns of the select list from 1.",
        "Write a number from 1 to the number of columns, or the column itself.",
        "SELECT room, COUNT(*) AS n FROM seat GROUP BY 3",
        "SELECT room, COUNT(*) AS n FROM seat GROUP BY 1",
    ),
    ErrorCode(
        "unknown_function",
        "There is no such function",
        "Neither the language nor CREATE FUNCTION defines it.",
        "The hint names one that is close; the reference lists all.",
        "SELECT SQUARE(weight) FROM seat",
        "SELECT POWER(weight, 2) AS square FROM seat",
    ),
    ErrorCode(
        "unknown_type",
        "There is no such type",
        "Types are BOOLEAN, INTEGER, DOUBLE, TEXT, TIMESTAMP and INTERVAL, without length.",
        "Write one of these.",
        "CREATE SOURCE s (a JSONB)",
        "CREATE SOURCE s (a TEXT)",
    ),
    ErrorCode(
        "unknown_part",
        "There is no such part of a time",
        "EXTRACT, DATE_PART and DATE_TRUNC know the parts that the reference lists.",
        "Write for example HOUR, DAY or EPOCH.",
        "SELECT EXTRACT(FORTNIGHT FROM ts) FROM seat",
        "SELECT EXTRACT(WEEK FROM ts) AS week FROM seat",
    ),
    ErrorCode(
        "unknown_option",
        "There is no such option",
        "WITH (…) takes the options of the statement it stands behind.",
        "The hint lists those there are.",
        "CREATE SOURCE s (a TEXT) WITH (tll = '5 s')",
        "CREATE SOURCE s (a TEXT) WITH (ttl = '5 s')",
    ),
    ErrorCode(
        "bad_option",
        "An option has a value that cannot be",
        "The option is known, its value is not possible.",
        "The hint says what it takes.",
        "CREATE SOURCE s (a TEXT) WITH (ttl = 'soon')",
        "CREATE SOURCE s (a TEXT) WITH (ttl = '90 s')",
    ),
    ErrorCode(
        "duplicate_name",
        "The same name twice",
        "Relations of one FROM, columns of one definition and names of one WITH differ.",
        "Give one of them another name with AS.",
        "SELECT 1 FROM seat, seat",
        "SELECT 1 AS one FROM seat, seat AS other",
    ),
    ErrorCode(
        "already_exists",
        "The name is taken",
        "Sources, tables, views and functions share their names.",
        "Choose another name, or drop the old one first.",
        "CREATE SOURCE seat (desk TEXT)",
        "CREATE SOURCE chair (desk TEXT)",
    ),
    ErrorCode(
        "in_use",
        "Something still needs it",
        "What a view or a running query reads cannot be dropped; views of the library and system "
        "sources stay.",
        "Drop first what the message names.",
        "DROP SOURCE seat",
        "DROP TABLE machines",
    ),
    ErrorCode(
        "reserved_name",
        "The name belongs to the language",
        "A function of one's own cannot be called like one of the language, and nothing like a "
        "system source.",
        "Choose another name.",
        "CREATE FUNCTION sqrt(x DOUBLE) RETURNS DOUBLE AS 'deploy.samples.readings:dew_point'",
        "CREATE FUNCTION dew_point(t DOUBLE, h DOUBLE) RETURNS DOUBLE "
        "AS 'deploy.samples.readings:dew_point'",
    ),
    ErrorCode(
        "bad_implementation",
        "A function's implementation is not named",
        "AS takes the module and the name of the Python function or class, with a colon between.",
        "Write AS 'module.path:name'.",
        "CREATE FUNCTION f(x DOUBLE) RETURNS DOUBLE AS 'readings'",
        "CREATE FUNCTION f(t DOUBLE, h DOUBLE) RETURNS DOUBLE "
        "AS 'deploy.samples.readings:dew_point'",
    ),
    ErrorCode(
        "not_a_relation",
        "This cannot stand in FROM",
        "FROM takes sources, tables, views, queries in parentheses, VALUES, and TUMBLE, HOP, "
        "SESSION and LATE.",
        "Call functions in the select list.",
        "SELECT * FROM sqrt(4)",
        "SELECT SQRT(4) AS two",
    ),
    ErrorCode(
        "not_a_source",
        "Rows of a view follow from other relations",
        "INSERT, DELETE and what-if questions change base rows: those of sources and tables.",
        "Name a source that the view reads.",
        "INSERT INTO heavy VALUES ('d1', 60.0)",
        "INSERT INTO seat (desk, weight) VALUES ('d1', 60.0)",
    ),
    ErrorCode(
        "circular_view",
        "A view reads itself",
        "A view that reads itself, directly or through others, has no meaning.",
        "Write CREATE RECURSIVE VIEW with a base and a step, or WITH RECURSIVE.",
        "CREATE VIEW v (a) AS SELECT a FROM v",
        "CREATE RECURSIVE VIEW v (a) AS SELECT src FROM link UNION "
        "SELECT link.dst FROM v JOIN link ON link.src = v.a",
    ),
    ErrorCode(
        "missing_recursive",
        "A name of WITH reads itself",
        "Only WITH RECURSIVE may.",
        "Add RECURSIVE.",
        "WITH r (a) AS (SELECT src FROM link UNION SELECT l.dst FROM r JOIN link l "
        "ON l.src = r.a) SELECT a FROM r",
        "WITH RECURSIVE r (a) AS (SELECT src FROM link UNION SELECT l.dst FROM r JOIN link l "
        "ON l.src = r.a) SELECT a FROM r",
    ),
)
