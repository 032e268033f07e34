"""Sources from MQTT: another broker or the federation's own, versions 3.1.1 and 5."""
