"""``discreet counts`` and ``discreet merge``: confidential pair counts, saved and added."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.answers import is_large, plan_reading, read_answers
from discreet.cli.options import AsJson, Force, Reading, Shared, command
from discreet.cli.output import note, print_json, say
from discreet.cli.writing import check_writable
from discreet.errors import BadUsage

if TYPE_CHECKING:
    from discreet.counts import PairCounts
    from discreet.engines.outofcore import Progress

__all__ = ["add_to"]

GIGABYTE = 1e9

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A file, folder or pattern, a database (FILE::TABLE, postgresql://...::TABLE), or a "
        "query.",
    ),
]
Files = Annotated[list[Path], typer.Argument(metavar="FILES", help="Files of counts.")]
OutFile = Annotated[
    Path, typer.Option("--out", metavar="FILE", help="Where the counts go (confidential).")
]
Engine = Annotated[
    str, typer.Option(metavar="NAME", help="auto (the default), memory or duckdb (any size).")
]
Memory = Annotated[
    float, typer.Option(metavar="GB", help="Out of core: memory for answers, in GB (default 1).")
]
Spill = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Out of core: where to put what does not fit."),
]
Kept = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Out of core: keep partial counts, and go on from them if stopped."
    ),
]


def counts(
    source: Source,
    *,
    out: OutFile,
    engine: Engine = "auto",
    memory: Memory = 1.0,
    spill: Spill = None,
    checkpoint: Kept = None,
    force: Force = False,
    as_json: AsJson = False,
    reading: Reading,
    shared: Shared,
) -> None:
    """Count pairs of answers of any size and save them. The file is confidential."""
    check_writable(out.parent, [out.name], force=force)
    if engine not in ("auto", "memory", "duckdb"):
        raise BadUsage(f"there is no engine {engine!r} here; choose auto, memory or duckdb")
    if _goes_out_of_core(source, engine, checkpoint, reading):
        from discreet.engines.outofcore import Resources, count_source

        with _counting(quiet=shared.quiet) as progress:
            found = count_source(
                source,
                reading=plan_reading(reading),
                resources=Resources(memory=int(memory * GIGABYTE), spill=spill),
                checkpoint=checkpoint,
                progress=progress,
            )
    else:
        from discreet.engines import count_pairs

        found = count_pairs(read_answers(source, reading, quiet=shared.quiet), engine="memory")
    _save(found, out, as_json=as_json, quiet=shared.quiet)


def merge(
    files: Files, *, out: OutFile, force: Force = False, as_json: AsJson = False, shared: Shared
) -> None:
    """Add counts of different persons: shards, days, institutions. Stays confidential."""
    from discreet.counts import PairCounts, merge_counts

    check_writable(out.parent, [out.name], force=force)
    twice = [file for file in files if sum(file.resolve() == one.resolve() for one in files) > 1]
    if twice:
        raise BadUsage(f"{twice[0]} is named twice; its persons would be counted twice")
    merged = merge_counts(PairCounts.load(file) for file in files)
    _save(merged, out, as_json=as_json, quiet=shared.quiet)


def _goes_out_of_core(source: str, engine: str, checkpoint: Path | None, reading: Reading) -> bool:
    if engine != "auto":
        return engine == "duckdb"
    return checkpoint is not None or is_large(source, reading)


def _save(found: PairCounts, out: Path, *, as_json: bool, quiet: bool) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    found.save(out)
    document = {
        "persons": found.persons,
        "items": len(found.items),
        "answers": int(found.answers.sum()),
        "pairs": int(found.right_wrong.sum()),
        "out": str(out),
    }
    if as_json:
        print_json(document)
        return
    say(
        f"{document['persons']:,} persons, {document['items']:,} items, "
        f"{document['answers']:,} answers, {document['pairs']:,} pairs of right and wrong"
    )
    note(f"Wrote {out} (confidential)", quiet=quiet)


@contextmanager
def _counting(*, quiet: bool) -> Iterator[Any]:
    """Yield a callback that shows rows, rate and time left on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("Counting") as status:
        yield lambda now: status.update(_describe(now))


def _describe(now: Progress) -> str:
    left = "" if now.seconds_left == float("inf") else f", about {now.seconds_left:,.0f} s left"
    return f"Counting: {now.rows:,} of {now.total:,} rows, {now.rate:,.0f} a second{left}"


def add_to(app: typer.Typer) -> None:
    """Make ``counts`` and ``merge`` commands of ``app``."""
    command(app, "counts")(counts)
    command(app, "merge")(merge)
