"""``discreet simulate``: answers from known parameters. ``discreet demo``: real ones, released.

Both are for trying things out, with data that nobody needs to protect.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final, Literal, cast

from discreet.atomic import CALIBRATION_FILES, check_place, staged
from discreet.cli.calibrations import print_calibration, write_calibration
from discreet.cli.options import AsJson, Force, Layout, flag, option
from discreet.cli.output import check_writable, conclude, print_json, say, working
from discreet.cli.release import print_release
from discreet.errors import BadUsage

if TYPE_CHECKING:
    from discreet.answers.responses import Responses
    from discreet.simulation import Simulation
    from discreet.types import DesignName, Model


SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")

#: Cells turned into text at a time: some tens of megabytes, whatever the number of persons.
CHUNK_CELLS = 1 << 22


def simulate(
    *,
    persons: Annotated[int, option("N", "How many persons.", min=1)],
    items: Annotated[int, option("M", "How many items.", min=1)],
    out: Annotated[
        Path,
        option("FILE", "The answers: .csv, .tsv (also .gz) or .parquet; the truth goes beside it."),
    ],
    answered: Annotated[
        float, option("P", "The share of the items that a person answers, 0 to 1.")
    ] = 1.0,
    design: Annotated[
        str,
        option("NAME", "Who gets which items: uniform, booklets, targeted, adaptive or two-stage."),
    ] = "uniform",
    steps: Annotated[
        int, option("K", "Answers are scores from 0 to K; 1 is right and wrong.", min=1)
    ] = 1,
    model: Annotated[
        Literal["auto", "rasch", "partial-credit", "rating-scale"],
        flag("partial-credit: every item has thresholds of its own. rating-scale: all the same."),
    ] = "auto",
    layout: Annotated[Layout, flag("One answer per row, or one column per item.")] = "long",
    seed: Annotated[
        int | None, option("S", "Random seed: the same seed draws the same answers.", min=0)
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Draw answers from known parameters. The difficulties and abilities go beside them."""
    suffix = _suffix(out)
    truth = out.name.removesuffix(suffix) + ".truth.json"
    names = (out.name, truth)
    check_writable(out.parent, names, force=force)
    with working("Drawing answers"):
        sample = _draw(persons, items, answered, design, seed, steps, model)
        with staged(out.parent, names, private=False) as stage:
            _write_answers(stage / out.name, sample.responses, suffix, layout)
            _write_truth(stage / truth, sample, {"seed": seed, "design": design})
    summary = {
        "answers": str(out),
        "truth": str(out.parent / truth),
        "persons": persons,
        "items": items,
        "n_answers": sample.responses.n_answers,
    }
    if as_json:
        print_json(summary)
        return
    say(f"Wrote {sample.responses.n_answers:,} answers to {out} ({layout})")
    parameters = "difficulties, thresholds" if steps > 1 else "difficulties"
    say(f"Wrote the {parameters} and abilities behind them to {out.parent / truth}")


def _suffix(out: Path) -> str:
    for suffix in SUFFIXES:
        if out.name.endswith(suffix) and out.name != suffix:
            return suffix
    raise BadUsage(
        f"--out {out}: the ending says how to write the answers, and it must be one of "
        f"{', '.join(SUFFIXES)}."
    )


def _draw(
    persons: int,
    items: int,
    answered: float,
    design: str,
    seed: int | None,
    steps: int,
    model: Model,
) -> Simulation:
    import numpy as np

    from discreet.simulation import simulate as draw

    design_name = cast("DesignName", design)  # another name is refused there
    rng = np.random.default_rng(seed)
    return draw(persons, items, answered, design=design_name, steps=steps, model=model, rng=rng)


def _write_truth(path: Path, sample: Simulation, setting: dict[str, Any]) -> None:
    responses = sample.responses
    document = {
        **setting,
        "difficulty": dict(zip(responses.items, sample.difficulty.tolist(), strict=True)),
        **({"thresholds": _list_thresholds(sample)} if sample.thresholds.shape[1] > 1 else {}),
        "ability": dict(zip(map(str, responses.persons), sample.ability.tolist(), strict=True)),
    }
    with path.open("w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")


def _list_thresholds(sample: Simulation) -> dict[str, list[float]]:
    pairs = zip(sample.responses.items, sample.thresholds.tolist(), strict=True)
    return {item: [value for value in row if value == value] for item, row in pairs}


