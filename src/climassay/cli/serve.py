"""``climassay serve``."""

import logging
import threading
from contextlib import closing
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
    from climassay.web import AppState
    from climassay.web.settings import ServerSettings

LARGEST_HEADERS = 32 * 1024
"""Bytes of a request's headers."""


@grouped
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for the whole network.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    address: Annotated[
        str,
        typer.Option(
            help="Where people reach the server, if a proxy stands before it: https://..., perhaps with a path."
        ),
    ] = "",
    public: Annotated[
        str, typer.Option(help="Pages open without an account: nothing, read (results, checks, library), or check.")
    ] = "nothing",
    publisher: Annotated[str, typer.Option(help="Organisation named in published verdicts.")] = "",
    debate: Annotated[
        list[Path] | None, typer.Option(help="File that sets up a debate; repeat it for a choice of several.")
    ] = None,
    model: Annotated[str, typer.Option(help="Model of debates without such a file.")] = "local:smollm2",
    reach: ReachOptions = ReachOptions(),
    proxies: Annotated[
        str,
        typer.Option(
            envvar="FORWARDED_ALLOW_IPS",
            help="Addresses or networks of the proxies that say where visitors come from, by commas.",
        ),
    ] = "127.0.0.1,::1",
    visitor_checks: Annotated[
        int, typer.Option(min=1, help="Claims an hour that somebody without an account may have checked.")
    ] = 20,
    upload_mb: Annotated[int, typer.Option(min=1, help="Largest upload in megabytes.")] = 200,
    workspace: Annotated[Path | None, typer.Option("-w", "--workspace", help="Folder of your data.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Serve the web pages: experts annotate, anyone checks a claim, everyone sees results."""
    from typing import get_args

    from climassay.records.database import ServerLock
    from climassay.web.settings import Public, ServerSettings

    if public not in get_args(Public):
        raise InputError(f"--public is one of {', '.join(get_args(Public))}, not {public!r}.")
    settings = ServerSettings(
        host=host,
        port=port,
        address=address,
        public=cast(Literal["nothing", "read", "check"], public),
        publisher=publisher,
        debates=tuple(debate or ()),
        model=model,
        load=lambda name, place, dtype=None, **own: (
            replace(reach, **own).fitting(name).load(name, place, quiet=True, dtype=dtype)
        ),
        upload_bytes=upload_mb * 2**20,
        proxies=proxies,
        visitor_checks=visitor_checks,
    )
    try:
        import uvicorn

        from climassay.web import AppState, create_app
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"The web pages need {error.name}: install them with pip install 'climassay[web]'."
        ) from None
    served = Workspace.open(workspace)
    with closing(ServerLock(served.records_url)) as lock:
        if served.has_records:
            lock.take(_tell_waiting)  # before the port, which a server that is being restarted still has
        sockets, taken = _listen(host, port)
        lock.take(_tell_waiting)
        settings = replace(settings, port=taken)
        lock.announce(settings.root)
        with closing(AppState(served, settings)) as place:
            place.jobs.take_over()
            app = create_app(place)
            threading.Thread(target=_warm, daemon=True).start()
            _greet(place, as_json)
            uvicorn.Server(server_config(app, settings)).run(sockets=sockets)


def _tell_waiting(address: str) -> None:
    from climassay.records.database import WAIT_SECONDS

    said = f"This workspace is served at {address} already; waiting {WAIT_SECONDS:.0f} s for that server to end."
    stderr_console().print(said, highlight=False)


def server_config(app: Any, settings: "ServerSettings") -> Any:
    """How uvicorn serves an application: within limits, and with a log that nobody outside can fill."""
    import uvicorn

    from climassay.web.connections import ACCEPTED_AT_ONCE, ConnectionLimits, LogLimit, guarded, most_files
    from climassay.web.settings import Networks

    config = uvicorn.Config(
        app,
        http=guarded(ConnectionLimits.for_files(most_files()), Networks(settings.proxies)),
        ws="none",
        log_level="warning",
        timeout_graceful_shutdown=3,
        backlog=ACCEPTED_AT_ONCE,
        h11_max_incomplete_event_size=LARGEST_HEADERS,
        proxy_headers=True,
        forwarded_allow_ips=settings.proxies,
        server_header=False,
    )
    logging.getLogger("uvicorn.access").disabled = True
    for name in ("uvicorn.error", "asyncio", "climassay.web"):
        logging.getLogger(name).addFilter(LogLimit())
    return config


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
    made.listen(1024)
    return [made], int(made.getsockname()[1])


def _greet(place: "AppState", as_json: bool) -> None:
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
