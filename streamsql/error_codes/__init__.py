"""The catalogue of error codes: the only place that says which there are and what they mean.

`docs/errors.md` is written from it, and the tests raise every code with its example.
"""

from streamsql.error_codes.entry import SCHEMA, ErrorCode
from streamsql.error_codes.families import FAMILIES, RUNNING
from streamsql.error_codes.meanings import MEANINGS
from streamsql.error_codes.names import NAMES
from streamsql.error_codes.page import page
from streamsql.error_codes.refusals import REFUSALS
from streamsql.error_codes.syntax import SYNTAX

STATEMENT_CODES: tuple[ErrorCode, ...] = (*SYNTAX, *NAMES, *MEANINGS, *REFUSALS)
"""What can be wrong with a statement."""

ERROR_CODES: dict[str, ErrorCode] = {
    entry.code: entry for entry in (*STATEMENT_CODES, *FAMILIES, *RUNNING)
}
"""Every code by its name."""

__all__ = ["ERROR_CODES", "SCHEMA", "STATEMENT_CODES", "ErrorCode", "page"]
