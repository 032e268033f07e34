"""Sources tried at gateways before they are created.

`tried_sources` makes definitions of what is tried and maps payloads; `source_trials` asks gateways
and keeps what they report.
"""
