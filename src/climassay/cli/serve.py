"""``climassay serve``."""

import logging
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from climassay.cli.model_options import ReachOptions
from climassay.cli.option_groups import grouped
from climassay.cli.output import JsonOption, print_json, stderr_console
from climassay.errors import InputError, MissingExtraError
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from climassay.web import Place


@grouped
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for the whole network.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    address: Annotated[
        str, typer.Option(help="Where people reach the server, if a proxy stands before it: https://...")
    ] = "",
    public: Annotated[
        str, typer.Option(help="What is open without an account: nothing, read (results, checks, library), or check.")
    ] = "nothing",
    publisher: Annotated[str, typer.Option(help="Organisation named in published verdicts.")] = "",
    debate: Annotated[
        list[Path] | None, typer.Option(help="File that sets up a debate; repeat it for a choice of several.")
    ] = None,
    model: Annotated[str, typer.Option(help="Model of debates without such a file.")] = "local:smollm2",
    reach: ReachOptions = ReachOptions(),
    upload_mb: Annotated[int, typer.Option(min=1, help="Largest upload in megabytes.")] = 200,
    workspace: Annotated[Path | None, typer.Option("-w", "--workspace", help="Folder of your data.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Serve the web pages: experts annotate, anyone checks a claim, everyone sees results."""
    from typing import get_args

    from climassay.web.settings import Public, ServerSettings

    if public not in get_args(Public):
        raise InputError(f"--public is one of {', '.join(get_args(Public))}, not {public!r}.")
    sockets, taken = _listen(host, port)
    settings = ServerSettings(
        host=host,
        port=taken,
        address=address,
        public=cast(Literal["nothing", "read", "check"], public),
        publisher=publisher,
        debates=tuple(debate or ()),
        model=model,
        load=lambda name, place, dtype=None, **own: (
            replace(reach, **own).fitting(name).load(name, place, quiet=True, dtype=dtype)
        ),
        upload_bytes=upload_mb * 2**20,
    )
    try:
        import uvicorn

        from climassay.web import Place, create_app
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"The web pages need {error.name}: install them with pip install 'climassay[web]'."
        ) from None
    place = Place(Workspace.open(workspace), settings)
    try:
        app = create_app(place)
        threading.Thread(target=_warm, daemon=True).start()
        _greet(place, as_json)
        logging.getLogger("uvicorn.access").disabled = True
        config = uvicorn.Config(
            app, log_level="warning", timeout_graceful_shutdown=3, proxy_headers=bool(address), server_header=False
        )
        uvicorn.Server(config).run(sockets=sockets)
    finally:
        place.close()


def _warm() -> None:
    """Import what the first page that marks words would wait for, two seconds and more."""
    from climassay.reporting.highlighting import stems

    stems("warming")


def _listen(host: str, port: int) -> tuple[list[Any], int]:
    """The socket, taken before anything is loaded, so that a port in use is said at once."""
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio switches Nagle's delay off (40 ms an answer) on such sockets only.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except (OSError, UnicodeError) as error:
        made.close()
        raise InputError(f"Port {port} on {host} cannot be used ({error}): choose another (--port).") from None
    made.listen(128)
    return [made], int(made.getsockname()[1])


def _greet(place: "Place", as_json: bool) -> None:
    """Say where the pages are; in a workspace without anybody, with a link that lets the first admin in."""
    accounts, settings = place.accounts, place.settings
    link = None
    users = accounts.users()
    if not users:
        accounts.add("admin", "admin")
    if not any(user.has_password and user.active for user in users) and (settings.local or not users):
        admins = [user.name for user in accounts.users() if user.role == "admin" and user.active]
        if admins:
            link = f"{settings.root}/enter/{accounts.make_link(admins[0], 'enter')}"
    if as_json:
        print_json({"address": settings.root, "link": link, "workspace": str(place.workspace.root)})
        return
    console = stderr_console()
    console.print(f"climassay serves {place.workspace.root} at {settings.root}", highlight=False)
    if link:
        console.print("Nobody has a password yet. This link signs you in once, as admin:", highlight=False)
        console.print(f"  {link}", highlight=False, soft_wrap=True)
    console.print("Stop with Ctrl-C.", highlight=False)
