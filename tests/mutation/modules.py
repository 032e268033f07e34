"""The modules that `make mutants` changes, and the tests that ought to notice."""

from collections.abc import Mapping

_OPERATORS = "tests/stream_engine/operators"
_LAWS = (f"{_OPERATORS}/test_laws.py", f"{_OPERATORS}/test_examples.py")
_SESSIONS = (
    f"{_OPERATORS}/test_session_groups.py",
    f"{_OPERATORS}/test_orders_sets_and_sessions.py",
    f"{_OPERATORS}/test_on_close.py",
    *_LAWS,
)
_CHANNELS = ("tests/stream_engine/exchange", "tests/stream_engine/simulation")

KEY_MODULES: Mapping[str, tuple[str, ...]] = {
    "stream_engine/operators/aggregate.py": (f"{_OPERATORS}/test_aggregates.py", *_LAWS),
    "stream_engine/operators/join.py": (f"{_OPERATORS}/test_joins.py", *_LAWS),
    "stream_engine/operators/few_sessions.py": _SESSIONS,
    "stream_engine/operators/session_cells.py": _SESSIONS,
    "stream_engine/operators/session_partition.py": _SESSIONS,
    "stream_engine/operators/session_window.py": _SESSIONS,
    "stream_engine/operators/top_n.py": (f"{_OPERATORS}/test_orders_sets_and_sessions.py", *_LAWS),
    "stream_engine/exchange/inbox.py": _CHANNELS,
    "stream_engine/exchange/outbox.py": _CHANNELS,
    "stream_engine/exchange/peered_fixpoint.py": ("tests/stream_engine/exchange",),
    "stream_engine/recursion/absorption.py": ("tests/stream_engine/recursion/test_absorption.py",),
    "stream_engine/recursion/kernels/reach.py": ("tests/stream_engine/recursion/kernels",),
    "stream_engine/state/source_relation.py": (
        "tests/stream_engine/state",
        "tests/stream_engine/snapshot",
    ),
    "stream_engine/state/watermark.py": ("tests/stream_engine/state",),
    "streamsql/algebra/like_patterns.py": ("tests/streamsql/algebra/test_like_patterns.py",),
    "streamsql/syntax/precedence.py": ("tests/streamsql/syntax/test_precedence.py",),
    "streamsql/wire/channels.py": ("tests/streamsql/wire",),
    "messaging/inbox.py": ("tests/messaging/test_inbox.py",),
    "messaging/outbox.py": ("tests/messaging/test_outbox.py",),
    "gateway/site/state_losses.py": ("tests/gateway/site/test_state_keeper.py",),
    "federated_optimizer/coordinator/subscriptions.py": (
        "tests/federated_optimizer/coordinator/test_subscriptions.py",
    ),
}
"""A module: the files and folders with its tests; its doctests are always asked too."""
