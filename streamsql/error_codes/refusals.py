"""Codes of what is understood and refused, with what to write instead."""

from streamsql.error_codes.entry import ErrorCode

REFUSALS = (
    ErrorCode(
        "non_terminating",
        "The recursion would not end",
        "A step computes ever new values and nothing bounds them.",
        "Bound a counter in the step, or read only a MIN of the growing column.",
        "WITH RECURSIVE r (a, n) AS (SELECT src, 1 FROM link UNION SELECT l.dst, r.n + 1 FROM r "
        "JOIN link l ON l.src = r.a) SELECT a, n FROM r",
        "WITH RECURSIVE r (a, n) AS (SELECT src, 1 FROM link UNION SELECT l.dst, r.n + 1 FROM r "
        "JOIN link l ON l.src = r.a WHERE r.n < 12) SELECT a, n FROM r",
    ),
    ErrorCode(
        "recursion_without_base",
        "The recursion has no base",
        "Every branch reads the relation being defined, so it stays empty.",
        "Add a branch that reads base relations only.",
        "WITH RECURSIVE r (a) AS (SELECT l.dst FROM r JOIN link l ON l.src = r.a) SELECT a FROM r",
        "WITH RECURSIVE r (a) AS (SELECT src FROM link UNION SELECT l.dst FROM r JOIN link l "
        "ON l.src = r.a) SELECT a FROM r",
    ),
    ErrorCode(
        "not_monotone",
        "The recursion is not monotone",
        "A step aggregates, negates, limits or outer-joins the relation being defined: with more "
        "rows it could take rows away, and then it has no least solution.",
        "Aggregate above the recursion; MIN and MAX there are pushed into it.",
        "WITH RECURSIVE r (a) AS (SELECT src FROM link UNION SELECT MAX(a) FROM r) SELECT a FROM r",
        "WITH RECURSIVE r (a) AS (SELECT src FROM link UNION SELECT l.dst FROM r JOIN link l "
        "ON l.src = r.a) SELECT MAX(a) AS a FROM r",
    ),
    ErrorCode(
        "unsupported_recursion",
        "A recursion cannot be written like this",
        "ORDER BY, LIMIT and WITH do not stand inside of a recursive definition; UNION and UNION "
        "ALL do not stand in one; and where copies count, a branch reads the relation once.",
        "Write UNION; bound a counter in WHERE.",
        "WITH RECURSIVE r (a) AS (SELECT src FROM link UNION ALL SELECT l.dst FROM r JOIN link l "
        "ON l.src = r.a UNION SELECT a FROM r) SELECT a FROM r",
        "WITH RECURSIVE r (a) AS (SELECT src FROM link UNION SELECT l.dst FROM r JOIN link l "
        "ON l.src = r.a) SELECT a FROM r",
    ),
    ErrorCode(
        "unsupported_query",
        "This is not a query that can be kept",
        "The statement in the place of a query is something else.",
        "Write SELECT …, WITH … or VALUES ….",
    ),
    ErrorCode(
        "unsupported_clause",
        "A clause that StreamSQL does not have",
        "The parser knows the clause from SQL, and it is refused by name.",
        "The hint says what to write instead.",
        "SELECT desk FROM seat TABLESAMPLE (10)",
        "SELECT desk FROM seat [ROWS 100]",
    ),
    ErrorCode(
        "unsupported_expression",
        "An expression that StreamSQL does not have",
        "The operator or form is known from SQL and refused: parameters, arrays.",
        "The hint says what to write instead.",
        "SELECT desk[1] FROM seat",
        "SELECT SUBSTRING(desk, 1, 1) FROM seat",
    ),
    ErrorCode(
        "current_time",
        "The current time is not a value",
        "An answer with it would change with every tick.",
        "Let time enter by a window.",
        "SELECT desk FROM seat WHERE ts > CURRENT_TIMESTAMP",
        "SELECT desk FROM seat [RANGE 10 MINUTES]",
    ),
    ErrorCode(
        "unsupported_cast",
        "These types are not cast",
        "There is no CAST from one of these types to the other.",
        "Cast to TEXT first, or take a part with EXTRACT.",
        "SELECT CAST(ts AS BOOLEAN) FROM seat",
        "SELECT CAST(ts AS TEXT) AS text FROM seat",
    ),
    ErrorCode(
        "unsupported_aggregate",
        "An aggregate that is not kept up to date",
        "The aggregate, or its form, is known from SQL and not offered.",
        "The hint lists those there are.",
        "SELECT APPROX_DISTINCT(desk) FROM seat",
        "SELECT ARRAY_AGG(desk) AS desks FROM seat",
    ),
    ErrorCode(
        "unsupported_constraint",
        "Columns take no such constraint",
        "What devices send is not checked: NOT NULL, UNIQUE, DEFAULT and the like are refused.",
        "Leave it out and filter with WHERE.",
        "CREATE SOURCE s (a TEXT NOT NULL)",
        "CREATE SOURCE s (a TEXT)",
    ),
    ErrorCode(
        "unsupported_join",
        "A join of this form is not offered",
        "The join, or its brackets, are known from SQL and refused.",
        "The hint says what to write instead.",
        "SELECT desk FROM seat RIGHT ANTI JOIN machines ON mid = desk",
        "SELECT mid FROM machines ANTI JOIN seat ON mid = desk",
    ),
    ErrorCode(
        "unsupported_order",
        "ORDER BY takes this not",
        "ORDER BY takes columns and positions of the result and, without DISTINCT or set "
        "operators, values of FROM.",
        "Select the value and order by its name.",
        "SELECT DISTINCT room FROM seat ORDER BY weight LIMIT 3",
        "SELECT DISTINCT room FROM seat ORDER BY room LIMIT 3",
    ),
    ErrorCode(
        "unsupported_window",
        "A window function or frame of this form is not offered",
        "Frames are ROWS with numbers of rows, and RANGE with UNBOUNDED and CURRENT ROW; functions "
        "are those the hint names, in the select list, ORDER BY and QUALIFY.",
        "Use ROWS, or for the rows of the last minutes a window on the stream.",
        "SELECT desk, SUM(weight) OVER (ORDER BY desk GROUPS 2 PRECEDING) AS s FROM seat",
        "SELECT desk, SUM(weight) OVER (ORDER BY desk ROWS 2 PRECEDING) AS s FROM seat",
    ),
    ErrorCode(
        "subquery_rows",
        "A query used as a value could give more than one row",
        "A value is one row and one column at most, and nothing of the query says so.",
        "Use an aggregate, a key, LIMIT 1, or IN.",
        "SELECT desk FROM seat WHERE room = (SELECT room FROM machines)",
        "SELECT desk FROM seat WHERE room IN (SELECT room FROM machines)",
    ),
    ErrorCode(
        "unsupported_subquery",
        "A subquery cannot stand here",
        "Subqueries stand in the select list, in WHERE, HAVING and ON; not everywhere else.",
        "Compute the value in a query in FROM.",
        "SELECT room FROM seat GROUP BY (SELECT MAX(level) FROM machines)",
        "SELECT room FROM (SELECT room, (SELECT MAX(level) FROM machines) AS m FROM seat) AS q "
        "GROUP BY room, m",
    ),
    ErrorCode(
        "unsupported_correlation",
        "A subquery reads the query around in a place where it cannot",
        "Columns of the queries around are read in the WHERE, the select list and the HAVING of a "
        "subquery, not by queries in its FROM or WITH.",
        "Read them there, or join the queries in FROM.",
        "SELECT desk FROM seat s WHERE EXISTS (SELECT 1 FROM (SELECT 1 FROM badge b "
        "WHERE b.room = s.room) AS q)",
    ),
    ErrorCode(
        "not_refreshable",
        "This is not refreshed at times of day",
        "The static engine computes views of REFRESH AT from stored tables; it has no streams, no "
        "windows and no recursion. REFRESH names such a view.",
        "Leave REFRESH AT out: a view is then kept up to date with every change.",
        "CREATE MATERIALIZED VIEW v REFRESH AT ('14:00') AS SELECT desk FROM seat",
        "CREATE MATERIALIZED VIEW v AS SELECT desk FROM seat",
    ),
    ErrorCode(
        "needs_federation",
        "Only a federation can do this",
        "A local script has no running queries and no gateways.",
        "Start one with pando up and run the statement there.",
        "SHOW GATEWAYS",
        "SHOW SOURCES",
    ),
    ErrorCode(
        "local_only",
        "Only a local script can do this",
        "In a federation readings come from gateways, and time from clocks.",
        "pando shell --local, or pando run FILE --local.",
    ),
    ErrorCode(
        "not_writable",
        "This table is not changed from here",
        "In a federation INSERT and DELETE change tables of SQLite and PostgreSQL, Parquet files, "
        "and single files of CSV or of one JSON object a line; the message says why not this one.",
        "Change it where it is kept: what has changed there is read again.",
    ),
)
