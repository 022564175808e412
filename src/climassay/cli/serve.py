"""``climassay serve`` and ``climassay users``: the web pages, and who may use them."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from climassay.cli.options import (
    POSITIVE,
    JsonOption,
    LoadingOptions,
    ModelOption,
    OutputOption,
    ReachOptions,
    WorkspaceOption,
    bounded,
    given_values,
    open_session,
    options_for,
)
from climassay.cli.output import emit, print_json, print_note, report_done
from climassay.errors import ClimassayError, InputError, MissingExtraError
from climassay.models import DEFAULT_MODEL
from climassay.reporting import Table
from climassay.reporting.marking import stems
from climassay.reporting.results import AssembledResult
from climassay.web.settings import ServerSettings
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from climassay.web import AppState
    from climassay.web.accounts import AccountStore


MAX_HEADER_BYTES = 32 * 1024
"""Maximum total size of a request's headers in bytes."""


@dataclass(frozen=True, kw_only=True)
@options_for(
    ServerSettings,
    "host",
    "port",
    "address",
    "public",
    "publisher",
    "model",
    "visitor_checks",
    debates=Parameter(name="--debate"),
    originals=Parameter(negative="--no-originals"),
    proxies=Parameter(env_var="FORWARDED_ALLOW_IPS"),
)
class ServeOptions(ReachOptions):
    """Options for the server of the web pages, and for the models that it uses."""

    upload_mb: Annotated[int, POSITIVE] = 200
    """Maximum size of an upload in megabytes."""


def serve(
    *,
    options: Annotated[ServeOptions, Parameter(name="*")] = ServeOptions(),
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Serve the web pages: experts annotate, anyone checks a claim, everyone sees results."""
    settings = ServerSettings(
        **given_values(options, ServerSettings),
        upload_bytes=options.upload_mb * 2**20,
        model_options=options.model_options,
    )

    def report_ready(state: "AppState", link: str | None) -> None:
        if as_json:
            print_json({"address": state.settings.root, "link": link, "workspace": str(state.workspace.root)})
            return
        print_note(f"climassay serves {state.workspace.root} at {state.settings.root}")
        if link:
            print_note("Nobody has a password yet. This link signs you in once, as admin:")
            print_note(f"  {link}")
        print_note("Stop with Ctrl-C.")

    serve_pages(Workspace.open(workspace), settings, on_ready=report_ready, on_start=print_note)


def serve_pages(
    workspace: Workspace,
    settings: ServerSettings,
    *,
    on_ready: "Callable[[AppState, str | None], None]",
    on_start: Callable[[str], None],
) -> None:
    """Serve the pages of a workspace until the process is told to stop.

    Args:
        workspace: Workspace to serve.
        settings: Settings of the server.
        on_ready: Callback for when the server is ready. It receives the server's state and a link with which the first
            admin can sign in (None if a user has a password).
        on_start: Function that is called with a sentence about the start: that it waits for another server of the
            workspace to stop, or that it starts.

    Raises:
        InputError: The port is in use, or another server of the workspace does not stop.
        MissingExtraError: A package of the server is not installed.
    """
    try:
        import uvicorn

        from climassay.web import AppState, create_app
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"The web pages need {error.name}: install them with pip install 'climassay[web]'."
        ) from None
    from climassay.records.database import WAIT_SECONDS, ServerLock

    def report_waiting(address: str) -> None:
        on_start(
            f"This workspace is already served at {address}; waiting {WAIT_SECONDS:.0f} s for that server to stop."
        )

    with closing(ServerLock(workspace.records_url)) as lock:
        if workspace.has_records:
            lock.acquire(report_waiting)  # before the port, which a server that is being restarted still has
        sockets, port = _open_socket(settings.host, settings.port)
        lock.acquire(report_waiting)
        settings = replace(settings, port=port)
        lock.announce(settings.root)
        on_start(f"climassay starts at {settings.root}: this takes a few seconds.")
        with closing(AppState(workspace, settings)) as state:
            state.jobs.requeue_foreign_jobs()
            app = create_app(state)
            threading.Thread(target=_warm_up, args=(app,), daemon=True).start()
            on_ready(state, _first_admin_link(state))
            uvicorn.Server(server_config(app, settings)).run(sockets=sockets)


def _first_admin_link(state: "AppState") -> str | None:
    """Return a link by which the first admin can sign in, or None if an active user has a password.

    If the workspace has no users, an admin named ``admin`` is added. If it has users, a link is only made for a server
    that can be reached from this machine only.
    """
    accounts, settings = state.accounts, state.settings
    users = accounts.users()
    if not users:
        accounts.add("admin", "admin")
    if any(user.has_password and user.active for user in users) or not (settings.local or not users):
        return None
    admins = [user.name for user in accounts.users() if user.role == "admin" and user.active]
    return f"{settings.root}/enter/{accounts.make_link(admins[0], 'enter')}" if admins else None


def server_config(app: Any, settings: ServerSettings) -> Any:
    """Return uvicorn's configuration with limits on connections and headers, and limit repeated log messages."""
    import uvicorn

    from climassay.web.connections import (
        ACCEPT_BACKLOG,
        ConnectionLimits,
        ControlCharacterFilter,
        RepeatedMessageFilter,
        make_protocol_class,
        raise_open_file_limit,
    )
    from climassay.web.settings import Networks

    config = uvicorn.Config(
        app,
        http=make_protocol_class(ConnectionLimits.for_open_files(raise_open_file_limit()), Networks(settings.proxies)),
        ws="none",
        log_level="warning",
        timeout_graceful_shutdown=3,
        backlog=ACCEPT_BACKLOG,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        proxy_headers=True,
        forwarded_allow_ips=settings.proxies,
        server_header=False,
    )
    logging.getLogger("uvicorn.access").disabled = True
    for name in ("uvicorn.error", "asyncio", "climassay.web"):
        logging.getLogger(name).addFilter(RepeatedMessageFilter())
        logging.getLogger(name).addFilter(ControlCharacterFilter())
    return config


def _warm_up(app: Any) -> None:
    """Prepare routes, templates, collections, the encoder and a process for texts, so that first requests are fast."""
    from climassay.web.checks.store import list_debate_choices
    from climassay.web.pages import environment

    app.state.climassay.text_processes.warm_up()
    for route in app.routes:  # FastAPI compiles them on the first match, which takes half a second
        route.matches({"type": "http", "method": "GET", "path": "/nowhere", "headers": []})
    for name in environment().list_templates():
        environment().get_template(name)
    stems("warming")
    with suppress(ClimassayError):  # Pages report what cannot be opened.
        list_debate_choices(app.state.climassay)
        app.state.climassay.encoder().encode(["warming"])


def _open_socket(host: str, port: int) -> tuple[list[Any], int]:
    """Open a listening socket and return it in a list, with its port (a free one if ``port`` is 0).

    Raises:
        InputError: The host is invalid, or the port cannot be used.
    """
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm (a delay of 40 ms per response) only for sockets with an explicit protocol.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, UnicodeError) as error:
        listener.close()
        raise InputError(f"Port {port} on {host} cannot be used ({error}): choose another (--port).") from None
    listener.listen(1024)
    return [listener], int(listener.getsockname()[1])


