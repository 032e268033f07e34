"""What the coordinator tells the console: values, settings, texts."""
