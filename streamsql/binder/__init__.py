"""Statements to plans and definitions: names, types, shapes, and whether recursions end."""

from streamsql.binder.bind import bind_query
from streamsql.binder.changes import BoundDelete, BoundInsert, bind_delete, bind_insert
from streamsql.binder.definitions import define
from streamsql.binder.environment import BoundQuery
from streamsql.binder.termination import NonTerminatingError

__all__ = [
    "BoundDelete",
    "BoundInsert",
    "BoundQuery",
    "NonTerminatingError",
    "bind_delete",
    "bind_insert",
    "bind_query",
    "define",
]
