"""Access control: only the browser that was given the address, and no page elsewhere.

In: a request. Out: a refusal, or the application's answer under a policy that lets a page load
nothing but our own style and script. The token of an address opens one session: the first browser
that comes with it gets a cookie, every other one is refused, and the owner is told. A page
elsewhere that makes its name point to this machine (DNS rebinding) sends another Host; one that
posts to us sends another Origin, and no cookie.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from hmac import compare_digest

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.secure import SystemSource
from discreet.studio.frame import Secrecy, show
from discreet.studio.language import COOKIE, begin_visit, tell
from discreet.words import mark

LOOPBACK = "127.0.0.1"
#: Random words of 64 bits in a token.
_WORDS = 4

#: Sent with every answer.
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

#: Sent with the page of a release, whose style and script are in it. It is nobody's then: it has no
#: cookie, reaches nothing of the studio, and its own policy names the one script that it runs.
SANDBOX = {
    "Content-Security-Policy": (
        "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; "
        "script-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; form-action 'none'; "
        "base-uri 'none'"
    )
}


class Keys:
    """What opens one run of the studio: a token that is good for once, and cookies of browsers.

    Parameters
    ----------
    port
        Where the studio listens; part of the names that it answers to.
    on_entry
        Called when a browser has come in.
    on_reuse
        Called when somebody comes with a token that was used already.
    """

    def __init__(
        self,
        port: int,
        on_entry: Callable[[], None] = lambda: None,
        on_reuse: Callable[[], None] = lambda: None,
    ) -> None:
        self.port, self._on_entry, self._on_reuse = port, on_entry, on_reuse
        self.token = _draw()
        self._used: dict[str, bool] = {}  # whether the owner was told of another try
        self._cookies: list[str] = []
        self._lock = threading.Lock()

    @property
    def address(self) -> str:
        """The address to open, with its token."""
        return f"http://{LOOPBACK}:{self.port}/enter?token={self.token}"

    def renew(self) -> str:
        """Return a new address; the one before opens nothing any more."""
        with self._lock:
            self._used.setdefault(self.token, False)
            self.token = _draw()
        return self.address

    def opens(self, token: str) -> bool:
        """Say whether a token is right and was not used."""
        return self.token not in self._used and _same(token, self.token)

    def admit(self, token: str) -> str | None:
        """Return the cookie of a new session; None where the token is wrong or was used."""
        with self._lock:
            if not self.opens(token):
                return None
            self._used[self.token] = False
            self._cookies.append(_draw())
            cookie = self._cookies[-1]
        self._on_entry()
        return cookie

    def was_used(self, token: str) -> bool:
        """Say whether a token is one of ours that opens nothing any more; tell the owner."""
        with self._lock:
            was_told = next((self._used[one] for one in self._used if _same(token, one)), None)
            if was_told is False:
                self._used[token] = True
        if was_told is False:
            self._on_reuse()
        return was_told is not None

    def knows(self, cookie: str) -> bool:
        """Say whether a browser has come in with this cookie."""
        return any(_same(cookie, known) for known in self._cookies)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of this machine under which it answers."""
        return (f"{LOOPBACK}:{self.port}", f"localhost:{self.port}")

    @property
    def cookie_name(self) -> str:
        """Cookies do not know ports, and two studios may run at a time."""
        return f"discreet-studio-{self.port}"


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

        request = Request(scope)
        language = begin_visit(request)

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if language:
                    kept = "Path=/; Max-Age=31536000; HttpOnly; SameSite=Strict"
                    headers.append("Set-Cookie", f"{COOKIE}={language}; {kept}")
            await send(message)

        answer = receive_visitor(request, self._keys) or self._app
        await answer(scope, receive, send_safely)


def receive_visitor(request: Request, keys: Keys) -> Response | None:
    """Return a refusal or the entrance; ``None`` where the application shall answer."""
    if request.headers.get("host") not in keys.hosts:
        return _refuse(421, tell("This address does not belong to the studio."))
    if request.method not in ("GET", "HEAD", "POST"):
        return _refuse(405, tell("The studio does not know this kind of request."))
    if request.method == "POST" and not _comes_from_us(request):
        return _refuse(403, tell("This was sent by a page that is not the studio's."))
    if request.url.path == "/enter":
        return _enter(request, keys)
    if request.url.path.startswith("/static/"):  # how pages look is no secret
        return None
    if not keys.knows(request.cookies.get(keys.cookie_name, "")):
        return _refuse(403, f"{tell.term(STRANGER)} {tell.term(ANOTHER)}")
    return None


STRANGER = mark(
    "This browser has not been let in. Open the address that stands in the window in which the "
    "studio runs, with the token at its end."
)
ANOTHER = mark("For a new address, press Enter in the window in which the studio runs.")


def _comes_from_us(request: Request) -> bool:
    return request.headers.get("origin") == f"http://{request.headers['host']}"


def _enter(request: Request, keys: Keys) -> Response:
    """Give a browser that has the token its cookie, once; one that is known may come again."""
    cookie = request.cookies.get(keys.cookie_name, "")
    token = request.query_params.get("token", "")
    if request.method == "HEAD" and keys.opens(token):  # a look at the address uses nothing up
        return PlainTextResponse("")
    if not keys.knows(cookie):
        cookie = keys.admit(token) or ""
    if not cookie:
        reason = USED if keys.was_used(token) else WRONG
        return _refuse(403, f"{tell.term(reason)} {tell.term(ANOTHER)}")
    # Not a redirect: the browser would not send a strict cookie along if another page led here.
    answer = show("door.html", {}, Secrecy.PUBLIC)
    answer.set_cookie(keys.cookie_name, cookie, httponly=True, samesite="strict", path="/")
    return answer


WRONG = mark("The token in this address is wrong. Copy the whole address again.")
USED = mark(
    "This address was used already, and it opens the studio once. If you did not open it in "
    "another browser, somebody else did: end the studio with Ctrl-C and start it again."
)


def _same(received: str, expected: str) -> bool:
    return compare_digest(received.encode(), expected.encode())


def _refuse(status: int, words: str) -> Response:
    return show("door.html", {"problem": words}, Secrecy.PUBLIC, status=status)
