"""Properties get more time under the profile that gives them more examples."""

import gc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st


@given(st.booleans())
def a_property(_value: bool) -> None:
    """Hold."""


def an_example() -> None:
    """Hold."""


class Item:
    """What pytest hands over, as far as it is asked for."""

    def __init__(self, obj: Callable[..., None]) -> None:
        self.obj = obj
        self.nodeid = f"tests/test_profiles.py::{obj.__name__}"
        self.limits: list[Any] = []

    def add_marker(self, marker: pytest.MarkDecorator, *, append: bool) -> None:
        assert not append  # before the item's own, so that it counts
        self.limits.append(marker.mark.args[0])


@pytest.mark.parametrize(("profile", "limits"), [("ci", []), ("nightly", [3_600])])
def test_only_properties_and_only_at_night(
    profile: str, limits: list[int], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins = request.config.pluginmanager.get_plugins()
    (settings,) = [p for p in plugins if hasattr(p, "NIGHTLY_SECONDS")]
    monkeypatch.setattr(settings, "PROFILE", profile)
    items = [Item(a_property), Item(an_example)]
    settings.pytest_collection_modifyitems(items)
    assert [item.limits for item in items] == [limits, []]


def test_the_limit_of_a_property_is_the_closest(request: pytest.FixtureRequest) -> None:
    node = request.node
    node.add_marker(pytest.mark.timeout(90))
    node.add_marker(pytest.mark.timeout(91), append=False)
    assert node.get_closest_marker("timeout").args == (91,)


def test_garbage_is_looked_for_again_after_collection(request: pytest.FixtureRequest) -> None:
    """Also where xdist answers first: what follows comes to the one that is around all others."""
    plugins = request.config.pluginmanager.get_plugins()
    (settings,) = [p for p in plugins if hasattr(p, "NIGHTLY_SECONDS")]
    around = settings.pytest_collection()
    try:
        next(around)
        assert not gc.isenabled()
        with pytest.raises(StopIteration):
            around.send(True)
        assert gc.isenabled()
    finally:
        gc.enable()
    hooks = request.config.hook.pytest_collection.get_hookimpls()
    assert any(h.plugin is settings and h.wrapper for h in hooks)
