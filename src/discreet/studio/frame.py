"""What all pages share: the frame around them, whom they are for, and the same elsewhere.

In: a request, a template, its values. Out: a page. Every page says in colour and words whether what
it shows is confidential or public. Command line and Python of a page are made from the keywords
that were used, so they cannot say anything else.
"""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from html import escape, unescape

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from discreet.choices import PlainDict, PlainMapping
from discreet.coding.remedies import spell_command
from discreet.html import render
from discreet.studio.jobs import JobState, StudioJob
from discreet.studio.language import not_found, tell
from discreet.studio.messages import say_message
from discreet.studio.session import CalibrationRun, StudioSession, Work
from discreet.words import LANGUAGES, mark


class Secrecy(Enum):
    """Whether what a page shows may be passed on: a word, and why."""

    CONFIDENTIAL = (
        mark("Confidential"),
        mark("Made from persons' answers without privacy protection. Do not publish or pass on."),
    )
    OWN = ("Confidential", mark("Names of your files. They stay on this machine."))
    LEDGER = (
        "Confidential",
        mark(
            "What a ledger records is for its steward; the report that it offers may be published."
        ),
    )
    RELEASED = (
        mark("Public"),
        mark("Released with differential privacy: the numbers and the promise may be published."),
    )
    PUBLIC = ("Public", mark("Nothing on this page was computed from anybody's answers."))


def session_of(request: Request) -> StudioSession:
    """Return the session that a request belongs to."""
    session: StudioSession = request.app.state.session
    return session


def work_of(request: Request) -> Work:
    """Return the work that an address names."""
    work = session_of(request).works.get(request.path_params["work"])
    if work is None:
        raise not_found("There is no such work here; the studio was restarted.")
    return work


def run_of(request: Request) -> CalibrationRun:
    """Return the calibration that an address names."""
    run = work_of(request).find_run(request.path_params["run"])
    if run is None:
        raise not_found("There is no such calibration here; the studio was restarted.")
    return run


def show(
    template: str,
    values: PlainMapping,
    secrecy: Secrecy,
    work: Work | None = None,
    run: CalibrationRun | None = None,
    status: int = 0,
) -> Response:
    """Return a page in the frame.

    Parameters
    ----------
    template, values
        What stands in it. A ``problem`` among the values makes it a refusal.
    secrecy
        Whom it is for.
    work
        Whose pages the navigation offers.
    run
        The calibration that is shown; by default the latest one that is done.
    status
        Of the answer.
    """
    done = [one for one in work.runs if one.is_done] if work else []
    frame = {"tell": tell, "spell": spell, "languages": LANGUAGES, "secrecy": secrecy, "work": work}
    frame |= {"run": run or (done[-1] if done else None), "problem": ""}
    frame |= {"waiting": False, "outside": False}
    frame["wrong"] = getattr(values.get("problem"), "fields", {})
    page = speak_page(render(f"studio/{template}", {**frame, **values}))
    # Names of files need not be UTF-8; a page must.
    content = page.encode("utf-8", "backslashreplace")
    return HTMLResponse(content, status or (400 if values.get("problem") else 200))


#: Texts and labels of more than one word, cells and headings of tables; then their numbers.
_SPOKEN = re.compile(
    r"""(\b(?:aria-label|title)=")([^<>"]*[a-z][.,:;]? [^<>"]*)"""
    r"""|(>)([^<>]*[a-z][.,:;]? [^<>]*)(?=<)"""
    r"""|([<](?:td class="words"|span class="word"|th scope="col"[^<>]*)>(?:[<]button[^<>]*>)?)"""
    r"""([^<>]+)"""
)
_NUMBERS = re.compile(r"""(?<=>)[−-]?\d[\d,]*(?:\.\d+)?(?=</(?:td|dd)>)""")


#: What is quoted word for word: what readers of a release see, and what is signed.
_QUOTED = re.compile(r"""(<(\w+)\b[^<>]*\btranslate="no".*?</\2>)""", re.DOTALL)


