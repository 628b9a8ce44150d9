"""``discreet counts`` and ``discreet merge``: confidential pair counts, saved and added."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.answers import (
    check_engine,
    goes_out_of_core,
    make_resources,
    plan_reading,
    read_answers,
)
from discreet.cli.options import AsJson, Force, Limits, Reading, Shared, command
from discreet.cli.output import counting_rows, note, print_json, say
from discreet.cli.writing import check_writable
from discreet.errors import BadUsage

if TYPE_CHECKING:
    from discreet.counts.table import PairCounts


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
    limits: Limits,
    checkpoint: Kept = None,
    force: Force = False,
    as_json: AsJson = False,
    reading: Reading,
    shared: Shared,
) -> None:
    """Count pairs of answers of any size and save them. The file is confidential."""
    check_writable(out.parent, [out.name], force=force)
    check_engine(limits)
    if goes_out_of_core(source, limits, reading) or _has_partial_counts(checkpoint, limits):
        from discreet.answers.streamed.counting import count_source

        with counting_rows("Counting", quiet=shared.quiet) as progress:
            found = count_source(
                source,
                reading=plan_reading(reading),
                resources=make_resources(limits),
                checkpoint=checkpoint,
                progress=progress,
            )
    else:
        from discreet.answers.opening import count_pairs

        found = count_pairs(read_answers(source, reading, quiet=shared.quiet), engine="memory")
    _save(found, out, as_json=as_json, quiet=shared.quiet)


def merge(
    files: Files, *, out: OutFile, force: Force = False, as_json: AsJson = False, shared: Shared
) -> None:
    """Add counts of different persons: shards, days, institutions. Stays confidential."""
    from discreet.counts.table import PairCounts, merge_counts

    check_writable(out.parent, [out.name], force=force)
    twice = [file for file in files if sum(file.resolve() == one.resolve() for one in files) > 1]
    if twice:
        raise BadUsage(f"{twice[0]} is named twice; its persons would be counted twice")
    merged = merge_counts(PairCounts.load(file) for file in files)
    _save(merged, out, as_json=as_json, quiet=shared.quiet)


def _has_partial_counts(checkpoint: Path | None, limits: Limits) -> bool:
    return checkpoint is not None and limits.engine == "auto"


def _save(found: PairCounts, out: Path, *, as_json: bool, quiet: bool) -> None:
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


def add_to(app: typer.Typer) -> None:
    """Make ``counts`` and ``merge`` commands of ``app``."""
    command(app, "counts")(counts)
    command(app, "merge")(merge)
