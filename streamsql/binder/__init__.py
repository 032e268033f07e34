"""Statements to plans, definitions and questions: names, types, shapes; do recursions end?

What is wrong is refused with a `BindingError`, what is understood but not supported with an
`UnsupportedError`; both carry a place, a hint and a code.
"""

from streamsql.binder.names.bound_query import BoundQuery
from streamsql.binder.statements.altered_sources import altered_source
from streamsql.binder.statements.bind import bind_query
from streamsql.binder.statements.bind_definitions import Creating, define
from streamsql.binder.statements.carried_columns import with_columns
from streamsql.binder.statements.displays_and_alarms import key_positions
from streamsql.binder.statements.insert_and_delete import (
    BoundDelete,
    BoundInsert,
    bind_delete,
    bind_insert,
)
from streamsql.binder.statements.options.source_mappings import mapping_warnings
from streamsql.binder.statements.refreshed_views import bind_refresh, refreshed
from streamsql.binder.statements.row_questions import (
    BoundConfidence,
    BoundLoss,
    BoundWhatIf,
    BoundWhy,
    Deletion,
    GatewayDeletion,
    NodeDeletion,
    SourceColumn,
    bind_confidence,
    bind_deletions,
    bind_row,
    bind_what_if,
    bind_why,
    gateway_deletion,
    node_deletion,
)
from streamsql.binder.statements.update_and_merge import (
    BoundMerge,
    BoundUpdate,
    bind_merge,
    bind_update,
)
from streamsql.recursion.termination import NonTerminatingError

__all__ = [
    "BoundConfidence",
    "BoundDelete",
    "BoundInsert",
    "BoundLoss",
    "BoundMerge",
    "BoundQuery",
    "BoundUpdate",
    "BoundWhatIf",
    "BoundWhy",
    "Creating",
    "Deletion",
    "GatewayDeletion",
    "NodeDeletion",
    "NonTerminatingError",
    "SourceColumn",
    "altered_source",
    "bind_confidence",
    "bind_delete",
    "bind_deletions",
    "bind_insert",
    "bind_merge",
    "bind_query",
    "bind_refresh",
    "bind_row",
    "bind_update",
    "bind_what_if",
    "bind_why",
    "define",
    "gateway_deletion",
    "key_positions",
    "mapping_warnings",
    "node_deletion",
    "refreshed",
    "with_columns",
]
