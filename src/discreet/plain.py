"""Types of plain values by name, as JSON and TOML hold them; who reads them checks them."""

from collections.abc import Mapping
from typing import Any

PlainDict = dict[str, Any]
PlainMapping = Mapping[str, Any]
