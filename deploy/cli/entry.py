"""The `pando` script: it says what is missing where the package was installed without its extras.

A wheel brings by itself only what all services need, so that gateways stay small. Nothing else may
be imported here before it is known to be there.
"""

import sys

from deploy.cli.installed import install_command, version

OURS = (
    "broker",
    "building",
    "deploy",
    "federated_optimizer",
    "gateway",
    "host",
    "static_engine",
    "stream_engine",
    "streamsql",
    "ui",
)


def main() -> None:
    """Run a command line."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        sys.stdout.write(f"pando {version()}\n")
        return
    try:
        from deploy.cli.main import app  # noqa: PLC0415  (needs what may be missing)

        app()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if not missing or missing in OURS:
            raise
        sys.stderr.write(
            f"error: this command needs the Python package {missing}, which is not installed\n"
            f"hint: {install_command()}\n"
        )
        sys.exit(2)


if __name__ == "__main__":
    main()
