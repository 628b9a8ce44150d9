"""docs/cli.md keeps its word: every command and option is there, every example is real.

So are the examples of the other pages that show what the program prints.
"""

import re
from dataclasses import fields
from pathlib import Path

import pytest
from typer.main import get_command

from commandline import PAGES_WITH_OUTPUT, WORKFLOW, discreet, type_page
from discreet.cli.answers import Columns, Limits, ReadingOptions, ReleaseReading
from discreet.cli.app import app
from discreet.cli.options import Everywhere
from discreet.cli.release import DeliveryOptions, ReleaseTerms
from discreet.models.methods import METHODS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "cli.md"


def commands(group, path=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands(get_command(app)))


def section(name):
    """The part of the page about a command, with the parts that every command shares."""
    text = PAGE.read_text()
    parts = re.split(r"^##+ ", text, flags=re.M)
    wanted = ("Everywhere", "Reading answers", f"discreet {name.split()[0]}\n")
    return "\n".join(part for part in parts if part.startswith(wanted))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name):
    text = section(name)
    assert f"discreet {name}" in text
    for parameter in COMMANDS[name].params:
        for option in (*parameter.opts, *parameter.secondary_opts):
            if option.startswith("-"):
                assert re.search(rf"`{re.escape(option)}\b", text), f"{name} {option}"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_says_what_it_is_for(name):
    ended = discreet(*name.split(), "--help")
    assert ended.code == 0
    for parameter in COMMANDS[name].params:
        assert parameter.help, f"{name} {parameter.name}"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_every_command(name):
    words = name.split()
    for depth, word in enumerate(words):
        ended = discreet(*words[:depth], "--help")
        assert ended.code == 0
        assert re.search(rf"^  {word}  +\w", ended.out, re.M)


@pytest.mark.parametrize(
    ("group", "names"),
    [
        (Everywhere, COMMANDS),
        (ReadingOptions, ["fit", "report", "top", "score", "dif", "counts", "ledger resume"]),
        (ReleaseReading, ["release", "propose", "fit"]),
        (Limits, ["release", "counts", "ledger resume"]),
        (Columns, ["compare rank", "compare release", "ledger resume"]),
        (ReleaseTerms, ["release", "compare release"]),
        (DeliveryOptions, ["release", "compare release", "ledger resume"]),
    ],
)
def test_a_group_of_options_is_whole_in_every_command_that_has_it(group, names):
    wanted = {one.name for one in fields(group)}
    for name in names:
        assert wanted <= {one.name for one in COMMANDS[name].params}


@pytest.mark.parametrize("name", ["dif", "fit", "report", "top"])
def test_every_method_is_named_in_help_and_page(name):
    (option,) = [option for option in COMMANDS[name].params if option.name == "method"]
    for method in METHODS:
        assert re.search(rf"\b{method}\b", option.help)
        assert f"`{method}`" in section("fit")


@pytest.mark.parametrize("name", [name for name in PAGES_WITH_OUTPUT if name != WORKFLOW])
def test_every_example_is_what_the_program_prints(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    type_page(DOCS / name)
