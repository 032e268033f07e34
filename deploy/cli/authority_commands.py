"""`pando ca`: the federation's certificate authority, and certificates that it issues."""

import contextlib
import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from streamsql.errors import DeploymentError
from ui.cli.commands.console_command import ListFormat, guarded
from ui.cli.printing import check_format, print_json, print_list

authority_app = typer.Typer(help="Certificate authority of the federation", no_args_is_help=True)

FOLDER = Path("pando-data") / "authority"
Folder = Annotated[Path, typer.Option("--folder", help="Folder of the authority")]
_FACTS = ("fact", "value")


@authority_app.command("init")
def ca_init(
    folder: Folder = FOLDER,
    name: Annotated[str, typer.Option(help="Its name, for people")] = "Pando authority",
) -> None:
    """Make the authority of a federation; its key stays in the folder.

    Examples:
      pando ca init
      pando ca init --folder /etc/pando/authority --name "Pando authority of building 7"
    """
    from host.certificates.certificate_files import (  # noqa: PLC0415  (quick `pando --help`)
        AUTHORITY_CERTIFICATE,
        has_authority,
        open_or_make_authority,
    )

    with guarded(), _files():
        if has_authority(folder):
            raise DeploymentError(
                f"{folder} holds an authority already", hint="pando ca show says which"
            )
        made = open_or_make_authority(folder, name, _now())
        typer.echo(f"made {made.facts.common_name!r}; keep {folder} for its owner only")
        typer.echo(f"give to all who have to trust it: {folder / AUTHORITY_CERTIFICATE}")


@authority_app.command("show")
def ca_show(folder: Folder = FOLDER, form: ListFormat = "table") -> None:
    """Show name, validity and fingerprint of the authority."""
    from host.certificates.certificate_files import open_authority  # noqa: PLC0415

    with guarded(), _files():
        facts = open_authority(folder, _now()).facts
        shown = {
            "name": facts.common_name,
            "valid from": f"{facts.valid_from:%Y-%m-%d}",
            "valid until": f"{facts.valid_until:%Y-%m-%d}",
            "fingerprint (SHA-256)": facts.fingerprint,
        }
        if check_format(form, ("table", "json")) == "json":
            print_json(shown)
            return
        print_list([{"fact": key, "value": value} for key, value in shown.items()], _FACTS, form)


@authority_app.command("issue")
def ca_issue(  # noqa: PLR0913, PLR0917  (the command line contract)
    name: Annotated[str, typer.Argument(help="Of the service: names the files, too")],
    host: Annotated[
        list[str] | None,
        typer.Option(help="Host name or address at which clients reach it; repeatable"),
    ] = None,
    client: Annotated[
        bool, typer.Option("--client", help="For a client that shows it to a broker")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for NAME.crt and NAME.key")] = Path(),
    days: Annotated[int, typer.Option(min=1, max=3_650, help="Validity")] = 365,
    folder: Folder = FOLDER,
) -> None:
    """Issue a certificate and its key for a server, or with --client for a client.

    Gateways need none of it: they get theirs when they join.

    Examples:
      pando ca issue broker --host broker.example --host 192.168.1.5
      pando ca issue coordinator --client
    """
    from host.certificates.certificate_files import (  # noqa: PLC0415
        certificate_paths,
        open_authority,
        write_issued,
    )

    with guarded(), _files():
        if client == bool(host):
            raise DeploymentError(
                "a server needs --host, a client has --client and no --host",
                hint=f"pando ca issue {name} --host broker.example",
            )
        if Path(name).name != name or name.startswith("."):
            raise DeploymentError(f"{name!r:.80} cannot name the files of a certificate")
        authority = open_authority(folder, _now())
        issued = (
            authority.issue_client(name, _now(), days=days)
            if client
            else authority.issue_server(name, tuple(host or ()), _now(), days=days)
        )
        out.mkdir(parents=True, exist_ok=True)
        paths = certificate_paths(out, name)
        write_issued(paths, issued)
        typer.echo(f"wrote {paths.certificate} and {paths.key}")


@contextlib.contextmanager
def _files() -> Iterator[None]:
    """Name the file that cannot be written."""
    try:
        yield
    except OSError as error:
        raise DeploymentError(f"cannot write {error.filename}: {error.strerror}") from error


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
