"""Codes of whole families, and of what goes wrong while queries run."""

from streamsql.error_codes.entry import ErrorCode


def _outside(code: str, title: str, fix: str) -> ErrorCode:
    return ErrorCode(code, title, "", fix)


FAMILIES = (
    _outside("error", "Something is wrong", "Read the message."),
    _outside("query_error", "The statement is wrong", "Read the message and the hint."),
    _outside("syntax_error", "The text is not StreamSQL", "Look at the place shown."),
    _outside("binding_error", "A name, a type or a shape is wrong", "Read the hint."),
    _outside("unsupported", "Understood, but refused, with the reason", "Read the hint."),
    _outside("deployment_error", "A file, a port, a setting or a service", "Read the message."),
    _outside("internal_error", "A defect of Pando", "Report the message and the statement."),
)

RUNNING = (
    _outside(
        "recursion_limit",
        "A running recursion grew past its bound",
        "Write a tighter condition into its step, or raise WITH RECURSIVE (LIMIT n).",
    ),
    _outside(
        "statement_limit",
        "Binding, planning or evaluating a statement took more time or memory than it may",
        "Write less into one statement: fewer joins, shorter lists, constants instead of "
        "expressions. statement_seconds of the console's settings is the bound.",
    ),
    _outside(
        "asker_gone",
        "A statement was ended because the client that sent it is gone",
        "Nothing; send it again if it is still wanted.",
    ),
    _outside(
        "step_budget",
        "A query took more time or memory of a site than one step may",
        "Read fewer rows: a window, a narrower condition, a key in every join. Then DROP QUERY and "
        "start it again; the site does not run it before. step.seconds and step.max_bytes of the "
        "site's settings are the bounds.",
    ),
    _outside(
        "recursion_rounds",
        "A recursion needs more rounds than WITH RECURSIVE (LIMIT n ERROR) allows",
        "Allow more rounds, or write RETURN instead of ERROR to leave later rows out.",
    ),
    _outside(
        "recursion_interrupted",
        "A recursion was stopped because nobody wants its query any more",
        "Nothing: it follows DROP QUERY.",
    ),
    _outside(
        "result_limit",
        "A result of more than 200,000 different rows",
        "Aggregate or filter more; write ISTREAM if only changes are wanted.",
    ),
    _outside(
        "key_not_unique",
        "ENVELOPE UPSERT: more than one row of a key",
        "Name a key that is unique in the answer, or leave ENVELOPE out.",
    ),
    _outside(
        "explanation_limit",
        "An explanation grew past its bound",
        "Ask about fewer rows, or with a smaller limit.",
    ),
    _outside(
        "annotation_too_wide",
        "Too many base rows for the annotation of one row",
        "Raise WITH (width = n), or choose another strategy.",
    ),
    _outside("snapshot_error", "A snapshot cannot be read", "Remove it; the site starts anew."),
    _outside("unsavable_state", "A state cannot be saved", "Report it; the site runs on."),
    _outside("evaluation_failed", "The static engine failed at a query", "Read its message."),
    _outside(
        "no_workers",
        "Spark's cluster has no worker",
        "Start one, or look why they end. The query is tried again every minute.",
    ),
    _outside("engine_lost", "The static engine went away", "Start it again: pando static."),
    _outside("no_java", "Spark needs Java", "Install a JDK, or use --no-spark."),
    _outside("spark_start", "Spark does not start", "Read its message; or use --no-spark."),
    _outside("table_error", "A table's file or database cannot be read", "Mend it."),
    _outside("table_missing", "A table's file is not there", "Put it back, or mend the path."),
    _outside(
        "outside_folders",
        "A table names a file outside of the folders that are open to tables",
        "Move the file there, or open its folder: `pando up --tables DIR`, or `table_folders`.",
    ),
    _outside(
        "unknown_secret",
        "There is no address of the name in `secret:NAME`",
        "Set `PANDO_SECRET_NAME` for the static engine, or add a line to its file of secrets.",
    ),
    _outside(
        "duplicate_key",
        "INSERT gives a stored table a key twice, or NULL in a primary key",
        "DELETE the row that has it first, or give the new one another key.",
    ),
    _outside(
        "constraint_violated",
        "A database has a rule for its table that an INSERT or DELETE would break",
        "Read the message; the table's definition there has the rule.",
    ),
    _outside(
        "change_failed",
        "INSERT or DELETE could not change a stored table, which is as it was",
        "Read the message: permissions, free space, or what the table cannot hold.",
    ),
    _outside(
        "no_answer",
        "The static engine, or the database, has not said what came of an INSERT or DELETE",
        "Look with a SELECT before you try again.",
    ),
    _outside(
        "definition_differs",
        "A source is defined otherwise at a gateway than in the catalog: its rows are left out",
        "CREATE SOURCE as at the gateway, or correct the gateway's settings and restart it.",
    ),
    _outside(
        "state_lost",
        "A restart has lost what came in during the times that the message names",
        "Wait until the query's windows have passed them, or start the query again.",
    ),
    _outside("table_changed", "A table's columns are not those declared", "Create it anew."),
    _outside("wire_error", "A message does not follow the wire format", "Update the sender."),
    _outside("messaging_error", "The broker", "Look whether it runs."),
    _outside("connect_failed", "The broker does not answer", "Look at address and password."),
    _outside("subscribe_refused", "The broker refuses a subscription", "Look at its ACL."),
    _outside("queue_full", "A queue of messages is full", "Wait, or slow the sender down."),
    _outside("client_closed", "The connection was closed", "Connect again."),
    _outside("stolen_id", "Another gateway uses this id", "Give each gateway its own id."),
    _outside("outdated_epoch", "A newer process of this gateway runs", "Stop the older one."),
    _outside("site_error", "The site's plan cannot be read", "Read the message."),
    _outside("server_error", "The console failed", "Look at its log."),
    _outside("not_found", "The console has no such page or object", "Look at the address."),
    _outside("refused", "The console refuses the request", "Read the message."),
    _outside(
        "wrong_host",
        "The console is asked by a name that is not its own",
        "Open it by its address, or start it with `--allow-host NAME`.",
    ),
    _outside(
        "forbidden",
        "A page of another site asks",
        "Open the console's own pages; a program sends no Origin header.",
    ),
    _outside("too_large", "The body of the request is larger than 1 MB", "Send less at a time."),
)
