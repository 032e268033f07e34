"""Write the tables of the documentation from the files: python -m benchmarks._published."""

from benchmarks._published.pages import DOCS, PAGES, with_tables


def main() -> None:
    """Write all pages, and name those that have changed."""
    for page in PAGES:
        path = DOCS / page
        before = path.read_text(encoding="utf-8")
        after = with_tables(page, before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"docs/{page}")


if __name__ == "__main__":
    main()
