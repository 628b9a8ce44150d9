"""A throwaway PostgreSQL server: in a temporary folder, on the loopback, as its own user."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PASSWORD = "planted-s3cret/%"  # noqa: S105 (planted, to be looked for wherever it must not be)
ENCODED = "planted-s3cret%2F%25"


def find_binaries() -> Path:
    """Return the folder of initdb and pg_ctl; skip where there is none."""
    folders = [Path(found).parent for found in [shutil.which("initdb")] if found]
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    pytest.skip("PostgreSQL's server is not installed (Debian: apt-get install postgresql)")


def find_user() -> list[str]:
    """Return what to put before a command: the server refuses to run as root."""
    if os.geteuid() != 0:
        return []
    import pwd

    try:
        pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("the server does not run as root, and there is no user 'postgres'")
    if shutil.which("runuser"):
        return ["runuser", "-u", "postgres", "--"]
    if shutil.which("setpriv"):
        return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]
    pytest.skip("the server does not run as root, and neither runuser nor setpriv is there")


class Server:
    """A running server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._binaries, self._user = find_binaries(), find_user()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        secret = folder / "password"
        secret.write_text(PASSWORD)
        if self._user:
            shutil.chown(folder, "postgres")
            shutil.chown(secret, "postgres")
        self._run(
            "initdb", "-D", f"{folder}/data", "-U", "owner", "--pwfile", str(secret), "-N",
            "--auth-local=trust", "--auth-host=scram-sha-256", "--no-locale", "-E", "UTF8",
        )  # fmt: skip
        secret.unlink()

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._user, str(self._binaries / program), *arguments]
        # Files rather than pipes: the server inherits them and would keep a pipe open.
        with (self.folder / "output").open("w+") as output:
            done = subprocess.run(
                command, cwd=self.folder, stdout=output, stderr=output, check=False
            )
            output.seek(0)
            assert done.returncode == 0, output.read()

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        # A statement that waits for a transaction somebody forgot fails instead of hanging.
        options += " -c lock_timeout=20s"
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-t", "600",
                  "-l", f"{self.folder}/log", "-o", options, "start")  # fmt: skip

    def stop(self) -> None:
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-m", "immediate", "stop")

    def address(self, wanted: str = "", *, password: str = ENCODED) -> str:
        place = f"postgresql://owner:{password}@127.0.0.1:{self.port}/postgres"
        return f"{place}::{wanted}" if wanted else place

    def connect(self, *, password: str = ENCODED):
        from adbc_driver_postgresql import dbapi

        return dbapi.connect(self.address(password=password), autocommit=True)

    def run(self, *statements: str) -> None:
        with self.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def load(self, name: str, table) -> None:
        """Make a table of an Arrow table."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.adbc_ingest(name, table, mode="replace")


@contextmanager
def running_server() -> Iterator[Server]:
    """Start a server; at the end nothing is left of it."""
    # Not pytest's folder, which only root can look into, and short: a socket's path must be.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        server = Server(folder)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
