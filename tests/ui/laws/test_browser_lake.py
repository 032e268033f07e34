"""The lake on the page of data, in a real browser."""

from typing import Any

import msgspec
import pytest

from streamsql.wire.stored_tables.lake_messages import LakeTask
from tests.ui.kept_readings import hour_of_temperature, temperature, with_leases

pytestmark = pytest.mark.browser


@pytest.fixture
def lake(console: Any, page: Any) -> Any:
    """The page with a lake of one table."""
    lake = console.coordinator.lake
    lake.tables = (temperature(),)
    lake.sample = hour_of_temperature()
    page.goto(f"{console.address}/data")
    return lake


def test_a_table_is_shown_with_its_rows_and_plots(lake: Any, page: Any, expect: Any) -> None:
    row = page.locator("#kept tr", has_text="readings.temperature")
    for word in ("86,400", "1.5 MB", "12 (11 small)", "30 days", "1 min, 1 h"):
        expect(row).to_contain_text(word)
    page.get_by_role("button", name="readings.temperature", exact=True).click()
    opened = page.locator(".kept-details")
    expect(opened).to_contain_text("source temperature")
    expect(opened).to_contain_text("view triggered")
    expect(opened.get_by_role("img")).to_have_count(1)
    expect(opened.get_by_role("img")).to_have_attribute(
        "aria-label", "celsius DOUBLE, in Cel: from 20 to 22.991667"
    )
    expect(opened.locator("polyline")).to_have_count(2)  # nothing came in one interval
    expect(opened).to_contain_text("<b>r2</b>")  # as text
    assert opened.locator("b").count() == 0
    expect(opened.locator("td.null")).to_have_text("NULL")
    with page.expect_response("**/sample*"):
        opened.get_by_label("Interval of readings.temperature").select_option("Last day")
    expect(opened.get_by_role("img")).to_have_count(1)
    samples = [asked for asked in lake.asked if asked.task == LakeTask.SAMPLE]
    assert [s.since is not None for s in samples] == [True, True]
    expect(page.locator("#kept .kept-details")).to_have_count(1)  # stays open while it refreshes


def test_an_opened_table_with_wide_rows_is_no_wider_than_the_page(
    lake: Any, page: Any, expect: Any
) -> None:
    names = tuple(f"a_column_with_a_long_name_{number}" for number in range(12))
    lake.sample = msgspec.structs.replace(
        lake.sample, columns=names, rows=(("2026-10-28T12:00:00Z",) * len(names),)
    )
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_role("button", name="readings.temperature", exact=True).click()
    expect(page.locator(".kept-details")).to_contain_text(names[-1])
    scrolled = page.locator("#kept").evaluate(
        "body => body.closest('.scroll').scrollWidth - body.closest('.scroll').clientWidth"
    )
    assert scrolled == 0


def test_a_button_begins_a_job_and_its_progress_is_seen(lake: Any, page: Any, expect: Any) -> None:
    page.get_by_role("button", name="Compact all").click()
    job = page.locator("#lake-jobs tr", has_text="compact")
    expect(job.locator("progress")).to_have_count(1)
    lake.finish()
    expect(job).to_contain_text("9 files became 2")
    expect(job.locator("progress")).to_have_count(0)
    page.get_by_role("button", name="readings.temperature", exact=True).click()
    page.get_by_role("button", name="Export CSV readings.temperature").click()
    expect(page.locator("#lake-jobs")).to_contain_text("export readings.temperature")
    asked = lake.asked[-1] if lake.asked[-1].task == LakeTask.EXPORT else lake.asked[-2]
    assert (asked.table, asked.form) == ("readings.temperature", "csv")


def test_a_federation_without_a_lake_has_no_such_section(
    console: Any, page: Any, expect: Any
) -> None:
    page.route(
        "**/api/lake",
        lambda route: route.fulfill(
            status=400, json={"error": {"code": "no_lake", "message": "no lake", "hint": ""}}
        ),
    )
    page.goto(f"{console.address}/data")
    expect(page.locator("#definitions details").first).to_be_visible()
    expect(page.locator("#lake-section")).to_be_hidden()


def test_a_stored_table_is_shown_with_bars_and_rows(console: Any, page: Any, expect: Any) -> None:
    with_leases(console.coordinator.lake)
    page.goto(f"{console.address}/data")
    row = page.locator("#stored tr", has_text="leases.csv")
    for word in ("csv leases.csv", "3", "2 kB", "every 300 s"):
        expect(row).to_contain_text(word)
    page.get_by_role("button", name="table leases").click()
    opened = page.locator("#stored .kept-details")
    expect(opened.get_by_role("img")).to_have_count(2)
    expect(opened.locator("rect")).to_have_count(4)
    expect(opened.get_by_role("img").first).to_have_attribute(
        "aria-label", "tenant: 2 bars, most rows have b"
    )
    expect(opened).to_contain_text("4 to 9 · 2 values · 1 NULL")
    expect(opened).to_contain_text("<b>a</b>")  # as text
    assert opened.locator("b").count() == 0
    with page.expect_response("**/api/tables/leases/sample*"):
        page.get_by_role("button", name="Read leases again").click()
    expect(page.locator("#stored-said")).to_have_text("leases is read again.")
    expect(opened.get_by_role("img")).to_have_count(2)  # looked at anew, and still open
    asked = [each for each in console.coordinator.lake.asked if each.table == "leases"]
    assert len(asked) == 2


def test_a_table_that_cannot_be_read_again_says_so(console: Any, page: Any, expect: Any) -> None:
    with_leases(console.coordinator.lake)
    (leases,) = console.coordinator.lake.stored
    console.coordinator.lake.stored = (
        msgspec.structs.replace(leases, name="other", told=False, refresh=None),
    )
    page.goto(f"{console.address}/data")
    expect(page.locator("#stored tr", has_text="other")).to_contain_text("when asked")
    page.get_by_role("button", name="Read other again").click()
    problem = page.locator("#stored-problem")
    expect(problem).to_contain_text("not here")
    with page.expect_response("**/api/tables"):
        pass
    expect(problem).to_be_visible()
