"""The `pando` command: starting, local work, and (from `ui.cli`) a running federation."""
