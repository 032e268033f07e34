"""Somebody who follows the binding of a join of two tables opens few files."""

import sys
from pathlib import Path
from types import FrameType

import streamsql
from streamsql.binder import bind_query
from streamsql.catalog.catalog import Catalog
from tests.streamsql.from_text import catalog_of, query_of

MOST = 25
ROOT = Path(streamsql.__file__).parent.parent
TEXT = "SELECT a.k, a.v, b.w FROM a JOIN b ON a.k = b.k WHERE a.v > 3"


def files_of_binding(text: str, catalog: Catalog) -> set[str]:
    """Return the files of our packages whose functions run while a parsed query is bound."""
    query = query_of(text)
    found: set[str] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            found.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        bind_query(query, catalog)
    finally:
        sys.setprofile(before)
    packages = tuple(f"{ROOT / name}/" for name in ("streamsql", "federated_optimizer"))
    return {str(Path(name).relative_to(ROOT)) for name in found if name.startswith(packages)}


def test_binding_a_join_of_two_tables_reads_few_files() -> None:
    catalog = catalog_of("CREATE SOURCE a (k TEXT, v DOUBLE); CREATE SOURCE b (k TEXT, w DOUBLE)")
    found = files_of_binding(TEXT, catalog)
    sys.stdout.write(f"binding a join of two tables runs functions of {len(found)} files\n")
    assert "streamsql/binder/select/from_clause.py" in found
    assert len(found) <= MOST, "\n".join(sorted(found))
