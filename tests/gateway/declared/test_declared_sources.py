"""Sources of a site: those of the catalog, and those that the site reports to itself."""

from pathlib import Path

from gateway.declared.declared_sources import DeclaredSources
from gateway.declared.source_book import SourceBook
from gateway.testing_connectors import declared
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.catalog.system import SITE_SOURCES


def test_a_start_drops_sources_that_nobody_knows_but_not_those_of_the_site(tmp_path: Path) -> None:
    engine = RecordedSite("gw-1", 1)
    for source in (*SITE_SOURCES, declared("former")):
        engine.declare(source.scan())
    sources = DeclaredSources(
        "gw-1",
        {},
        book=SourceBook(tmp_path / "book.json"),
        engine=engine,
        make_connectors=None,
        on_redefined=lambda _name, _stopped: None,
        on_definitions=lambda _definitions: None,
    )
    sources.begin()
    assert engine.declared == {source.name for source in SITE_SOURCES}
