"""StreamSQL text to statements: a sqlglot dialect for queries, our own grammar for the rest."""

from streamsql.syntax.explain_options import ExplainFormat, ExplainType
from streamsql.syntax.parse import parse_script, parse_statement
from streamsql.syntax.row_question_statements import ExplainConfidence, ExplainWhatIf, ExplainWhy
from streamsql.syntax.statement_parsers.change_statements import Merge, MergeAction, Update
from streamsql.syntax.statement_parsers.grant_statements import AlterUser, Grant, Revoke, ShowGrants
from streamsql.syntax.statement_parsers.run_statements import RunOnHistory
from streamsql.syntax.statements import (
    AdvanceTime,
    AlterSite,
    AlterSource,
    CreateAlarm,
    CreateDisplay,
    CreateFunction,
    CreateSink,
    CreateSource,
    CreateView,
    Delete,
    Describe,
    Drop,
    Explain,
    Insert,
    Query,
    Refresh,
    Show,
    Statement,
    Subscribe,
)

__all__ = [
    "AdvanceTime",
    "AlterSite",
    "AlterSource",
    "AlterUser",
    "CreateAlarm",
    "CreateDisplay",
    "CreateFunction",
    "CreateSink",
    "CreateSource",
    "CreateView",
    "Delete",
    "Describe",
    "Drop",
    "Explain",
    "ExplainConfidence",
    "ExplainFormat",
    "ExplainType",
    "ExplainWhatIf",
    "ExplainWhy",
    "Grant",
    "Insert",
    "Merge",
    "MergeAction",
    "Query",
    "Refresh",
    "Revoke",
    "RunOnHistory",
    "Show",
    "ShowGrants",
    "Statement",
    "Subscribe",
    "Update",
    "parse_script",
    "parse_statement",
]
