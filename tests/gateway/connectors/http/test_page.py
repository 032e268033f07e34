"""What a page's host says of itself: how long to leave it alone."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from gateway.connectors.http.page import Page, PageError
from host.retry_after import MAX_RETRY_AFTER
from streamsql.mapping.source_mapping import PayloadFormat
from tests.gateway.connectors.http.pages import answer, pages
from tests.gateway.connectors.serving import in_loop

PAST = "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.mark.parametrize(
    ("told", "least", "most"),
    [
        ("7", 7, 7),
        ("9" * 30, MAX_RETRY_AFTER, MAX_RETRY_AFTER),
        ("in 100 s", 1, 100),
        (PAST, 0, 0),
        ("soon", 0, 0),
        ("-5", 0, 0),
        ("1 Jan 99999999999999999999 0:0:0", 0, 0),
    ],
)
@in_loop
async def test_retry_after_is_seconds_or_a_date(told: str, least: float, most: float) -> None:
    async with pages() as server, httpx.AsyncClient() as client:
        if told == "in 100 s":
            told = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
        server.put("/", answer("", f"Retry-After: {told}", status="503 Service Unavailable"))
        page = Page(client, f"{server.url}/", PayloadFormat.JSON, 5)
        with pytest.raises(PageError) as refusal:
            await page.read()
    assert least <= refusal.value.retry_after <= most
    assert not refusal.value.unreachable
