"""Facts at the coordinator: filled from what it hears, saved in the catalog, shown as tables."""
