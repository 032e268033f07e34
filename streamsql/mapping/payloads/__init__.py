"""Payloads of each format, decoded: JSON, text, CSV, CBOR, SenML, Sparkplug B, XML, HTML."""
