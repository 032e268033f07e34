"""Writes the page of all error codes: `python -m streamsql.error_codes > docs/errors.md`."""

import sys

from streamsql.error_codes.page import page

if __name__ == "__main__":
    sys.stdout.write(page())
