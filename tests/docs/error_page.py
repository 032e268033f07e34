"""The catalogue of error codes: read from docs/errors.md, the only place that lists them."""

import re
from dataclasses import dataclass

from tests.docs.markdown import ROOT

_PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
_ENTRY = re.compile(
    r"^### (?P<code>\w+)\n\n"
    r"\*\*(?P<title>[^\n]+?)\.?\*\* (?P<meaning>[^\n]+)\n\n"
    r"\*What to do:\* (?P<fix>[^\n]+)\n"
    r"(?:\n```sql codes\n-- refused:\n(?P<example>.*?);\n"
    r"(?:-- accepted:\n(?P<instead>.*?);\n)?```\n)?",
    re.MULTILINE | re.DOTALL,
)
_ROW = re.compile(r"^\| `(\w+)` \| [^|\n]+ \| [^|\n]+ \|$", re.MULTILINE)
_CUT = re.compile(r"(\(+) … (\)+)")
_DEPTH = 101
"""Brackets of the example that the page shows with an ellipsis."""


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """What the page says about one kind of refusal.

    Attributes:
        example: A statement over `SCHEMA` that is refused with the code, or empty.
        instead: A statement that is accepted where the example is not, or empty.
    """

    code: str
    example: str
    instead: str


def _statement(text: str | None) -> str:
    """Return an example as one line, as it was before it was wrapped."""
    whole = re.sub(r"\n  ", " ", text or "")
    return _CUT.sub("(" * _DEPTH + "1" + ")" * _DEPTH, whole)


SCHEMA = _PAGE.partition("```sql local\n")[2].partition("```")[0]
"""What the examples read."""
STATEMENT_CODES = tuple(
    ErrorCode(found["code"], _statement(found["example"]), _statement(found["instead"]))
    for found in _ENTRY.finditer(_PAGE)
)
"""What can be wrong with a statement."""
HEADINGS = re.findall(r"^### (.+)$", _PAGE, re.MULTILINE)
ERROR_CODES = frozenset((*(entry.code for entry in STATEMENT_CODES), *_ROW.findall(_PAGE)))
"""Every code."""
