"""A bundle says what is run for it: not what is fed, and not what only the fed needs."""

import msgspec
import pytest
from msgspec.structs import replace

from streamsql.algebra.operators import Distinct, Join, JoinKind, Plan, RemoteSource, Scan
from streamsql.algebra.operators import SourceKind as Kind
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.fragments import Engine, Feed, Fragment, FragmentBundle

ROOM = Scan("room", Kind.STREAM, Schema.of(("r", DataType.TEXT), ("s", DataType.TEXT)), (0,))
FEED = Feed("f1", "q1", 1, "f0")


def leaf(name: str) -> RemoteSource:
    return RemoteSource(name, ROOM.columns)


def at_base(name: str, plan: Plan, consumer: str = "") -> Fragment:
    to = ("base",) if consumer else ()
    return Fragment(name, Engine.BASE, plan, ("base",), consumer, to)


def at_gateway(name: str, consumer: str) -> Fragment:
    return Fragment(name, Engine.GATEWAY, ROOM, ("gw",), consumer, ("base",))


def bundle_of(*fragments: Fragment, feeds: tuple[Feed, ...] = ()) -> FragmentBundle:
    return FragmentBundle("q2", 1, fragments, ROOM.columns, feeds=feeds)


THIN = (
    at_base("f0", Distinct(leaf("f1"))),
    at_base("f1", leaf("f2"), "f0"),
    at_gateway("f2", "f1"),
)


def own(bundle: FragmentBundle) -> list[str]:
    return [fragment.id for fragment in bundle.own]


def test_without_feeds_everything_is_run() -> None:
    assert own(bundle_of(*THIN)) == ["f0", "f1", "f2"]
    assert bundle_of(*THIN).sites == {"base", "gw"}


def test_what_only_a_fed_fragment_needs_is_not_run() -> None:
    bundle = bundle_of(*THIN, feeds=(FEED,))
    assert own(bundle) == ["f0"]
    assert bundle.sites == {"base"}
    assert bundle.at("gw") == ()


def test_what_somebody_else_needs_too_is_run() -> None:
    both = Join(leaf("f1"), leaf("f2"), JoinKind.INNER, ((0, 0),))
    fragments = (at_base("f0", both), *THIN[1:])
    assert own(bundle_of(*fragments, feeds=(FEED,))) == ["f0", "f2"]


def test_a_feed_below_a_fed_fragment_changes_nothing() -> None:
    below = Feed("f2", "q1", 1, "f1")
    assert own(bundle_of(*THIN, feeds=(FEED, below))) == ["f0"]
    assert own(bundle_of(*THIN, feeds=(below,))) == ["f0", "f1"]


def test_a_silent_bundle_has_no_site_that_publishes() -> None:
    bundle = bundle_of(*THIN)
    assert bundle.result_sites == ("base",)
    assert replace(bundle, silent=True).result_sites == ()


@pytest.mark.parametrize("silent", [False, True])
def test_bundles_of_the_former_release_are_read(silent: bool) -> None:
    bundle = replace(bundle_of(*THIN, feeds=(FEED,)), silent=silent)
    assert decode_packed(encode_packed(bundle), FragmentBundle) == bundle
    former = msgspec.msgpack.decode(encode_packed(bundle))
    del former["silent"]
    assert not decode_packed(encode_packed(former), FragmentBundle).silent
