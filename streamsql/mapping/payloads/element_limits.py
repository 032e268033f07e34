"""Limits of trees of elements (XML, HTML): what paths and selectors take on a hostile one.

Rows that lie in each other are read again and again, and a path that counts siblings compares each
element with those beside it: both can take the square of a payload's size.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

MAX_BELOW = 250_000
"""Elements below all rows together: one below two of them counts twice."""
MAX_CHARACTERS = 2_000_000
"""Of text below all rows together."""
MAX_COMPARED = 10_000_000
"""Pairs of elements with the same parent, where a path counts siblings: 3,000 siblings."""


class TreeElement(Protocol):
    """Element of a tree, of ElementTree or lxml."""

    @property
    def text(self) -> str | None:
        """Before the first child."""

    @property
    def tail(self) -> str | None:
        """Behind its end."""

    def iter(self) -> Iterator["TreeElement"]:
        """Yield it and all below it."""

    def __len__(self) -> int:
        """Return the number of its children."""


def check_rows(rows: Iterable[TreeElement], *, with_texts: bool) -> None:
    """Look that rows are not too large together.

    Args:
        rows: Elements that are rows.
        with_texts: Whether the text of an element is that of all below it.

    Raises:
        ValueError: They are.
    """
    below = characters = 0
    for row in rows:
        for element in row.iter():
            below += 1
            if with_texts:
                characters += len(element.text or "") + len(element.tail or "")
            if below > MAX_BELOW or characters > MAX_CHARACTERS:
                raise ValueError(
                    f"more than {MAX_BELOW:,} elements or {MAX_CHARACTERS:,} characters in rows; "
                    "are rows inside of rows?"
                )


def check_siblings(root: TreeElement, paths: Sequence[str]) -> None:
    """Look that not too many elements lie next to each other for paths that count siblings.

    Raises:
        ValueError: Too many do.
    """
    if not paths:
        return
    compared = 0
    for element in root.iter():
        compared += len(element) ** 2
        if compared > MAX_COMPARED:
            raise ValueError(
                f"too many elements next to each other for {paths[0]!r:.60}, which counts them"
            )
