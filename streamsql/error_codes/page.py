"""The page of the documentation that lists all codes."""

import textwrap
from collections.abc import Sequence

from streamsql.error_codes.entry import SCHEMA, ErrorCode
from streamsql.error_codes.families import FAMILIES, RUNNING
from streamsql.error_codes.meanings import MEANINGS
from streamsql.error_codes.names import NAMES
from streamsql.error_codes.refusals import REFUSALS
from streamsql.error_codes.syntax import SYNTAX

_TOP = """\
# Error codes

Every error has a code, which stays the same when its message changes. JSON (console and REST)
has it as `code`; at the command line it is the last line. An error about a statement also has its
place (`line`, `column` and `text`) and, nearly always, a `hint`. The message gives the details;
this page explains each code.

This page is generated from the catalogue `streamsql/error_codes`, and the tests run its examples:
Pando refuses the first statement with the code above it and accepts the second one.
(`python -m streamsql.error_codes > docs/errors.md` generates the page again.)

The examples read these relations:

```sql local
"""
_LONG = 90


def page() -> str:
    """Return docs/errors.md."""
    parts = [_TOP + SCHEMA + "```\n"]
    parts += _section("The text is not StreamSQL", SYNTAX)
    parts += _section("Names", NAMES)
    parts += _section("Types, values and shapes", MEANINGS)
    parts += _section("Understood and refused", REFUSALS)
    parts += _table(
        "Families",
        "An error that has no code of its own carries that of its family.",
        FAMILIES,
    )
    parts += _table(
        "While queries run",
        "These come from engines, gateways, brokers and files, not from a statement's text.",
        RUNNING,
    )
    return "\n".join(parts)


def _section(title: str, entries: Sequence[ErrorCode]) -> list[str]:
    lines = [f"## {title}\n"]
    for entry in entries:
        lines.append(f"### {entry.code}\n\n**{entry.title}.** {entry.meaning}\n")
        lines.append(f"*What to do:* {entry.fix}\n")
        if entry.example:
            lines.append("```sql codes\n" + "\n".join(_examples(entry)) + "\n```\n")
    return lines


def _examples(entry: ErrorCode) -> list[str]:
    text = entry.example
    if any(len(word) > _LONG for word in text.split()):
        text = f"{text[:20]} … {text[-20:]}"
    lines = ["-- refused:", *_wrapped(f"{text};")]
    if entry.instead:
        lines += ["-- accepted:", *_wrapped(f"{entry.instead};")]
    return lines


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 96, subsequent_indent="  ", break_long_words=False)


def _table(title: str, about: str, entries: Sequence[ErrorCode]) -> list[str]:
    rows = [f"| `{e.code}` | {e.title} | {e.fix} |" for e in entries]
    return [
        f"## {title}\n\n{about}\n\n| code | | what to do |\n|---|---|---|\n"
        + "\n".join(rows)
        + "\n"
    ]