def speak_page(page: str) -> str:
    """Return a page whose sentences of the library are in the reader's language, quotes apart."""
    if tell.language == "en":
        return page
    parts = _QUOTED.split(page)  # text, a quote, its tag, and so on
    return "".join(_speak(one) if n % 3 == 0 else one for n, one in enumerate(parts) if n % 3 < 2)


def _speak(page: str) -> str:

    def speak_text(found: re.Match[str]) -> str:
        before, text = [part for part in found.groups() if part is not None]
        plain = unescape(text)
        words = plain.strip()
        said = say_message(tell.language, words)
        return found[0] if said == words else before + escape(plain.replace(words, said))

    return _NUMBERS.sub(lambda one: speak_number(one[0]), _SPOKEN.sub(speak_text, page))


def speak_number(text: str) -> str:
    """Return a number with a decimal comma, and a blank between its thousands."""
    return text.replace(",", "\N{NARROW NO-BREAK SPACE}").replace(".", ",")


def spell(form: str, number: float) -> str:
    """Return a number in a form such as ``%.2f``, with the decimal sign of the language."""
    return form % number if tell.language == "en" else speak_number(form % number)


def show_job(job: StudioJob) -> PlainDict:
    """Return what a page shows of a job: that it runs, failed or was cancelled."""
    state = job.state
    return {
        "job": job,
        "progress": job.progress,
        "waiting": state is JobState.RUNNING,
        "cancelled": state is JobState.CANCELLED,
        "failure": job.failure if state is JobState.FAILED else "",
    }


def send_table(rows: Iterable[Iterable[object]], name: str) -> Response:
    """Send rows as a CSV file."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return send_text(file.getvalue(), name)


def send_text(text: str, name: str, kind: str = "text/csv") -> Response:
    """Send a file to be kept; its name is ours and plain."""
    return send_bytes(text.encode(), name, f"{kind}; charset=utf-8")


def send_bytes(data: bytes, name: str, kind: str) -> Response:
    """Send a file to be kept."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(data, media_type=kind, headers=headers)


def own_page(address: str) -> str:
    """Return the address of one of our own pages; nothing of others, such as "//elsewhere"."""
    return address if re.fullmatch(r"(/[\w-]+)+", address) else ""


def go(address: str) -> Response:
    """Lead a browser on after a form was sent."""
    return RedirectResponse(address, 303)


KEY_FILE = "key.csv"


@dataclass(frozen=True)
class Same:
    """What does the same: in Python, and on the command line."""

    python: str
    command: str
    needs_key: bool = False


def write_same(
    verb: str,
    file: str,
    options: PlainMapping,
    items: Sequence[str],
    *,
    more: PlainMapping | None = None,
    then: str = "",
) -> Same:
    """Return a command with its Python.

    Parameters
    ----------
    verb
        The command.
    file
        The answers, as the user calls them.
    options
        How they are read.
    items
        The item columns in order, by which a key becomes a row of letters.
    more
        Further options of the command.
    then
        Lines of Python that follow after reading.
    """
    key, typed = options.get("key"), dict(options)
    if isinstance(key, Mapping):  # the command line takes letters in order, or a table
        letters = [str(letter) for letter in key.values()]
        in_order = list(key) == list(items) and all(len(letter) == 1 for letter in letters)
        typed["key"] = "".join(letters) if in_order else KEY_FILE
    words = spell_command({**typed, **(more or {})})
    command = " ".join(["discreet", *verb.split(), shlex.quote(file), *words])
    call = write_call("discreet.read_responses", repr(file), **options)
    python = f"import discreet\n\nanswers = {call}\n{then}"
    return Same(python, command, typed.get("key") == KEY_FILE != key)


#: Signs of a call that stands on one line.
SHORT_CALL = 80


def write_call(function: str, *values: str, **keywords: object) -> str:
    """Return a call in Python of what is given as code and by keywords.

    Examples
    --------
    >>> write_call("fit", "answers", method="conditional")
    "fit(answers, method='conditional')"
    """
    inside = [*values, *(f"{name}={value!r}" for name, value in keywords.items())]
    line = f"{function}({', '.join(inside)})"
    if len(line) <= SHORT_CALL and "\n" not in line:
        return line
    lines = "".join(f"    {part},\n" for part in inside)
    return f"{function}(\n{lines})"
