"""The list of the query console while more queries run than anybody reads through."""

from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import Origin

pytestmark = pytest.mark.browser

MANY = 250
SEATS = "SELECT mid, weightLevel FROM SeatSensor WHERE weightLevel > {}.0"


@pytest.fixture
def full_page(console: Any, page: Any) -> Any:
    """The query console with many queries."""

    async def start() -> None:
        for number in range(MANY):
            await console.coordinator.execute(SEATS.format(number))

    console.run(start())
    page.goto(f"{console.address}/queries")
    return page


def test_the_monitor_offers_the_newest_queries_and_finds_others_by_their_words(
    full_page: Any, console: Any, expect: Any
) -> None:
    ids = [query.id for query in console.coordinator.queries(Origin.USER)]
    full_page.goto(f"{console.address}/monitor?query={ids[0]}")
    choice = full_page.locator("#query")
    expect(choice).to_have_value(ids[0])  # the oldest: shown, and not among the newest
    expect(choice.locator("optgroup[label='Queries, the newest 200'] option")).to_have_count(200)
    expect(choice.locator("> option")).to_have_count(1)
    find = full_page.get_by_label("Find running queries")
    find.fill("SeatSensor 33.0")
    expect(choice.locator("optgroup[label='Queries'] option")).to_have_count(3)
    expect(choice).to_have_value(ids[0])
    choice.select_option(ids[33])
    expect(full_page).to_have_url(f"{console.address}/monitor?query={ids[33]}")
    find.fill("")
    expect(choice.locator("> option")).to_have_count(1)
    expect(choice).to_have_value(ids[33])
    console.run(console.coordinator.stop(ids[33]))
    stopped = full_page.locator("#plan-message")
    expect(stopped).to_contain_text(f"{ids[33]} was stopped.", timeout=10_000)
    expect(choice.locator("option").first).to_have_text(f"{ids[33]} (stopped)")


def test_the_newest_queries_are_listed_and_others_are_found_by_their_words(
    full_page: Any, console: Any, expect: Any
) -> None:
    items = full_page.locator("#queries [data-query]")
    expect(items).to_have_count(200)
    newest = console.coordinator.queries(Origin.USER)[-1].id
    expect(items.first).to_have_attribute("data-query", newest)
    expect(full_page.locator("#listed")).to_have_text("the newest 200")
    find = full_page.get_by_label("Find running queries")
    find.fill("SeatSensor 3.0")
    expect(full_page.locator("#listed")).to_have_text("")
    texts = items.all_inner_texts()
    assert all("3.0" in text for text in texts)
    assert len(texts) == sum("3.0" in SEATS.format(number) for number in range(MANY))
    find.fill("no such words")
    expect(full_page.locator("#queries")).to_have_text("No running query has these words.")
    find.fill("")
    expect(items).to_have_count(200)


def test_a_chosen_query_that_is_not_listed_goes_on_until_it_ends(
    full_page: Any, console: Any, expect: Any
) -> None:
    oldest = console.coordinator.queries(Origin.USER)[0].id
    item = full_page.locator(f'[data-query="{oldest}"]')
    find = full_page.get_by_label("Find running queries")
    find.fill(f"{oldest} > 0.0")
    item.click()
    expect(full_page.locator("#facts")).to_contain_text("runs for")
    find.fill("")
    expect(full_page.locator("#queries [data-query]")).to_have_count(200)
    assert item.count() == 0
    console.push(oldest, (1, ("m2", 0.5)))
    expect(full_page.locator("#rows tbody tr:not(.out)")).to_have_count(1)
    expect(full_page.locator("#facts")).to_contain_text("1 row", timeout=10_000)
    console.run(console.coordinator.stop(oldest))
    expect(full_page.locator("#stop")).to_be_hidden(timeout=10_000)
