"""Read the documentation: fenced blocks, links and commands, with the line they stand in."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WALK = "walk"
"""Note of the blocks that a reader runs in their order, from nothing."""
KEPT = "kept"
"""Marks what needs a lake with readings; end_to_end/test_kept_readings.py runs it."""
PEOPLE = "people"
"""Note of the blocks that need accounts."""
_FENCE = re.compile(r"^```(\w*)[ \t]*([^\n`]*)\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, the words after it, where it begins, its text."""

    file: Path
    line: int
    language: str
    note: str
    text: str
    answer: str = ""

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Every page of documentation."""
    top = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md")]
    return [*top, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(file: Path, language: str) -> Iterator[Block]:
    """Yield the blocks of a language; `answer` is a text block right below, or empty."""
    text = file.read_text(encoding="utf-8")
    found = list(_FENCE.finditer(text))
    for number, match in enumerate(found):
        if match[1] != language:
            continue
        after = found[number + 1] if number + 1 < len(found) else None
        below = after is not None and text[match.end() : after.start()].strip() == ""
        answer = after[3] if after is not None and below and after[1] == "text" else ""
        line = text.count("\n", 0, match.start()) + 1
        yield Block(file, line, match[1], match[2].strip(), match[3], answer)


def links(file: Path) -> list[str]:
    """Return link targets outside of fenced blocks."""
    return _LINK.findall(_FENCE.sub("", file.read_text(encoding="utf-8")))


def anchors(file: Path) -> set[str]:
    """Return the fragment names of a page's headings, made as GitHub makes them."""
    headings = _HEADING.findall(_FENCE.sub("", file.read_text(encoding="utf-8")))
    return {
        re.sub(r"[^\w\- ]", "", heading.lower().replace("`", "")).strip().replace(" ", "-")
        for heading in headings
    }


def commands(file: Path) -> Iterator[str]:
    """Yield every `pando …` command line of shell blocks and of inline code."""
    text = file.read_text(encoding="utf-8")
    for block in blocks(file, "sh"):
        for line in block.text.replace("\\\n", " ").splitlines():
            if line.startswith("pando "):
                yield line
    for inline in re.findall(r"`(pando [^`]+)`", _FENCE.sub("", text)):
        yield " ".join(inline.split())


def walk_blocks(file: Path) -> list[Block]:
    """Return the commands and statements marked `walk`, in their order."""
    found = [b for language in ("sh", "sql") for b in blocks(file, language) if b.note == WALK]
    return sorted(found, key=lambda block: block.line)
