"""Trials that ask a connector what its device offers."""

import asyncio
from typing import Any, ClassVar

import msgspec
import pytest

from gateway.connectors.browsing import BrowseContext
from gateway.connectors.registry import BuiltIn, ConnectorRegistry
from gateway.connectors.trial import SourceTrials, TrialSite
from gateway.testing import until
from gateway.testing_connectors import TellingConnector, declared
from streamsql.mapping.offers import MAX_VALUES, OfferedRecord, OfferedValue
from streamsql.wire.codec import decode_json, encode_packed
from streamsql.wire.source_orders import SourceOrder
from streamsql.wire.trial_messages import SourceTrial, TrialReport


class Below(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where to begin."""

    below: str = "the top"


class Shelf(TellingConnector):
    """Offers records of a test.

    Attributes:
        records: How many, of 50 values each.
        ended: How often `browse` has ended.
    """

    browse_options = Below
    records: ClassVar[int] = 1
    ended: ClassVar[int] = 0

    async def browse(self, context: BrowseContext) -> None:
        """Offer them, and then think for ever, but for the first."""
        try:
            context.note(f"below {context.options_as(Below).below} with hunter2")
            for number in range(self.records):
                values = (
                    OfferedValue("place", "@index", sample="1"),
                    *(OfferedValue(f"v{n}", f"a{n}", sample=n) for n in range(49)),
                )
                context.offer(OfferedRecord(f"r{number}", values))
                await asyncio.sleep(0)
            if self.records > 1:
                await asyncio.Event().wait()
        finally:
            Shelf.ended += 1


async def tried(kind: str = "shelf", **options: str) -> list[TrialReport]:
    """Return the reports of a trial that browses."""
    built_in = {
        "shelf": BuiltIn(__name__, "Shelf"),
        "telling": BuiltIn("gateway.testing_connectors", "TellingConnector"),
    }
    endpoints: dict[str, dict[str, Any]] = {"home": {"connector": kind, "password": "hunter2"}}
    reports: list[TrialReport] = []
    site = TrialSite("gw-1", endpoints, ConnectorRegistry(built_in=built_in), lambda: 7)
    trials = SourceTrials(site, reports.append)
    definition = declared(endpoint="home", options=tuple(options.items()))
    assert definition.mapping is not None
    mapping = msgspec.structs.replace(definition.mapping, connector=kind)
    order = SourceOrder(1, msgspec.structs.replace(definition, mapping=mapping))
    trials.start("t1", SourceTrial((order,), 20.0, browse=True))
    await until(lambda: bool(reports) and reports[-1].done, "it has ended")
    await trials.close()
    return reports


@pytest.fixture(autouse=True)
def _shelf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shelf, "records", 1)
    monkeypatch.setattr(Shelf, "ended", 0)


def test_a_record_is_offered_and_is_a_sample() -> None:
    reports = asyncio.run(tried(below="here"))
    assert [record.name for report in reports for record in report.offers] == ["r0"]
    (sample,) = [sample for report in reports for sample in report.samples]
    assert sample.is_record
    assert sample.facts == {"index": "1"}
    assert decode_json(sample.payload, dict[str, int])["a48"] == 48
    notes = [note for report in reports for note in report.notes]
    assert notes == ["below here with •••"] or "hunter2" not in notes[0]
    assert reports[-1].problem == ""


def test_it_is_bounded_in_number_and_each_report_in_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shelf, "records", 1_000)
    reports = asyncio.run(tried())
    offers = [record for report in reports for record in report.offers]
    assert sum(len(record.values) for record in offers) == MAX_VALUES
    assert max(len(encode_packed(report)) for report in reports) < 1_000_000
    assert Shelf.ended == 1
    assert reports[-1].problem == ""


def test_an_option_that_it_does_not_know_is_said() -> None:
    reports = asyncio.run(tried(above="here"))
    assert "has no option `above`" in reports[-1].problem
    assert reports[-1].hint == "known options: below"


def test_a_connector_that_cannot_list_anything_is_said() -> None:
    reports = asyncio.run(tried("telling"))
    assert reports[-1].problem == "connector telling cannot list what its devices offer"
