"""Statements to plans, definitions and questions: names, types, shapes; do recursions end?"""

from streamsql.binder.bind import bind_query
from streamsql.binder.changes import BoundDelete, BoundInsert, bind_delete, bind_insert
from streamsql.binder.definitions import Creating, define
from streamsql.binder.environment import BoundQuery
from streamsql.binder.explanations import (
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
from streamsql.binder.notices import key_positions
from streamsql.binder.refreshes import bind_refresh, refreshed_view
from streamsql.binder.termination import NonTerminatingError

__all__ = [
    "BoundConfidence",
    "BoundDelete",
    "BoundInsert",
    "BoundLoss",
    "BoundQuery",
    "BoundWhatIf",
    "BoundWhy",
    "Creating",
    "Deletion",
    "GatewayDeletion",
    "NodeDeletion",
    "NonTerminatingError",
    "SourceColumn",
    "bind_confidence",
    "bind_delete",
    "bind_deletions",
    "bind_insert",
    "bind_query",
    "bind_refresh",
    "bind_row",
    "bind_what_if",
    "bind_why",
    "define",
    "gateway_deletion",
    "key_positions",
    "node_deletion",
    "refreshed_view",
]
