"""The editor of the page Queries, as a person uses it."""

from playwright.sync_api import Page

from tests.end_to_end.federation import Federation


def run_in_editor(page: Page, running: Federation, text: str) -> None:
    """Open the page Queries, put a text into the editor and press Run."""
    page.goto(f"{running.address}/queries")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)
    page.click("#run")
