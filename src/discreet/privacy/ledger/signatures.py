"""Signatures of approvers: Ed25519, from the package ``cryptography`` (extra ``approvals``).

In: bytes and a key. Out: text that goes into JSON files. A public key is written as ``ed25519:``
and 64 hexadecimal digits; its fingerprint, for people to compare, is 32 digits of its SHA-256.
"""

from __future__ import annotations

import hashlib
import re
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from discreet.atomic import appearing, write_text
from discreet.errors import BadUsage, MissingExtra

PREFIX = "ed25519:"
_PUBLIC = re.compile(rf"{PREFIX}[0-9a-f]{{64}}")
_SIGNATURE = re.compile(r"[0-9a-f]{128}")


def _load(name: str) -> Any:
    """Return a module of the library with the signatures."""
    try:
        return import_module(f"cryptography.{name}")
    except ImportError:
        raise MissingExtra("approving releases", "approvals") from None


def _ed25519() -> Any:
    return _load("hazmat.primitives.asymmetric.ed25519")


def _serialization() -> Any:
    return _load("hazmat.primitives.serialization")


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
        raise BadUsage("this key has a passphrase: give --passphrase-file FILE, and not empty")
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
