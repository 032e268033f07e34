"""Options `keep` and `rollup`: what may be written, and what it means."""

import pytest

from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.keep_options import Keeping, RollUp, keep_of, keeping_of, rollups_of
from tests.streamsql.from_text import catalog_of

DAY = 86_400_000_000


def definition_of(text: str) -> SourceDefinition:
    definition = catalog_of(text).find("a")
    assert isinstance(definition, SourceDefinition)
    return definition


@pytest.mark.parametrize("text", ["", "23 h", "soon", "-1 day", "1 month"])
def test_what_is_no_keep_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|day"):
        keep_of(text)


@pytest.mark.parametrize("text", ["", "2 min", "1 h, soon", "1 min,"])
def test_what_is_no_roll_up_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no roll-up"):
        rollups_of(text)


def test_what_a_source_says_goes_before_the_default() -> None:
    said = definition_of("CREATE SOURCE a (x TEXT) WITH (keep = '2 days', rollup = '1 day, 1 min')")
    assert keeping_of(said, "9 days") == Keeping(True, 2 * DAY, (RollUp.MINUTE, RollUp.DAY))
    silent = definition_of("CREATE SOURCE a (x TEXT)")
    assert keeping_of(silent) == Keeping()
    assert keeping_of(silent, "9 days", "1 h") == Keeping(True, 9 * DAY, (RollUp.HOUR,))
    refused = definition_of("CREATE SOURCE a (x TEXT) WITH (keep = 'no', rollup = '1 h')")
    assert keeping_of(refused) == Keeping(False)
