"""The draft for the OpenDP registry of deployments fits the registry's schema.

Facts about the schema as of 15 July 2026, from the repository opendp/deployments-registry-data on
GitHub (branch main, commit 3e9c812, schemas/deployments-schema.yaml): which fields an entry may
have, which it must have, which words they take. Branches that move fields again were open then.
"""

from datetime import date

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from commandline import LSAT_ITEMS
from discreet.datasets import lsat
from discreet.privacy.accounting import Budget
from discreet.privacy.ledger import Ledger
from discreet.privacy.mechanisms.response import RandomizedResponse
from discreet.privacy.noise import ExactNoise
from discreet.report.public import write_registry_entry
from discreet.secure import SeededSource
from refusals import refused

yaml = pytest.importorskip("yaml")

TEXT, NUMBER, DATE, TEXTS = "text", "number", "date", "texts"
SECTIONS = {
    "basic": {
        "name": TEXT,
        "data_curators": TEXTS,
        "intended_use": TEXT,
        "data_product_type": {"Summary statistics", "Machine learning model", "Dataset",
                              "Synthetic data", "Interactive API", "SQL queries"},
        "data_product_region": TEXT,
        "description": TEXT,
        "publication_date": DATE,
        "data_product_sector": {"Technology", "Healthcare", "Education", "Government", "Energy",
                                "Finance"},
    },
    "dp_variant": {
        "variant_name": {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
        "data_domain": TEXT,
        "unprotected_quantities": TEXT,
    },
    "privacy_loss": {
        "privacy_unit": TEXT,
        "privacy_unit_details": TEXT,
        "privacy_parameters": {"epsilon": NUMBER, "delta": NUMBER, "rho": NUMBER},
        "privacy_parameters_details": TEXT,
    },
    "deployment_model": {
        "model_name": {"Local", "Central", "Shuffle", "Federated", "Varies"},
        "model_name_details": TEXT,
        "actors": TEXT,
        "release_type": {"One release", "Many releases"},
        "release_type_details": TEXT,
        "data_source_type": {"Static", "Dynamic"},
        "data_source_type_details": TEXT,
        "access_type": {"Interactive", "Non-interactive"},
        "access_type_details": TEXT,
    },
    "accounting": {"post_processing": TEXT, "composition": TEXT},
    "implementation": {
        "preprocessing_and_hyperparameter_tuning": TEXT,
        "mechanisms": TEXT,
        "justification": TEXT,
    },
    "administrative": {"sources": TEXT, "notes": TEXT, "registry_authors": TEXTS},
}  # fmt: skip
"""The fields of a deployment; there may be no others."""
ENTRY = {
    "url_slug": TEXT,
    "status": {"Converted", "Draft", "Pending", "Changes Required", "Approved",
               "Approved (Update Requested)", "Approved (Pending)"},
    "tier": {1, 2, 3},
    "deployment": SECTIONS,
}  # fmt: skip
REQUIRED = {
    "": {"url_slug", "status", "tier", "deployment"},
    "deployment": {"basic"},
    "deployment.basic": {*SECTIONS["basic"]} - {"data_product_sector"},
    "deployment.administrative": {"registry_authors"},
}


def is_date(value):
    try:
        return isinstance(value, str) and date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


FITS = {
    TEXT: lambda value: isinstance(value, str),
    NUMBER: lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    DATE: is_date,
    TEXTS: lambda value: bool(value) and all(isinstance(one, str) for one in value),
}


def find_problems(entry, wanted=ENTRY, path=""):
    """Return what the registry's check would report."""
    missing = REQUIRED.get(path, set()) - {*entry}
    problems = [f"{path}: {name} is missing" for name in sorted(missing)]
    for name, value in entry.items():
        where = f"{path}.{name}".strip(".")
        kind = wanted.get(name)
        if kind is None:
            problems.append(f"{where} is not in the schema")
        elif isinstance(kind, dict):
            problems += find_problems(value, kind, where)
        elif not (value in kind if isinstance(kind, set) else FITS[kind](value)):
            problems.append(f"{where} is {value!r}")
    return problems


def entry_of(**options):
    settled = {"items": LSAT_ITEMS, "budget": Budget(1.0), **options}
    made = discreet.release(lsat(), settled.pop("budget"), **settled)
    return made.record, yaml.safe_load(write_registry_entry(made.record))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"budget": Budget(0.00001, 1e-9)},
        {"budget": Budget(1.0, 0.0), "mechanism": "laplace-pairs"},
        {"budget": Budget(1.0, 0.0), "mechanism": RandomizedResponse()},
        {"mechanism": "totals", "budget": Budget(1.0, 1e-6, "add-remove")},
        {"persons": 1200},
        {"about": {"title": "A", "version": "1", "supersedes": "0", "reason": "Key"}},
    ],
)
def test_a_draft_fits_the_schema(options):
    record, entry = entry_of(**options)
    assert find_problems(entry) == []
    assert (entry["status"], entry["tier"]) == ("Draft", 3)
    told = entry["deployment"]["privacy_loss"]["privacy_parameters"]
    assert told == {
        name: record["guarantee"][name]
        for name in ("epsilon", "delta", "rho")
        if record["guarantee"][name] is not None
    }


