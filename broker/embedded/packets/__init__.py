"""Packets of MQTT 3.1.1 and 5: bytes to values and back, bounded."""
