"""Announcements of devices and bridges on a broker, as proposed sources.

`home_assistant`, `zigbee2mqtt` and `sparkplug_births` read one message each; `merging` makes one
source of devices that are alike; `reading` does it all.
"""
