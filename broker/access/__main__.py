"""`python -m broker.access`: make the accounts of a broker, or the files that are shipped.

Exit status: 0 when everything is written, 2 when it cannot be done as asked.
"""

import argparse
import sys
from pathlib import Path

from broker.access.access_list import access_list, role_template
from broker.access.dynamic_security import encode_document
from broker.access.initial_accounts import Account, initial_document, kind_of, new_password
from broker.access.rights import SINK_ROOTS, SiteKind
from host.files.atomic_file import PRIVATE, replace_file
from streamsql.errors import FederationError


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m broker.access")
    commands = parser.add_subparsers(dest="command", required=True)
    accounts = commands.add_parser(
        "accounts",
        help="write the accounts that a broker begins with, and print their new passwords",
    )
    accounts.add_argument("file", type=Path, help="dynamic-security.json; must not exist")
    accounts.add_argument("--federation", required=True, help="the federation's name")
    accounts.add_argument(
        "--sink",
        action="append",
        metavar="LEVEL",
        help="first level of topics that answers may be sent to by CREATE SINK; may be given "
        f"several times (default {', '.join(SINK_ROOTS)})",
    )
    accounts.add_argument(
        "sites",
        nargs="+",
        metavar="ID[:KIND]",
        help=f"id of a site; KIND is one of {', '.join(SiteKind)}; without it the id if it is "
        "one of these words, else gateway",
    )
    files = commands.add_parser(
        "files", help="write the access list and the roles that are shipped"
    )
    files.add_argument("folder", type=Path)
    return parser.parse_args(argv)


def write_accounts(options: argparse.Namespace) -> None:
    """Write the accounts; print a line `ID PASSWORD` for each.

    Raises:
        ValueError: The file exists, or a kind is none.
        WireError: A name is not an id.
        OSError: The file cannot be written.
    """
    if options.file.exists():
        raise ValueError(f"{options.file} exists: its accounts would be lost; choose another file")
    accounts = dict(_account(text) for text in options.sites)
    sinks = tuple(options.sink) if options.sink else SINK_ROOTS
    document = initial_document(accounts, options.federation, sinks)
    replace_file(options.file, encode_document(document), mode=PRIVATE)
    for site, account in accounts.items():
        print(site, account.password)


def _account(text: str) -> tuple[str, Account]:
    site, _, kind = text.partition(":")
    try:
        made = SiteKind(kind) if kind else kind_of(site)
    except ValueError as error:
        raise ValueError(f"{kind!r} is none of {', '.join(SiteKind)}") from error
    return site, Account(made, new_password())


def write_files(folder: Path) -> None:
    """Write what is shipped in `deploy/mosquitto`.

    Raises:
        OSError: A file cannot be written.
    """
    (folder / "acl").write_text(access_list(), encoding="utf-8")
    (folder / "roles").mkdir(exist_ok=True)
    for kind in SiteKind:
        (folder / "roles" / f"{kind}.json").write_bytes(role_template(kind))


def main(argv: list[str] | None = None) -> int:
    """Do what is asked; return the exit status."""
    options = arguments(argv)
    try:
        if options.command == "accounts":
            write_accounts(options)
        else:
            write_files(options.folder)
    except (ValueError, OSError, FederationError) as error:
        print(f"broker accounts: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