def mcp(
    *,
    collection: Annotated[tuple[str, ...], Parameter(alias="-c")] = (),
    model: ModelOption = DEFAULT_MODEL,
    http: bool = False,
    port: Annotated[int, bounded(0, 65535)] = 8001,
    options: Annotated[LoadingOptions, Parameter(name="*")] = LoadingOptions(),
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Serve search, answers, checks and levels of confidence to assistants (Model Context Protocol).

    Without --http, an assistant starts the command itself and talks to it over stdin and stdout.

    Args:
        collection: Collection that assistants may use, by default all; repeat.
        http: Serve over HTTP at the path /mcp, for clients on this machine only.
        port: Port of --http.
    """
    if as_json and not http:
        raise InputError("--json needs --http: without it, stdout belongs to the assistant.")
    from climassay.web.mcp import create_server

    with open_session(workspace, options, is_silent=True) as session:
        server = create_server(session, model, collection)
        if not http:
            server.run("stdio")
            return
        import uvicorn

        sockets, port = _open_socket("127.0.0.1", port)
        address = f"http://127.0.0.1:{port}/mcp"
        print_json({"address": address}) if as_json else print_note(f"Assistants reach climassay at {address}")
        config = uvicorn.Config(server.streamable_http_app(), log_level="warning", timeout_graceful_shutdown=3)
        uvicorn.Server(config).run(sockets=sockets)


users = App(name="users")
AddressOption = Annotated[
    str,
    Parameter(
        help="Public address of the server, for the link; by default the address at which the workspace is, or was "
        "last, served."
    ),
]


@contextmanager
def _open_accounts(workspace: Path | None) -> "Iterator[AccountStore]":
    from climassay.web.accounts import AccountStore

    with open_session(workspace) as session:
        yield AccountStore(session.records.database)


@users.command
def add(
    name: str,
    /,
    *,
    role: Literal["annotator", "adjudicator", "admin"] = "annotator",
    display_name: str = "",
    address: AddressOption = "",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a user, and print the link to sign in.

    Args:
        name: Name to sign in with.
        role: Role of the user.
        display_name: Name shown to other users.
    """
    with _open_accounts(workspace) as accounts:
        root = _link_base_address(accounts, address)
        user = accounts.add(name.strip().lower(), role, display_name)
        link = f"{root}/enter/{accounts.make_link(user.name, 'invitation')}"
    _print_link(user.name, link, "This link lets them in once, to set a password", as_json)


@users.command
def reset(
    name: str,
    /,
    *,
    address: AddressOption = "",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print a link for a user to set a new password.

    Args:
        name: Name of the user who forgot the password.
    """
    with _open_accounts(workspace) as accounts:
        link = f"{_link_base_address(accounts, address)}/enter/{accounts.make_link(name, 'password')}"
    _print_link(name, link, "This link lets them set a new password", as_json)


@users.command
def remove(name: str, /, *, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Remove a user, and sign them out everywhere.

    Args:
        name: Name of the user to remove; their labels stay.
    """
    with _open_accounts(workspace) as accounts:
        user = accounts.change(name, active=False)
    report_done(asdict(user), f"{name} is shut out; their labels and reviews stay.", as_json=as_json)


@users.command(name="list")
def list_users(*, workspace: WorkspaceOption = None, output: OutputOption = (), as_json: JsonOption = False) -> None:
    """List all users."""
    with _open_accounts(workspace) as accounts:
        accounts_list = accounts.users()
    rows = [
        (
            user.name,
            user.display_name,
            user.role,
            "let in" if user.active else "shut out",
            "yes" if user.has_password else "no",
        )
        for user in accounts_list
    ]
    table = Table.of("Users", ("name", "shown as", "role", "state", "password"), rows, left_columns=5)
    emit(AssembledResult([asdict(user) for user in accounts_list], (table,)), as_json, output)


def _link_base_address(accounts: "AccountStore", address: str) -> str:
    """Return the base address of links: ``address`` or, if it is empty, the address of the workspace's last server."""
    from climassay.records.database import read_server_address

    return ServerSettings(address=address or read_server_address(accounts.database) or "").root


def _print_link(name: str, link: str, purpose: str, as_json: bool) -> None:
    report_done({"name": name, "link": link}, f"{name}: {purpose}:", f"  {link}", as_json=as_json)
