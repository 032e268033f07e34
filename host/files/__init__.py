"""Files and directories that a service owns."""
