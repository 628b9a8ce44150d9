"""A request to a ledger, in one canonical form that several people sign.

In: public values, never data, and signing keys. Out: a :class:`Request`, its one canonical sequence
of bytes, its file. What is signed is JSON with sorted keys, in UTF-8, without blanks and without
floating-point numbers: those are written as exact decimals, so that no two programs print them
differently. Signatures are Ed25519, from the package ``cryptography`` (extra ``approvals``). A
public key is written as ``ed25519:`` and 64 hexadecimal digits; its fingerprint, for people to
compare, is 32 digits of its SHA-256.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

from discreet.atomic import appearing, write_text
from discreet.choices import (
    Chooser,
    Estimator,
    Invalid,
    Kept,
    OneMeans,
    PlainDict,
    PlainMapping,
    PrivacyUnit,
    TableLayout,
    WinnerSide,
)
from discreet.errors import BadUsage, MissingExtra, NotAllowed, escape_controls, escape_json
from discreet.privacy.ledger.file import random_bytes
from discreet.schema import (
    Along,
    AtLeast,
    Count,
    Distinct,
    SchemaError,
    Scope,
    Within,
    read_as,
    read_fields,
)

PREFIX = "ed25519:"
_PUBLIC = re.compile(rf"{PREFIX}[0-9a-f]{{64}}")
_SIGNATURE = re.compile(r"[0-9a-f]{128}")


def _load(name: str) -> Any:
    """Return a module of the library with the signatures."""
    try:
        return import_module(f"cryptography.{name}")
    except ImportError:
        raise MissingExtra("approving releases", "approvals") from None


#: Modules of that library.
_ed25519 = partial(_load, "hazmat.primitives.asymmetric.ed25519")
_serialization = partial(_load, "hazmat.primitives.serialization")


def write_key(path: str | PathLike[str], passphrase: str | None = None) -> str:
    """Make a signing key, readable by its owner only, and return its public key.

    The public key is also written to a file of its own, with ``.pub`` at its end. An existing key
    is never touched. With a passphrase the file is encrypted.
    """
    forms, key_path = _serialization(), Path(path)
    key = _ed25519().Ed25519PrivateKey.generate()
    locked = forms.NoEncryption()
    if passphrase is not None:
        locked = forms.BestAvailableEncryption(_encode(passphrase))
    content = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, locked)
    public = _public_text(key)
    try:
        with appearing(key_path) as part:
            part.write_bytes(content)
    except FileExistsError:
        raise BadUsage(
            f"{key_path} exists already, and a key is never overwritten: what it signed could not "
            f"be signed again. Choose another name, or show its public key with --show."
        ) from None
    try:
        write_text(key_path.with_name(f"{key_path.name}.pub"), f"{public}\n", private=False)
    except BaseException:
        key_path.unlink()  # nobody has seen it yet
        raise
    return public


def _encode(passphrase: str | None) -> bytes:
    if not passphrase:
        raise BadUsage("this key has a passphrase; give it in a file: --passphrase-file FILE")
    return passphrase.encode()


def read_passphrase(path: Path | None) -> str | None:
    """Return the first line of a file, if there is one."""
    if path is None:
        return None
    try:
        return (path.read_text("utf-8").splitlines() or [""])[0]
    except UnicodeDecodeError:
        raise BadUsage(f"{path} is not a text in UTF-8, so that it holds no passphrase.") from None


def read_key(path: str | PathLike[str], passphrase: str | None = None) -> Any:
    """Return the signing key in a file that `write_key` made."""
    wrong = BadUsage(f"{path} holds no signing key. Make one with 'discreet steward key {path}'.")
    try:
        content = Path(path).read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        raise wrong from None
    forms, word = _serialization(), None
    if b"ENCRYPTED" in content.partition(b"\n")[0]:
        wrong = BadUsage(f"{path}: this is not the passphrase of the key.")
        word = _encode(passphrase)
    try:
        key = forms.load_pem_private_key(content, password=word)
    except (TypeError, ValueError):
        raise wrong from None
    if not isinstance(key, _ed25519().Ed25519PrivateKey):
        raise wrong
    return key


def read_public(path: str | PathLike[str], passphrase: str | None = None) -> str:
    """Return the public key of a file with a signing key."""
    return _public_text(read_key(path, passphrase))


def sign(
    path: str | PathLike[str], content: bytes, passphrase: str | None = None
) -> tuple[str, str]:
    """Return the public key and the signature of some content."""
    key = read_key(path, passphrase)
    return _public_text(key), key.sign(content).hex()


def is_signed(public: str, content: bytes, signature: str) -> bool:
    """Say whether a signature is that of a public key under this very content."""
    if not _SIGNATURE.fullmatch(signature) or not _PUBLIC.fullmatch(public):
        return False
    invalid = _load("exceptions").InvalidSignature
    raw = bytes.fromhex(public.removeprefix(PREFIX))
    try:
        _ed25519().Ed25519PublicKey.from_public_bytes(raw).verify(bytes.fromhex(signature), content)
    except (invalid, ValueError):
        return False
    return True


def check_public(text: str) -> str:
    """Return a public key, or refuse what is none."""
    public_key = text.strip().lower() if isinstance(text, str) else text
    if not isinstance(public_key, str) or not _PUBLIC.fullmatch(public_key):
        raise BadUsage(
            f"a public key is written as {PREFIX} and 64 hexadecimal digits, as 'discreet "
            f"steward key' prints it; found {text!r}"
        )
    return public_key


def find_public(source: str) -> str:
    """Return a public key that is given as text, or as the file that holds it."""
    path = Path(source)
    if source.startswith(PREFIX) or not path.is_file():
        return check_public(source)
    try:
        return check_public(path.read_text(encoding="utf-8"))
    except (BadUsage, UnicodeDecodeError):
        raise BadUsage(f"{path} holds no public key, which ends in .pub.") from None


def make_fingerprint(public: str) -> str:
    """Return the fingerprint of a public key."""
    raw = bytes.fromhex(public.removeprefix(PREFIX))
    return hashlib.sha256(raw).hexdigest()[:32]


def _public_text(key: Any) -> str:
    forms = _serialization()
    raw = key.public_key().public_bytes(forms.Encoding.Raw, forms.PublicFormat.Raw)
    return f"{PREFIX}{raw.hex()}"


# --- requests -------------------------------------------------------------------------------------

FORMAT = "discreet request 1"


@dataclass(frozen=True)
class ExactDecimal:
    """A text is a number as :func:`write_decimal` writes it."""

    def complain(self, value: str, _: Scope) -> str:
        """Return what is wrong with a value; empty if nothing is."""
        is_decimal = len(value) < LONGEST and _DECIMAL.fullmatch(value)
        return "" if is_decimal else "which is no exact decimal"


#: Characters of a decimal: those of the smallest number that a computer has are fewer.
LONGEST = 800
_DECIMAL = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
Number = Annotated[str, ExactDecimal()]
#: A value in a request; see :func:`pack`.
Packed = str | bool | int | None | Mapping[Literal["decimal"], Number]
COMMON = {"format": str, "purpose": str, "ledger": str, "nonce": str, "date": str}
#: What a request holds, by what it is for; all of it, and nothing else.
TERMS: dict[str, PlainDict] = {
    "release": {
        "kind": Literal["answers", "comparisons"],
        "items": Annotated[tuple[str, ...], AtLeast(1), Distinct()],
        "steps": Annotated[tuple[Annotated[int, Within(1, 99)], ...], Along("items")],
        "lowest": int,
        "forms": tuple[tuple[str, ...], ...],
        "design": str,
        "centre": tuple[int, ...],
        "centre_from": str,
        "group_column": str,
        "groups": tuple[str, ...],
        "model": str,
        "reading": PlainMapping,
        "max_answers": Count,
        "persons": Count | None,
        "epsilon": Number,
        "delta": Number,
        "neighbours": str,
        "mechanism": str,
        "population": str,
        "ledger_file": str,
        "about": Mapping[Literal["identity", "audit"], Mapping[str, Packed]],
        "estimator": Estimator,
        "chosen_by": Chooser,
        "looked": bool,
    },
    "approver": {"name": str, "public_key": str, "retires": bool},
}


@dataclass(frozen=True)
class RightAnswers:
    """The key of a test, as it stands in a request."""

    by_item: Mapping[str, tuple[str, ...]]
    in_order: tuple[tuple[str, ...], ...]


_TABLE = {"repeats": Kept, "sheet": str | tuple[str, ...], "delimiter": str, "header": bool}
#: Keywords of the reader of each kind, as a request holds them: each has one form.
READING: dict[str, PlainDict] = {
    "answers": {
        **_TABLE,
        **dict.fromkeys(("person", "item", "response", "order_by", "filter"), str),
        **dict.fromkeys(("ignore", "group", "reverse"), tuple[str, ...]),
        "layout": TableLayout,
        "one_means": OneMeans,
        "at_least": int | Mapping[Literal["decimal"], Number],
        "missing": Mapping[str, tuple[str, ...]],
        "key": RightAnswers,
        "skip_rows": Count,
        "invalid": Invalid,
    },
    "comparisons": {
        **_TABLE,
        **dict.fromkeys(("judge", "winner", "loser", "left", "right", "outcome"), str),
        "ties": Literal["error", "drop"],
        "one_means": WinnerSide,
        "unit": PrivacyUnit,
    },
}


#: What a release's order in the ledger says in the same words.
IN_ORDER = (
    *("kind", "items", "steps", "forms", "design", "lowest", "max_answers"),
    *("estimator", "chosen_by", "looked"),
)


@dataclass(frozen=True)
class Signature:
    """One signature: the key that made it, and the signature itself, in hexadecimal digits."""

    public_key: str
    signature: str


@dataclass(frozen=True)
class Asked:
    """What a policy looks at. ``persons`` is the number declared in advance, or None."""

    epsilon: float
    delta: float
    neighbours: str
    mechanism: str
    persons: int | None


@dataclass(frozen=True)
class Request:
    """What shall be done, and who has signed it so far.

    Attributes
    ----------
    body
        What is signed: the ledger, everything that is public, a number used once, a date.
    signatures
        Of the approvers.
    """

    body: PlainMapping
    signatures: tuple[Signature, ...] = ()

    def __repr__(self) -> str:
        signed = f"{len(self.signatures)} signatures"
        return f"Request({self.body['purpose']}, {escape_controls(self.body['nonce'])}, {signed})"

    def __post_init__(self) -> None:
        _check_body(self.body)

    @property
    def content(self) -> bytes:
        """The one form of the body that is signed."""
        text = json.dumps(self.body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return f"{self.body['format']}\n{text}".encode()

    @property
    def digest(self) -> str:
        """The SHA-256 of what is signed, for people to compare."""
        return hashlib.sha256(self.content).hexdigest()

    def sign(self, signing_key: str | PathLike[str], passphrase: str | None = None) -> Request:
        """Return the request with one more signature."""
        signature = Signature(*sign(signing_key, self.content, passphrase))
        if any(one.public_key == signature.public_key for one in self.signatures):
            raise NotAllowed(
                f"the key {make_fingerprint(signature.public_key)} has signed this request "
                "already; another person's key is needed"
            )
        return replace(self, signatures=(*self.signatures, signature))

    def check_covers(self, terms: Asked, population: str, order: PlainMapping | None) -> None:
        """Refuse a charge for anything else than what was signed."""
        body = self.body
        charge = {
            "neighbours": terms.neighbours,
            "mechanism": terms.mechanism,
            "persons": terms.persons,
            "population": population,
            **({} if order is None else {name: order[name] for name in IN_ORDER}),
        }
        others = [name for name, value in charge.items() if body[name] != value]
        for name, value in (("epsilon", terms.epsilon), ("delta", terms.delta)):
            others += [name] * (Decimal(repr(value)) > Decimal(body[name]))
        if others:
            raise NotAllowed(f"this request is for another release: its {others[0]} is another")

    def to_dict(self) -> PlainDict:
        """Return plain values."""
        return {"request": dict(self.body), "signatures": [vars(one) for one in self.signatures]}

    @classmethod
    def from_dict(cls, values: PlainMapping) -> Request:
        """Rebuild a request from `to_dict`, or refuse what is none."""
        try:
            if values.keys() != {"request", "signatures"}:
                raise BadUsage("a request holds 'request' and 'signatures' and nothing else")
            signatures = read_as(tuple[Signature, ...], values["signatures"], "signatures")
            for signature in signatures:
                check_public(signature.public_key)
            return cls(values["request"], signatures)
        except (AttributeError, KeyError, TypeError, SchemaError) as error:
            raise BadUsage(f"this is not a request ({error})") from None

    def save(self, path: str | PathLike[str]) -> None:
        """Write the request to a file, whole or not at all, readable by its owner only."""
        text = json.dumps(self.to_dict(), indent=2, sort_keys=True, ensure_ascii=False)
        write_text(Path(path), f"{escape_json(text)}\n")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Request:
        """Read a request from a file; what was changed is found where signatures are checked."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (FileNotFoundError, IsADirectoryError):
            raise BadUsage(
                f"{path}: there is no request here. Write one with 'discreet steward propose'."
            ) from None
        except UnicodeDecodeError:
            raise BadUsage(f"{path} is not a request: it is no text in UTF-8.") from None
        try:
            values = json.loads(text, object_pairs_hook=_refuse_twice, parse_float=_refuse_float)
            return cls.from_dict(values)
        except (BadUsage, ValueError, RecursionError) as error:
            raise BadUsage(f"{path} is not a request: {error}.") from None


