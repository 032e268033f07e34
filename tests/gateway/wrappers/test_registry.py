"""The wrappers that statements may name are those that gateways can make."""

from gateway.wrappers.registry import KINDS
from streamsql.catalog.wrappers import WrapperKind


def test_every_wrapper_that_can_be_named_can_be_made() -> None:
    assert set(KINDS) == set(WrapperKind)
