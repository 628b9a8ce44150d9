"""The pages about commands keep their word: the reference lists all, every example is real."""

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
        elif not command.hidden:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands(get_command(app)))


def section(name):
    """The part of the page about a command, with the parts that every command shares."""
    text = PAGE.read_text()
    parts = re.split(r"^##+ ", text, flags=re.M)
    family = f"discreet {name.split()[0]}\n"
    wanted = ("Everywhere", "Reading answers", family, f"discreet {name}\n")
    return "\n".join(part for part in parts if part.startswith(wanted))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name):
    text = section(name)
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
        (ReadingOptions, ["fit", "result report", "top", "score", "dif", "table counts"]),
        (ReleaseReading, ["release", "steward propose", "fit"]),
        (Limits, ["release", "table counts", "ledger resume"]),
        (Columns, ["compare rank", "compare release", "ledger resume"]),
        (ReleaseTerms, ["release", "compare release"]),
        (DeliveryOptions, ["release", "compare release", "ledger resume"]),
    ],
)
def test_a_group_of_options_is_whole_in_every_command_that_has_it(group, names):
    wanted = {one.name for one in fields(group)}
    for name in names:
        assert wanted <= {one.name for one in COMMANDS[name].params}


TOP = (
    "demo fit check top score dif leaderboard link drift plan release verify audit ledger studio "
    "simulate"
)


def test_sixteen_commands_are_at_the_top_beside_families():
    shown = {name for name, one in get_command(app).commands.items() if not one.hidden}
    assert shown == {*TOP.split(), "steward", "table", "result", "bank", "compare"}


def test_the_help_of_a_release_is_short_and_names_what_is_required_first():
    text = discreet("release", "--help").out
    options = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.M)
    assert len(options) <= 44
    assert options[:4] == ["--items", "--epsilon", "--ledger", "--out"]
    assert not {"--steps", "--merge", "--title", "--design"} & {*options}
    panels = re.findall(r"^([A-Z][\w ]+):$", text, re.M)
    assert panels[:2] == ["Arguments", "Required"]
    assert {"Study", "Guarantee and identity", "Reading the file", "Output"} <= {*panels}


@pytest.mark.parametrize("name", ["release", "steward propose", "audit"])
def test_a_release_and_a_study_design_have_words_of_their_own(name):
    assert "--item-selection" in discreet(*name.split(), "--help").out
    assert "--design" not in discreet(*name.split(), "--help").out


@pytest.mark.parametrize("name", ["dif", "fit", "result report", "top"])
def test_every_method_is_named_in_help_and_page(name):
    (option,) = [option for option in COMMANDS[name].params if option.name == "method"]
    for method in METHODS:
        assert re.search(rf"\b{method}\b", option.help)
        assert re.search(rf"\b{method}\b", section("fit"))


@pytest.mark.parametrize("name", [name for name in PAGES_WITH_OUTPUT if name != WORKFLOW])
def test_every_example_is_what_the_program_prints(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    type_page(DOCS / name)


# The studio runs until it is stopped; its page has pictures instead.
@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"studio"}))
def test_every_command_is_shown_at_work_on_some_page(name):
    pages = "\n".join((DOCS / page).read_text() for page in PAGES_WITH_OUTPUT)
    assert re.search(rf"^\$ discreet {name}\b", pages, re.M), name
