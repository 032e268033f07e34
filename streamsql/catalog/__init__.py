"""What a federation knows by name: sources, tables and views. A model, without storage."""
