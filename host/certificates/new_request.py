"""`python -m host.certificates.new_request NAME`: print a new private key and its request.

For services that need a key once in months and should not keep the library for it in memory.
"""

import sys

from host.certificates.certificate_request import make_request
from streamsql.errors import DeploymentError


def main(words: list[str]) -> int:
    """Return the exit status: 0 made, 2 no usable name."""
    try:
        made = make_request(*words)
    except (DeploymentError, TypeError) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    sys.stdout.buffer.write(made.key + made.request)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