def _write_answers(path: Path, responses: Responses, suffix: str, layout: Layout) -> None:
    batches = _long_batches(responses) if layout == "long" else _wide_batches(responses)
    if suffix == ".parquet":
        _write_parquet(path, batches)
    else:
        separator = "\t" if suffix.startswith(".tsv") else ","
        with path.open("wb") as raw:
            # No time stamp inside: the same seed gives the same bytes.
            stream = gzip.GzipFile("", "wb", 6, raw, 0) if suffix.endswith(".gz") else raw
            with closing(stream):
                _write_text(cast(BinaryIO, stream), batches, separator)


def _pieces(responses: Responses) -> Iterator[tuple[int, int]]:
    size = max(CHUNK_CELLS // max(responses.n_items, 1), 1)
    for start in range(0, responses.n_persons, size):
        yield start, min(start + size, responses.n_persons)


def _long_batches(responses: Responses) -> Iterator[Any]:
    import numpy as np
    import pyarrow as pa

    persons, items = pa.array(list(map(str, responses.persons))), pa.array(responses.items)
    for start, stop in _pieces(responses):
        rows = responses.rows(start, stop)
        person, item = np.nonzero(rows >= 0)
        yield pa.record_batch(
            {
                "person": persons.take(pa.array(person + start)),
                "item": items.take(pa.array(item)),
                "response": rows[person, item],
            }
        )


def _wide_batches(responses: Responses) -> Iterator[Any]:
    import pyarrow as pa

    persons = pa.array(list(map(str, responses.persons)))
    for start, stop in _pieces(responses):
        rows = responses.rows(start, stop)
        columns = [persons.slice(start, stop - start)]
        columns += [pa.array(column, mask=column < 0) for column in rows.T.copy()]
        yield pa.record_batch(columns, names=["person", *responses.items])


def _write_parquet(path: Path, batches: Iterator[Any]) -> None:
    import pyarrow.parquet as pq

    first = next(batches)
    with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)


def _write_text(stream: BinaryIO, batches: Iterator[Any], separator: str) -> None:
    from pyarrow import csv

    first = next(batches)
    stream.write((separator.join(first.schema.names) + "\n").encode())
    options = csv.WriteOptions(include_header=False, delimiter=separator, quoting_style="needed")
    with csv.CSVWriter(stream, first.schema, write_options=options) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)


# A name that no steward gives to a real ledger, because the demo replaces it.
LEDGER_FILE = "demo-ledger.db"

EPSILON, DELTA = 1.0, 1e-6

# The public item list: from the test, not from the answers.
ITEMS = ("Item1", "Item2", "Item3", "Item4", "Item5")

# With as few as five items this one has the smallest error.
MECHANISM: Final = "pairs"


def demo(
    *,
    out: Annotated[Path, option("DIR", "Where the files go.")] = Path("demo"),
    force: Force = False,
) -> None:
    """Calibrate and privately release the bundled LSAT answers. Takes a few seconds."""
    bundle = out / "release"
    check_writable(out, (*CALIBRATION_FILES, LEDGER_FILE), force=force)
    check_place(bundle, force=force)
    _calibrate(out)
    say()
    # The answers were printed in 1970, so nothing is lost with the ledger of an earlier demo.
    (out / LEDGER_FILE).unlink(missing_ok=True)
    _release(out / LEDGER_FILE, bundle)


def _calibrate(out: Path) -> None:
    from discreet.datasets import citation, lsat
    from discreet.models.calibrate import fit

    answers = lsat()
    estimate = fit(answers)
    say("LSAT, section 6: 5 items answered by 1,000 persons")
    say(citation("lsat"))
    say()
    say("1. Without privacy, for the steward only")
    say()
    print_calibration(estimate)
    conclude(estimate.warnings, choice=estimate.choice)
    say()
    for path in write_calibration(out, estimate, answers, title="Calibration of LSAT, section 6"):
        say(f"Wrote {path} (confidential)")


def _release(ledger: Path, bundle: Path) -> None:
    from discreet.datasets import lsat
    from discreet.privacy.accounting import Budget
    from discreet.privacy.ledger import Ledger
    from discreet.publishing.release import release

    responses = lsat()
    book = Ledger.create(ledger, EPSILON, DELTA)
    with working("Releasing"):
        released = release(
            responses,
            Budget(EPSILON, DELTA),
            items=ITEMS,
            mechanism=MECHANISM,
            ledger=book,
            out=bundle,
            force=True,
        )
    say("2. With privacy, for everyone (the noise is new every time)")
    say()
    print_release(released)
    say()
    for path in sorted(bundle.iterdir()):
        say(f"Wrote {path}")
    say(f"Wrote {ledger} (what was spent; see `discreet ledger show {ledger}`)")
