"""Answers that leave the federation.

In the order of the data: `sink` follows the answer of a query and keeps in `upsert_book` or
`stream_queue` what its receiver has still to be told; `sink_memory` keeps that in the catalog;
`row_payloads` and `home_assistant` write it; `mqtt_sender` and `webhook_sender` send it. `sinks`
has all of them.
"""
