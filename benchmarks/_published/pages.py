"""Pages with tables of figures: where a table stands, and what it must be."""

import json
import re
from pathlib import Path

from benchmarks._published.tables import TABLES, Published

DOCS = Path(__file__).resolve().parents[2] / "docs"
END = "<!-- end of figures -->"


def rendered(published: Published, docs: Path = DOCS) -> str:
    """Return a table as its file of figures has it; says so where nobody has measured yet."""
    path = docs / "results" / published.file
    if not path.exists():
        return f"*Not measured yet: `{published.command}`.*"
    table = published.render(json.loads(path.read_text(encoding="utf-8")))
    # A link to a file that is not there would break the site.
    link = published.file if published.page.startswith("results/") else f"results/{published.file}"
    return f"{table}\n\n[Figures]({link}), made by `{published.command}`."


def with_tables(page: str, text: str, docs: Path = DOCS) -> str:
    """Return a page with all its tables as they must be.

    Raises:
        ValueError: A table of this page has no place in it; says which.
    """
    for name, published in TABLES.items():
        if published.page != page:
            continue
        begin = f"<!-- figures: {name} -->"
        place = re.compile(f"{re.escape(begin)}\n.*?{re.escape(END)}", re.DOTALL)
        # A function: a backslash in a table is no reference to a group.
        block = f"{begin}\n{rendered(published, docs)}\n\n{END}"
        text, times = place.subn(lambda _, block=block: block, text)  # type: ignore[misc]
        if times != 1:
            raise ValueError(f"docs/{page} has {times} places for figures: it needs one {begin}")
    return text


PAGES = tuple(dict.fromkeys(published.page for published in TABLES.values()))
