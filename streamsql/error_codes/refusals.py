"""Codes of what is understood and refused, with what to write instead."""

from streamsql.error_codes.entry import ErrorCode

REFUSALS = (
    ErrorCode(
        "non_terminating",
        "The recursion would not end",
        "A step keeps computing new values, and nothing bounds them.",
        "Bound a counter in the step, or read only a MIN of the growing column.",
        "WITH RECURSIVE r (a, n) AS (SELECT src, 1 FROM link UNION SELECT l.dst, r.n + 1 FROM r "
        "JOIN link l ON l.src = r.a) SELECT a, n FROM r",
        "WITH RECURSIVE r (a, n) AS (SELECT src, 1 FROM link UNION SELECT l.dst, r.n + 1 FROM r "
        "JOIN link l ON l.src = r.a WHERE r.n < 12) SELECT a, n FROM r",
    ),
    ErrorCode(
        "recursion_without_base",
        "The recursion has no base",
        "Every branch reads the relation being defined, so the relation stays empty.",
        "Add a branch that reads base relations only.",
        "WITH RECURSIVE r (a) AS (SELECT l.dst FROM r JOIN link l ON l.src = r.a) SELECT a FROM r",
        "WITH RECURSIVE r (a) AS (SELECT src FROM link UNION SELECT l.dst FROM r JOIN link l "
        "ON l.src = r.a) SELECT a FROM r",
    ),
    ErrorCode(
        "not_monotone",
        "The recursion is not monotone",
        "A step aggregates, negates, limits or outer-joins the relation being defined: "
        "additional rows could remove rows, so it has no least solution.",
        "Aggregate above the recursion; MIN and MAX there are pushed into it.",
        "WITH RECURSIVE r (a) AS (SELECT src FROM link UNION SELECT MAX(a) FROM r) SELECT a FROM r",
        "WITH RECURSIVE r (a) AS (SELECT src FROM link UNION SELECT l.dst FROM r JOIN link l "
        "ON l.src = r.a) SELECT MAX(a) AS a FROM r",
    ),
    ErrorCode(
        "unsupported_recursion",
        "This form of recursion is not supported",
        "A recursive definition cannot contain ORDER BY, LIMIT or WITH, and cannot mix "
        "UNION and UNION ALL. With UNION ALL, a branch reads the relation only once.",
        "Write UNION; bound a counter in WHERE.",
        "WITH RECURSIVE r (a) AS (SELECT src FROM link UNION ALL SELECT l.dst FROM r JOIN link l "
        "ON l.src = r.a UNION SELECT a FROM r) SELECT a FROM r",
        "WITH RECURSIVE r (a) AS (SELECT src FROM link UNION SELECT l.dst FROM r JOIN link l "
        "ON l.src = r.a) SELECT a FROM r",
    ),
    ErrorCode(
        "unsupported_query",
        "This is not a query",
        "Another statement stands in the place of a query.",
        "Write SELECT …, WITH … or VALUES ….",
    ),
    ErrorCode(
        "unsupported_clause",
        "StreamSQL does not have this clause",
        "The clause is SQL, but StreamSQL does not support it.",
        "The hint says what to write instead.",
        "SELECT desk FROM seat TABLESAMPLE (10)",
        "SELECT desk FROM seat [ROWS 100]",
    ),
    ErrorCode(
        "unsupported_expression",
        "StreamSQL does not have this expression",
        "The operator or form is SQL, but StreamSQL does not support it: parameters, arrays.",
        "The hint says what to write instead.",
        "SELECT desk[1] FROM seat",
        "SELECT SUBSTRING(desk, 1, 1) FROM seat",
    ),
    ErrorCode(
        "current_time",
        "The current time is not a value",
        "A result with the current time would change at every tick.",
        "Use a window.",
        "SELECT desk FROM seat WHERE ts > CURRENT_TIMESTAMP",
        "SELECT desk FROM seat [RANGE 10 MINUTES]",
    ),
    ErrorCode(
        "unsupported_cast",
        "These types cannot be cast",
        "StreamSQL has no CAST between these types.",
        "Cast to TEXT first, or take a part with EXTRACT.",
        "SELECT CAST(ts AS BOOLEAN) FROM seat",
        "SELECT CAST(ts AS TEXT) AS text FROM seat",
    ),
    ErrorCode(
        "unsupported_aggregate",
        "StreamSQL does not have this aggregate",
        "The aggregate, or its form, is SQL, but StreamSQL cannot maintain it.",
        "The hint lists the valid ones.",
        "SELECT APPROX_DISTINCT(desk) FROM seat",
        "SELECT ARRAY_AGG(desk) AS desks FROM seat",
    ),
    ErrorCode(
        "unsupported_constraint",
        "Columns cannot have this constraint",
        "Pando does not check what devices send, so NOT NULL, UNIQUE, DEFAULT and other "
        "constraints are not supported.",
        "Remove it and filter with WHERE.",
        "CREATE SOURCE s (a TEXT NOT NULL)",
        "CREATE SOURCE s (a TEXT)",
    ),
    ErrorCode(
        "unsupported_join",
        "This form of join is not supported",
        "The join, or its parentheses, are SQL, but StreamSQL does not support them.",
        "The hint says what to write instead.",
        "SELECT desk FROM seat RIGHT ANTI JOIN machines ON mid = desk",
        "SELECT mid FROM machines ANTI JOIN seat ON mid = desk",
    ),
    ErrorCode(
        "unsupported_order",
        "ORDER BY does not support this expression",
        "ORDER BY takes columns and positions of the result and, without DISTINCT or set "
        "operators, values of FROM.",
        "Select the value and order by its name.",
        "SELECT DISTINCT room FROM seat ORDER BY weight LIMIT 3",
        "SELECT DISTINCT room FROM seat ORDER BY room LIMIT 3",
    ),
    ErrorCode(
        "unsupported_window",
        "This form of window function or frame is not supported",
        "Supported frames are ROWS with numbers of rows, and RANGE with UNBOUNDED and "
        "CURRENT ROW. The hint lists the functions; they are allowed in the select list, "
        "ORDER BY and QUALIFY.",
        "Use ROWS; for the rows of the last minutes, use a window on the stream.",
        "SELECT desk, SUM(weight) OVER (ORDER BY desk GROUPS 2 PRECEDING) AS s FROM seat",
        "SELECT desk, SUM(weight) OVER (ORDER BY desk ROWS 2 PRECEDING) AS s FROM seat",
    ),
    ErrorCode(
        "subquery_rows",
        "A query is used as a value but could return more than one row",
        "A value has at most one row and one column, but the query does not guarantee one row.",
        "Use an aggregate, a key, LIMIT 1, or IN.",
        "SELECT desk FROM seat WHERE room = (SELECT room FROM machines)",
        "SELECT desk FROM seat WHERE room IN (SELECT room FROM machines)",
    ),
    ErrorCode(
        "unsupported_subquery",
        "A subquery cannot stand here",
        "Subqueries are allowed in the select list, WHERE, HAVING and ON.",
        "Compute the value in a query in FROM.",
        "SELECT room FROM seat GROUP BY (SELECT MAX(level) FROM machines)",
        "SELECT room FROM (SELECT room, (SELECT MAX(level) FROM machines) AS m FROM seat) AS q "
        "GROUP BY room, m",
    ),
    ErrorCode(
        "unsupported_correlation",
        "A subquery cannot read the outer query in this place",
        "WHERE, the select list and HAVING of a subquery can read columns of outer "
        "queries; queries in its FROM or WITH cannot.",
        "Move the columns there, or join the queries in FROM.",
        "SELECT desk FROM seat s WHERE EXISTS (SELECT 1 FROM (SELECT 1 FROM badge b "
        "WHERE b.room = s.room) AS q)",
    ),
    ErrorCode(
        "not_refreshable",
        "This cannot be refreshed at times of day",
        "The static engine computes views with REFRESH AT from stored tables, without "
        "streams, windows and recursion. REFRESH MATERIALIZED VIEW names such a view.",
        "Remove REFRESH AT: the view is then updated with every change.",
        "CREATE MATERIALIZED VIEW v REFRESH AT ('14:00') AS SELECT desk FROM seat",
        "CREATE MATERIALIZED VIEW v AS SELECT desk FROM seat",
    ),
    ErrorCode(
        "needs_federation",
        "Only a federation can do this",
        "A local session has no running queries and no gateways.",
        "Start one with pando up and run the statement there.",
        "SHOW GATEWAYS",
        "SHOW SOURCES",
    ),
    ErrorCode(
        "local_only",
        "Only a local session can do this",
        "In a federation, readings come from gateways and time comes from clocks.",
        "pando shell --local, or pando run FILE --local.",
    ),
    ErrorCode(
        "not_writable",
        "INSERT and DELETE cannot change this table",
        "In a federation INSERT and DELETE change tables of SQLite and PostgreSQL, Parquet "
        "files, and single files of CSV or of one JSON object a line. The message gives "
        "the reason.",
        "Change the table where it is stored; Pando reads it again.",
    ),
)
