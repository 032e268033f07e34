"""Pando as separate services in containers: build files and the job that writes settings."""
