"""``climassay users``: who may use the web pages."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from climassay.cli.output import JsonOption, print_json, stdout_console
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from climassay.web.accounts import AccountStore, Role

app = typer.Typer(help="Who may use the web pages.", no_args_is_help=True)
WorkspaceOption = Annotated[Path | None, typer.Option("-w", "--workspace", help="Folder of your data.")]
AddressOption = Annotated[str, typer.Option(help="Where people reach the server, for the link.")]
LOCAL = "http://127.0.0.1:8000"


@contextmanager
def _accounts(workspace: Path | None) -> "Iterator[AccountStore]":
    from climassay.records import Records
    from climassay.web.accounts import AccountStore

    with Records(Workspace.open(workspace).records_url) as records:
        yield AccountStore(records.database)


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Name to sign in with.")],
    role: Annotated[str, typer.Option(help="annotator, adjudicator or admin.")] = "annotator",
    shown: Annotated[str, typer.Option(help="Name that others see.")] = "",
    address: AddressOption = LOCAL,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add somebody, and print the link that lets them in."""
    with _accounts(workspace) as accounts:
        user = accounts.add(name.strip().lower(), cast("Role", role), shown)
        link = f"{address.rstrip('/')}/enter/{accounts.make_link(user.name, 'invitation')}"
    _show_link(user.name, link, "This link lets them in once, to set a password", as_json)


@app.command()
def reset(
    name: Annotated[str, typer.Argument(help="Whose password is forgotten.")],
    address: AddressOption = LOCAL,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print a link by which somebody sets a new password."""
    with _accounts(workspace) as accounts:
        link = f"{address.rstrip('/')}/enter/{accounts.make_link(name, 'password')}"
    _show_link(name, link, "This link lets them set a new password", as_json)


@app.command()
def remove(
    name: Annotated[str, typer.Argument(help="Who is shut out; what they said stays.")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Shut somebody out, and sign them out everywhere."""
    with _accounts(workspace) as accounts:
        user = accounts.change(name, active=False)
    if as_json:
        print_json(asdict(user))
    else:
        stdout_console().print(f"{name} is shut out; what they said stays.", highlight=False)


@app.command("list")
def list_users(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Everybody with an account."""
    with _accounts(workspace) as accounts:
        users = accounts.users()
    if as_json:
        print_json([asdict(user) for user in users])
        return
    from climassay.reporting import Table, as_rich

    rows = [
        (
            user.name,
            user.shown,
            user.role,
            "let in" if user.active else "shut out",
            "yes" if user.has_password else "no",
        )
        for user in users
    ]
    stdout_console().print(as_rich(Table.of("Users", ("name", "shown as", "role", "state", "password"), rows, left=5)))


def _show_link(name: str, link: str, words: str, as_json: bool) -> None:
    if as_json:
        print_json({"name": name, "link": link})
        return
    console = stdout_console()
    console.print(f"{name}: {words}:", highlight=False)
    console.print(f"  {link}", highlight=False, soft_wrap=True)