def test_a_draft_of_a_ranking_fits_it_too():
    votes = [(f"j{judge}", *pair) for judge in range(40) for pair in (("a", "b"), ("b", "c"))]
    data = pd.DataFrame(votes, columns=["judge", "winner", "loser"])
    told = {"items": ["a", "b", "c"], "max_comparisons": 2}
    made = discreet.release_comparisons(data, Budget(1.0), **told)
    entry = yaml.safe_load(write_registry_entry(made.record))
    assert find_problems(entry) == []
    assert entry["deployment"]["privacy_loss"]["privacy_unit"] == "Judge-level"


def test_what_the_record_and_the_ledger_know_is_filled_in(tmp_path):
    about = {"title": "Größe, Klasse 4", "version": "2.1", "body": "Amt", "date": "2026-11-16"}
    book = Ledger.create(tmp_path / "spent.db", 3.0)
    record, entry = entry_of(about=about, ledger=book)
    told = entry["deployment"]
    assert find_problems(entry) == []
    assert entry["url_slug"] == "grosse_klasse_4_2_1"
    assert told["basic"]["name"] == "Größe, Klasse 4"
    assert told["basic"]["data_curators"] == told["administrative"]["registry_authors"] == ["Amt"]
    assert told["basic"]["publication_date"] == "2026-11-16"
    assert book.id in told["administrative"]["notes"]
    assert "the ledger's limit of epsilon 3" in told["accounting"]["composition"]
    assert "is epsilon 3." in told["deployment_model"]["release_type_details"]
    assert record["choice"] in told["implementation"]["justification"]
    assert "discreet " in told["implementation"]["mechanisms"]


def test_what_only_the_steward_knows_is_marked(tmp_path):
    discreet.release(lsat(), Budget(1.0), items=LSAT_ITEMS, out=tmp_path / "out")
    text = (tmp_path / "out" / "registry.yaml").read_text("utf-8")
    for name in ("name", "data_product_region", "# publication_date", "# data_product_sector",
                 "actors", "release_type_details", "justification", "sources"):  # fmt: skip
        (line,) = [line for line in text.splitlines() if line.strip().startswith(f"{name}:")]
        assert "TO FILL IN" in line


def test_a_release_with_noise_for_tests_cannot_be_registered():
    _, entry = entry_of(noise=ExactNoise(SeededSource(1)))
    assert find_problems(entry) == ["status is 'NOT PRIVATE: not to be registered'"]


@pytest.mark.parametrize("wrong", ["20261116", "2026-W46-1", "16.11.2026", "2026-11-31"])
def test_only_dates_that_the_registry_takes_are_dates_of_a_release(wrong):
    with refused(discreet.errors.BadUsage, "date_release_written_found"):
        discreet.release(lsat(), Budget(1.0), items=LSAT_ITEMS, about={"date": wrong})


@pytest.fixture(scope="module")
def record():
    return entry_of()[0]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(title=st.text(min_size=1), body=st.text(min_size=1))
def test_any_title_is_a_text_of_the_entry_and_no_markup(record, title, body):
    """The registry shows all texts as Markdown with formulas."""
    said = {"title": title, "body": body}
    entry = yaml.safe_load(write_registry_entry({**record, "identity": said}))
    assert find_problems(entry) == []
    name = entry["deployment"]["basic"]["name"]
    assert not {*"<>[]$\\`"} & {*name}
