"""Connectors: what turns devices, brokers, pages and databases into readings.

`connector` is the protocol that every connector is written against; `declared_source` one source
as a connector serves it; `registry` finds connectors by kind; `running` runs them.
"""
