"""The server: on the loopback address, for as long as the program runs.

In: a file or nothing, a port. Out: an address, printed once it answers. When it ends, its workers
end, and what browsers sent is removed; ledgers and releases stay.
"""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from discreet.errors import BadUsage
from discreet.studio.app import build_app
from discreet.studio.folder import private_folder
from discreet.studio.home import Home
from discreet.studio.jobs import usual_memory
from discreet.studio.safety import LOOPBACK, make_keys
from discreet.studio.session import Session
from discreet.tables.paths import settle_path

_BACKLOG = 64


def run_studio(
    file: Path | None,
    port: int,
    announce: Callable[[str], None],
    *,
    browser: bool = True,
    keep: Path | None = None,
) -> None:
    """Serve until somebody ends the program.

    Parameters
    ----------
    file
        Opened at once.
    port
        Where to listen; 0 takes a free one.
    announce
        Called with the first address, once it answers.
    browser
        Whether to open it.
    keep
        The folder for what stays: ledgers, and releases that were paid for.
    """
    home = Home() if keep is None else Home(settle_path(keep))
    with listen(port) as door, private_folder() as folder:
        session = Session(folder, memory=usual_memory(), home=home)
        if file is not None:
            session.open(settle_path(file))
            session.recent.add(settle_path(file))
        keys = make_keys(door.getsockname()[1])
        announce(keys.address)
        if browser:
            threading.Thread(target=webbrowser.open, args=(keys.address,), daemon=True).start()
        try:
            make_server(build_app(session, keys)).run(sockets=[door])
        finally:
            session.jobs.end()


def listen(port: int) -> socket.socket:
    """Return a socket that listens on the loopback address alone."""
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind((LOOPBACK, port))
    except OSError as error:
        door.close()
        raise BadUsage(
            f"port {port} cannot be used ({error.strerror}): another program may listen there. "
            "Choose another with --port, or leave it out to take a free one."
        ) from None
    door.listen(_BACKLOG)
    return door


def make_server(app: object) -> uvicorn.Server:
    """Return a server that says nothing and keeps no log."""
    return uvicorn.Server(
        uvicorn.Config(
            app,  # type: ignore[arg-type]
            log_level="critical",
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=2,
        )
    )
