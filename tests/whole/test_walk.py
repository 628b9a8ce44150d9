"""The tool that shows a newcomer the way of a command through the library."""

from tools.structure import Walk, follow, package

from commandline import discreet


def test_the_way_of_a_command_is_the_modules_it_calls_in_order(tmp_path):
    file = tmp_path / "answers.csv"
    file.write_text("a,b\n1,0\n0,1\n1,0\n")
    walk = follow(lambda: discreet("fit", file))
    assert package(walk.modules[0]) == "cli"
    assert len({package(module) for module in walk.modules}) > 3
    found = walk.describe().splitlines()[-1]
    assert found.startswith(f"{len(walk.modules)} modules, {len(walk.switches)} package switches")


def test_only_calls_between_packages_are_switches():
    walk = Walk({("cli.fit", "cli.output"): None, ("cli.fit", "models.refined"): None})
    assert walk.switches == [("cli.fit", "models.refined")]
