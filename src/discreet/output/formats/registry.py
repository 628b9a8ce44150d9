"""A draft for the OpenDP registry of privacy deployments.

In: the facts of a release. Out: YAML text with the fields of that registry; what only the
steward can know is left as a marked blank. Contains nothing that is not in ``privacy.json``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.privacy.accounting.budget import Neighbours
from discreet.results.kinds import find_kind

RELATIONS = {
    Neighbours.REPLACE_ONE: "change-one distance: one {person}'s {answers} differ, the number of "
    "{person}s is public",
    Neighbours.ADD_REMOVE: "symmetric distance: one {person} is added or removed",
}


MODELS = {"none": "Local", "trusted": "Shuffle"}
"""Whom the guarantee holds against, by who shuffles randomised answers."""


def write_registry_entry(record: Mapping[str, Any]) -> str:
    """Return the YAML draft for a release, from its privacy record."""
    guarantee, kind = record["guarantee"], find_kind(record)
    relation = RELATIONS[Neighbours(guarantee["neighbours"])]
    fields: dict[str, Any] = {
        "status": "Draft" if guarantee["is_private"] else "NOT PRIVATE: not to be registered",
        "deployment": {
            "product": {
                "name": "TO FILL IN: name of the test or data set",
                "data_curators": ["TO FILL IN"],
                "intended_use": kind.use,
                "data_product_type": "Summary statistics",
                "data_product_region": "TO FILL IN",
                "description": f"{kind.numbers.capitalize()} of {len(record['items'])} "
                f"{kind.items} in logits, with standard errors that include the privacy noise",
                "publication_date": "TO FILL IN",
                "data_product_sector": "TO FILL IN",
            },
            "dp_flavor": {
                "name": "Approximate DP" if guarantee["delta"] else "Pure DP",
                "input_metric": relation.format_map(vars(kind)),
                "bound_on_input_distance": "1",
                "data_domain": kind.domain,
                "unprotected_quantities": _unprotected(record),
            },
            "privacy_loss": {
                "privacy_unit": "Person-level",
                "privacy_unit_description": guarantee["unit"],
                "privacy_parameters": _parameters(guarantee),
                "privacy_parameters_description": " ".join(guarantee["conditions"])
                or "Holds as stated, without further conditions.",
            },
            "model": {
                "model_name": MODELS.get(record["settings"].get("shuffler"), "Central"),
                "release_type": "One release",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "composition": guarantee["ledger_note"],
                "post_processing": f"Estimation of {kind.numbers} from the noisy values",
            },
            "implementation": {
                "mechanisms": f"{record['mechanism']}, {guarantee['noise']}; {record['software']}",
                "justification": "TO FILL IN: how epsilon, delta, the cap and the items were "
                "chosen, before looking at the data",
            },
        },
    }
    return "\n".join(_yaml(fields)) + "\n"


def _parameters(guarantee: Mapping[str, Any]) -> dict[str, Any]:
    names = ("epsilon", "delta", "rho")
    return {name: guarantee[name] for name in names if guarantee[name] is not None}


def _unprotected(record: Mapping[str, Any]) -> str:
    kind = find_kind(record)
    cap = f"the cap of {record[kind.cap]} {kind.answers} per {kind.person}"
    known = [f"the list of {kind.items}", cap]
    if record[kind.persons] is not None:
        known.append(f"the number of {kind.persons}")
    if "shuffler" in record["settings"]:
        known.append(f"the pattern of answered {kind.items} of each {kind.person}")
    return ", ".join(known)


def _yaml(value: Any, indent: int = 0) -> list[str]:
    """Write nested mappings, lists of strings and scalars; all this file needs of YAML."""
    pad = " " * indent
    lines = []
    for key, entry in value.items():
        if isinstance(entry, Mapping):
            lines += [f"{pad}{key}:", *_yaml(entry, indent + 2)]
        elif isinstance(entry, list):
            lines += [f"{pad}{key}:", *(f"{pad}  - {_scalar(one)}" for one in entry)]
        else:
            lines.append(f"{pad}{key}: {_scalar(entry)}")
    return lines


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return format(value, "g") if isinstance(value, float) else str(value)
