"""``climassay users``: who may use the web pages."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from climassay.cli.output import FilesOption, JsonOption, WorkspaceOption, done, emit, opened_session

if TYPE_CHECKING:
    from climassay.web.accounts import AccountStore, Role

app = typer.Typer(help="Say who may use the web pages.", no_args_is_help=True)
AddressOption = Annotated[str, typer.Option(help="Address where people reach the server, for the link.")]
LOCAL = "http://127.0.0.1:8000"


@contextmanager
def _accounts(workspace: Path | None) -> "Iterator[AccountStore]":
    from climassay.web.accounts import AccountStore

    with opened_session(workspace) as session:
        yield AccountStore(session.records.database)


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Name to sign in with.")],
    role: Annotated[str, typer.Option(help="Role: annotator, adjudicator or admin.")] = "annotator",
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
    name: Annotated[str, typer.Argument(help="Name of whoever forgot the password.")],
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
    name: Annotated[str, typer.Argument(help="Name of whoever is shut out; what they said stays.")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Shut somebody out, and sign them out everywhere."""
    with _accounts(workspace) as accounts:
        user = accounts.change(name, active=False)
    done(asdict(user), f"{name} is shut out; what they said stays.", as_json=as_json)


@app.command("list")
def list_users(workspace: WorkspaceOption = None, output: FilesOption = None, as_json: JsonOption = False) -> None:
    """List everybody with an account."""
    from climassay.reporting import Table
    from climassay.reporting.results import Shown

    with _accounts(workspace) as accounts:
        users = accounts.users()
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
    table = Table.of("Users", ("name", "shown as", "role", "state", "password"), rows, left=5)
    emit(Shown([asdict(user) for user in users], (table,)), as_json, output)


def _show_link(name: str, link: str, words: str, as_json: bool) -> None:
    done({"name": name, "link": link}, f"{name}: {words}:", f"  {link}", as_json=as_json)
