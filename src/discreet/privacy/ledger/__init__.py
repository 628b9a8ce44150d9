"""The ledger: what has been spent on one population, in one SQLite file."""

from discreet.privacy.ledger.book import Ledger
from discreet.privacy.ledger.file import MissingLedger, fingerprint_rows
from discreet.privacy.ledger.history import EVERYONE, Entry

__all__ = ["EVERYONE", "Entry", "Ledger", "MissingLedger", "fingerprint_rows"]