def list_request_fields(request: Request) -> list[str]:
    """Return the names of all fields of a request, in a fixed order."""
    return [*COMMON, *TERMS[request.body["purpose"]]]


def make_request(purpose: str, ledger: str, terms: PlainMapping) -> Request:
    """Return a new request, with a number of its own and the date."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    common = {"format": FORMAT, "purpose": purpose, "ledger": ledger, "date": now}
    return Request({**common, "nonce": random_bytes(16).hex(), **terms})


def as_request(source: Request | str | PathLike[str]) -> Request:
    """Return a request that may be given as a file."""
    return source if isinstance(source, Request) else Request.load(source)


def approve(
    request: Request | str | PathLike[str],
    signing_key: str | PathLike[str],
    *,
    passphrase: str | None = None,
) -> Request:
    """Return a request with one more signature, and write it where a file was given.

    Read the request before: ``request.body`` is what is signed.

    Parameters
    ----------
    request
        A request, or the file that holds one.
    signing_key
        The file with a signing key, from ``discreet steward key``.
    passphrase
        Of the key, where it has one.

    Examples
    --------
    >>> import tempfile
    >>> import discreet
    >>> folder = tempfile.TemporaryDirectory()
    >>> key = folder.name + "/ada.key"
    >>> write_key(key).startswith("ed25519:")
    True
    >>> ledger = discreet.Ledger.create(folder.name + "/spent.db", epsilon=1.0)
    >>> request = discreet.propose(epsilon=0.5, items=["a", "b", "c"], ledger=ledger)
    >>> len(discreet.approve(request, key).signatures)
    1
    >>> folder.cleanup()
    """
    signed = as_request(request).sign(signing_key, passphrase)
    if not isinstance(request, Request):
        signed.save(request)
    return signed


def write_decimal(number: float) -> str:
    """Return a number as its one exact decimal.

    Examples
    --------
    >>> write_decimal(1e-06), write_decimal(1.0), write_decimal(0.1)
    ('0.000001', '1', '0.1')
    """
    return format(Decimal(repr(number)).normalize(), "f")


def pack(value: object) -> Any:
    """Return plain values without floating-point numbers."""
    if isinstance(value, float):
        return {"decimal": write_decimal(value)}
    if isinstance(value, Mapping):
        return {name: pack(one) for name, one in value.items()}
    return [pack(one) for one in value] if isinstance(value, list | tuple) else value


def unpack(value: object) -> Any:
    """Return the values that `pack` was given."""
    if isinstance(value, Mapping):
        if value.keys() == {"decimal"}:
            return float(value["decimal"])
        return {name: unpack(one) for name, one in value.items()}
    return [unpack(one) for one in value] if isinstance(value, list) else value


def _check_body(body: PlainMapping) -> None:
    """Refuse a body that holds less, more or other than a request does."""
    if body.get("format") != FORMAT:
        raise BadUsage(f"its format is {body.get('format')!r}, this version reads {FORMAT!r}")
    terms = TERMS.get(str(body.get("purpose")))
    if terms is None:
        raise BadUsage(f"it is for {body.get('purpose')!r}, which no request is for")
    _check_plain(body)
    try:
        read_fields({**COMMON, **terms}, body, "its body")
        if "reading" in body:
            words = READING[body["kind"]]
            read_fields(words, body["reading"], "its reading", optional=tuple(words))
    except SchemaError as error:
        raise BadUsage(str(error)) from None


def _check_plain(value: object) -> None:
    """Refuse what has no one way to be written."""
    if isinstance(value, Mapping):
        for name, entry in value.items():
            _check_plain(name)
            _check_plain(entry)
    elif isinstance(value, list):
        for entry in value:
            _check_plain(entry)
    elif isinstance(value, str):
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise BadUsage(f"{value!r} is no text")
    elif value is not None and not isinstance(value, int):
        raise BadUsage(f"{value!r} is no text, no whole number, no list and no mapping")


def _refuse_twice(pairs: list[tuple[str, object]]) -> PlainDict:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("a name stands there twice")
    return mapping


def _refuse_float(text: str) -> NoReturn:
    raise ValueError(f"it holds the floating-point number {text}; exact decimals are text")
