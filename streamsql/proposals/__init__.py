"""CREATE SOURCE statements proposed from what devices send or announce.

`sample` is one payload and what it is; `topic_shapes` finds which topics are one source's;
`payload_fields`, `column_types` and `unit_words` make its columns; `proposing` puts them together.
`announcements` reads what devices say of themselves: Home Assistant, Zigbee2MQTT, Sparkplug.
"""
