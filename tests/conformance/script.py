"""Read and write conformance scripts."""

from dataclasses import dataclass, field
from pathlib import Path

from streamsql.data.types import Value


@dataclass(slots=True)
class Case:
    """One statement or query of a script.

    Attributes:
        kind: "ok", "error" or "query".
        pattern: Expected message of an error.
        skip: Engines that cannot answer it, each with the capability that it lacks.
        expected: Rows as text.
    """

    kind: str
    text: str
    line: int
    pattern: str = ""
    skip: dict[str, str] = field(default_factory=dict)
    expected: list[str] = field(default_factory=list)
    head: list[str] = field(default_factory=list)


def read_script(path: Path) -> list[Case]:
    """Return the cases of a script, in order."""
    blocks: list[tuple[int, list[str]]] = []
    current: list[str] = []
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), ""], start=1):
        if line.strip():
            current.append(line)
        elif current:
            blocks.append((number - len(current), current))
            current = []
    return [_case(lines, number) for number, lines in blocks if not _is_comment(lines)]


def _is_comment(lines: list[str]) -> bool:
    return all(line.startswith("#") for line in lines)


def _case(lines: list[str], number: int) -> Case:
    head = [line for line in lines if line.startswith(("#", "skipif "))]
    skips = [line.split(maxsplit=2) for line in head if line.startswith("skipif ")]
    skip = {engine: reason for _, engine, reason in skips}
    rest = lines[len(head) :]
    word, _, detail = rest[0].partition(" ")
    if word == "query":
        cut = rest.index("----") if "----" in rest else len(rest)
        return Case("query", "\n".join(rest[1:cut]), number, "", skip, rest[cut + 1 :], head)
    if word != "statement":
        raise ValueError(f"line {number}: neither statement nor query: {rest[0]!r}")
    kind, _, pattern = detail.partition(" ")
    return Case(kind, "\n".join(rest[1:]), number, pattern, skip, [], head)


def write_script(path: Path, cases: list[Case]) -> None:
    """Write cases back with their expected rows."""
    comment = path.read_text(encoding="utf-8").split("\n\n", 1)[0]
    blocks = [comment] if comment.startswith("#") else []
    for case in cases:
        if case.kind == "query":
            lines = [*case.head, "query", case.text, "----", *case.expected]
        else:
            lines = [*case.head, f"statement {case.kind} {case.pattern}".rstrip(), case.text]
        blocks.append("\n".join(lines))
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


def row_text(row: tuple[Value, ...], *, digits: int | None = None) -> str:
    """Return a row as a script has it; with `digits` doubles are rounded."""
    return " | ".join(_text(value, digits) for value in row)


def _text(value: Value, digits: int | None) -> str:
    if value is None:
        return "NULL"
    if value == "":
        return "(empty)"  # as sqllogictest has it: a blank line ends a case
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and digits is not None:
        return f"{value:.{digits}g}"
    return str(value)
