"""Who may come in: this machine's browser that was given the address, and no page elsewhere.

In: a request. Out: a refusal, or the application's answer under a policy that lets a page load
nothing but our own style and script. A page elsewhere that makes its name point to this machine
(DNS rebinding) sends another Host; one that posts to us sends another Origin, and no cookie.
"""

from __future__ import annotations

from dataclasses import dataclass
from hmac import compare_digest

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.markup import render
from discreet.secure import SystemSource

LOOPBACK = "127.0.0.1"
_WORDS = 4
"""Random words of 64 bits in a token."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not "no-referrer": with it browsers send "Origin: null" when a form is sent.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Sent with every answer."""

SANDBOX = {
    "Content-Security-Policy": (
        "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; "
        "script-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; form-action 'none'; "
        "base-uri 'none'"
    )
}
"""Sent with the page of a release, whose style and script are in it. It is nobody's then: it has no
cookie, reaches nothing of the studio, and its own policy names the one script that it runs."""


@dataclass(frozen=True)
class Keys:
    """What opens one run of the studio.

    Attributes
    ----------
    port
        Where it listens; part of the names that it answers to.
    token
        Stands in the first address.
    cookie
        What a browser that came with the token is known by afterwards.
    """

    port: int
    token: str
    cookie: str

    @property
    def address(self) -> str:
        """The first address, with its token."""
        return f"http://{LOOPBACK}:{self.port}/enter?token={self.token}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of this machine under which it answers."""
        return (f"{LOOPBACK}:{self.port}", f"localhost:{self.port}")

    @property
    def cookie_name(self) -> str:
        """Cookies do not know ports, and two studios may run at a time."""
        return f"discreet-studio-{self.port}"


def make_keys(port: int) -> Keys:
    """Return new keys for a port."""
    return Keys(port, _draw(), _draw())


def _draw() -> str:
    return "".join(f"{word:016x}" for word in SystemSource().words(_WORDS).tolist())


class Guard:
    """Stands before the application and lets through what may come in."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = receive_visitor(Request(scope), self._keys) or self._app
        await answer(scope, receive, send_safely)


def receive_visitor(request: Request, keys: Keys) -> Response | None:
    """Return a refusal or the entrance; ``None`` where the application shall answer."""
    if request.headers.get("host") not in keys.hosts:
        return _refuse(421, "This address does not belong to the studio.")
    if request.method not in ("GET", "HEAD", "POST"):
        return _refuse(405, "The studio does not know this kind of request.")
    if request.method == "POST" and not _comes_from_us(request):
        return _refuse(403, "This was sent by a page that is not the studio's.")
    if request.url.path == "/enter":
        return _enter(request, keys)
    if not _same(request.cookies.get(keys.cookie_name, ""), keys.cookie):
        return _refuse(
            403,
            "This browser has not been let in. Open the address that `discreet studio` printed, "
            "with the token at its end.",
        )
    return None


def _comes_from_us(request: Request) -> bool:
    return request.headers.get("origin") == f"http://{request.headers['host']}"


def _enter(request: Request, keys: Keys) -> Response:
    """Give a browser that has the token its cookie."""
    known = _same(request.cookies.get(keys.cookie_name, ""), keys.cookie)
    if not known and not _same(request.query_params.get("token", ""), keys.token):
        return _refuse(403, "The token in this address is wrong. Copy the whole address again.")
    # Not a redirect: the browser would not send a strict cookie along if another page led here.
    answer = HTMLResponse(render("studio/enter.html", {}))
    answer.set_cookie(keys.cookie_name, keys.cookie, httponly=True, samesite="strict", path="/")
    return answer


def _same(given: str, wanted: str) -> bool:
    return compare_digest(given.encode(), wanted.encode())


def _refuse(status: int, words: str) -> Response:
    return PlainTextResponse(f"{words}\n", status)
