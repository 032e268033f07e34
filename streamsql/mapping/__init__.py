"""From a device's payload to rows: where the values of a declared source come from.

Pure: no IO, no clock. A mapping is data (`source_mapping`), so gateways need no SQL parser.
"""
