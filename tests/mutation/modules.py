"""The modules that `make mutants` changes, and the tests that ought to notice.

Both are named without their folders, so that a move to another folder changes nothing here.
"""

from collections.abc import Mapping
from pathlib import Path

_LAWS = ("test_laws", "test_examples")
_SESSIONS = ("test_session_groups", "test_orders_sets_and_sessions", "test_on_close", *_LAWS)
_CHANNELS = ("test_boxes", "test_forgetting", "test_lives_of_channels", "test_network", "test_run")

KEY_MODULES: Mapping[str, tuple[str, ...]] = {
    "aggregate": ("test_aggregates", *_LAWS),
    "join": ("test_joins", *_LAWS),
    "session_cells": _SESSIONS,
    "session_partition": _SESSIONS,
    "session_window": _SESSIONS,
    "top_n": ("test_orders_sets_and_sessions", *_LAWS),
    "channel_inbox": _CHANNELS,
    "channel_outbox": _CHANNELS,
    "peered_fixpoint": ("test_peered_fixpoint",),
    "absorption_table": ("test_absorption_table", "test_bounds", "test_single_site"),
    "reach": ("test_reach", "test_answers"),
    "source_relation": ("test_source_relation", "test_watermark", "test_gone_origins"),
    "watermark": ("test_watermark", "test_gone_origins"),
    "like_patterns": ("test_like_patterns",),
    "precedence": ("test_precedence",),
    "channel_protocol": ("test_channel_protocol", "test_stream_channels", "test_codec"),
    "event_inbox": ("test_event_inbox",),
    "publish_queue": ("test_publish_queue",),
    "state_losses": ("test_state_keeper",),
    "result_subscriptions": ("test_result_subscriptions",),
    "mapper": ("test_mapper", "test_payload_formats", "test_row_conditions"),
    "withdrawals": ("test_withdrawals",),
    "running_connectors": ("test_running_connectors",),
    "stream_queue": ("test_stream_queue",),
    "upsert_book": ("test_upsert_book",),
}
"""A module, with a folder before it where two have its name: the test files that are run.

Its doctests are always run too. Where several test files have a name, all of them are meant.
"""


def found(root: Path, folders: list[str], name: str) -> list[str]:
    """Return the paths of the Python files of a name, below some folders of a repository."""
    return sorted(
        str(path.relative_to(root))
        for folder in folders
        for path in (root / folder).rglob(f"{Path(name).name}.py")
        if str(path.with_suffix("")).endswith(f"/{name}")
    )
