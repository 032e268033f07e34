"""Codes of whole families, and of what goes wrong while queries run."""

from streamsql.error_codes.entry import ErrorCode


def _outside(code: str, title: str, fix: str) -> ErrorCode:
    return ErrorCode(code, title, "", fix)


FAMILIES = (
    _outside("error", "An error", "Read the message."),
    _outside("query_error", "The statement is wrong", "Read the message and the hint."),
    _outside("syntax_error", "The text is not StreamSQL", "Look at the place shown."),
    _outside("binding_error", "A name, a type or a shape is wrong", "Read the hint."),
    _outside(
        "unsupported", "A statement that Pando understands but does not support", "Read the hint."
    ),
    _outside(
        "deployment_error", "A file, a port, a setting or a service is wrong", "Read the message."
    ),
    _outside("internal_error", "A defect of Pando", "Report the message and the statement."),
)

RUNNING = (
    _outside(
        "recursion_limit",
        "A running recursion exceeded its bound",
        "Write a stricter condition into its step, or raise WITH RECURSIVE (LIMIT n).",
    ),
    _outside(
        "statement_limit",
        "Binding, planning or evaluating a statement exceeded its time or memory limit",
        "Simplify the statement: fewer joins, shorter lists, constants instead of "
        "expressions. The setting statement_seconds of the console is the limit.",
    ),
    _outside(
        "asker_gone",
        "A statement was stopped because its client disconnected",
        "Nothing. Send it again if you still need it.",
    ),
    _outside(
        "step_budget",
        "A query exceeded the time or memory limit of one step at a site",
        "Read fewer rows: a window, a narrower condition, a key in every join. Then DROP "
        "QUERY and start it again; the site does not run it until then. The settings "
        "step.seconds and step.max_bytes of the site are the limits.",
    ),
    _outside(
        "recursion_rounds",
        "A recursion needs more rounds than WITH RECURSIVE (LIMIT n ERROR) allows",
        "Allow more rounds, or write RETURN instead of ERROR to omit later rows.",
    ),
    _outside(
        "recursion_interrupted",
        "A recursion was stopped because its query was stopped",
        "Nothing.",
    ),
    _outside(
        "result_limit",
        "A result has more than 200,000 distinct rows",
        "Aggregate or filter more; write ISTREAM if you need only changes.",
    ),
    _outside(
        "key_not_unique",
        "ENVELOPE UPSERT: a key has more than one row",
        "Name a key that is unique in the result, or remove ENVELOPE.",
    ),
    _outside(
        "explanation_limit",
        "An explanation exceeded its bound",
        "Ask about fewer rows, or with a smaller limit.",
    ),
    _outside(
        "annotation_too_wide",
        "Too many base rows for the annotation of one row",
        "Raise WITH (width = n), or choose another strategy.",
    ),
    _outside(
        "snapshot_error",
        "A snapshot cannot be read",
        "Remove it; the site then starts without saved state.",
    ),
    _outside("unsavable_state", "A state cannot be saved", "Report it; the site continues."),
    _outside(
        "evaluation_failed", "The static engine failed to evaluate a query", "Read its message."
    ),
    _outside(
        "no_workers",
        "Spark's cluster has no worker",
        "Start a worker, or find out why the workers stop. The query is retried every minute.",
    ),
    _outside(
        "engine_lost", "The static engine stopped", "Start it again: pando gateway restart static."
    ),
    _outside("no_java", "Spark needs Java", "Install a JDK, or use --no-spark."),
    _outside("spark_start", "Spark does not start", "Read its message, or use --no-spark."),
    _outside(
        "table_error",
        "A table's file or database cannot be read",
        "Repair the file or the database; the message says what is wrong.",
    ),
    _outside(
        "table_missing", "A table's file is missing", "Restore the file, or correct the path."
    ),
    _outside(
        "outside_folders",
        "A table names a file outside the folders that are open to tables",
        "Move the file there, or open its folder: `pando up --tables DIR`, or `table_folders`.",
    ),
    _outside(
        "unknown_secret",
        "The secret of `secret:NAME` is not defined",
        "Set `PANDO_SECRET_NAME` for the static engine, or add a line to its secrets file.",
    ),
    _outside(
        "duplicate_key",
        "INSERT would duplicate a key of a stored table, or store NULL in its primary key",
        "DELETE the row with this key first, or use another key.",
    ),
    _outside(
        "constraint_violated",
        "INSERT or DELETE violates a constraint of the database",
        "Read the message, and the table's definition in the database.",
    ),
    _outside(
        "change_failed",
        "INSERT or DELETE failed; the stored table is unchanged",
        "Read the message. Common causes are permissions, free space, and values that the "
        "table cannot hold.",
    ),
    _outside(
        "no_answer",
        "The static engine or the database did not report the outcome of an INSERT or DELETE",
        "Check with SELECT before you retry.",
    ),
    _outside(
        "definition_differs",
        "A gateway defines a source differently from the catalog, so its rows are ignored",
        "CREATE SOURCE as in the gateway's settings, or correct the settings and restart "
        "the gateway.",
    ),
    _outside(
        "state_lost",
        "A restart lost the input of the times that the message names",
        "Wait until the query's windows have passed these times, or restart the query.",
    ),
    _outside(
        "table_changed",
        "A table's columns differ from its declaration",
        "DROP the table and create it again.",
    ),
    _outside("wire_error", "A message does not follow the wire format", "Update the sender."),
    _outside("messaging_error", "The broker", "Check that it runs."),
    _outside("connect_failed", "The broker does not answer", "Check the address and the password."),
    _outside(
        "subscribe_refused", "The broker refuses a subscription", "Check the broker's access list."
    ),
    _outside("queue_full", "A queue of messages is full", "Wait, or slow down the sender."),
    _outside("client_closed", "The connection was closed", "Connect again."),
    _outside("stolen_id", "Another gateway uses this id", "Give each gateway its own id."),
    _outside("outdated_epoch", "A newer process of this gateway is running", "Stop the older one."),
    _outside("site_error", "The site's plan cannot be read", "Read the message."),
    _outside("server_error", "The console failed", "Read its log."),
    _outside("not_found", "The console has no such page or object", "Check the address."),
    _outside("refused", "The console refuses the request", "Read the message."),
    _outside(
        "wrong_host",
        "The request names the console by an unknown host name",
        "Open it by its address, or start it with `--allow-host NAME`.",
    ),
    _outside(
        "forbidden",
        "The request comes from a page of another site",
        "Open the console's own pages; a program sends no Origin header.",
    ),
    _outside("too_large", "The request body is larger than 1 MB", "Split the request."),
)
