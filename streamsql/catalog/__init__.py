"""The named definitions of a federation: sources, tables and views. A model, without storage."""
