"""Declared sources at a site: what the catalog orders, kept on disk, in force without a restart.

`source_book` keeps the orders; `declared_sources` brings a changed one into force, with the
connectors that `served_devices` makes.
"""
