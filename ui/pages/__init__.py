"""The console's pages."""
