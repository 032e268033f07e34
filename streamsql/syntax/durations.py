"""Durations in statements; see `streamsql.data.durations`."""

from streamsql.data.durations import LONGEST, parse_duration, unit_size

__all__ = ["LONGEST", "parse_duration", "unit_size"]
