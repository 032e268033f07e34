"""Contract between coordinator and console: values, settings, texts."""
