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
    _outside("engine_lost", "The static engine went away", "Start it again: pando static."),
    _outside("no_java", "Spark needs Java", "Install a JDK, or use --no-spark."),
    _outside("spark_start", "Spark does not start", "Read its message; or use --no-spark."),
    _outside("table_error", "A table's file or database cannot be read", "Mend it."),
    _outside("table_missing", "A table's file is not there", "Put it back, or mend the path."),
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
)
