"""Commands that need no data: ``discreet simulate``, ``demo``, ``plan`` and ``audit``.

``simulate`` draws answers from known parameters, ``demo`` calibrates and releases bundled ones. A
plan says what privacy would cost, before there is any data; an audit attacks data of its own, to
see whether the promise of a mechanism holds.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

import discreet
from discreet.atomic import CALIBRATION_FILES, REPORT_FILE, check_place, staged
from discreet.choices import Design, Layout, Model, PlainDict, Relation
from discreet.cli.calibrations import print_calibration, write_calibration
from discreet.cli.output import (
    check_writable,
    conclude,
    note,
    print_columns,
    print_json,
    say,
    show_result,
    working,
)
from discreet.cli.release import print_release
from discreet.errors import BadUsage
from discreet.tabular import Columns

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.answers.responses import Responses
    from discreet.choices import DesignName
    from discreet.planning.audit import AuditReport, Size
    from discreet.planning.plan import Plan
    from discreet.privacy.accounting import Budget
    from discreet.simulation import Simulation


SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")

#: Cells turned into text at a time: some tens of megabytes, whatever the number of persons.
CHUNK_CELLS = 1 << 22


def simulate(
    *,
    persons: int,
    items: int,
    out: Path,
    answered: float = 1.0,
    design: str = "uniform",
    steps: int = 1,
    model: Model = "auto",
    layout: Layout = "long",
    seed: int | None = None,
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Draw answers from known parameters. The difficulties and abilities go beside them."""
    import numpy as np

    suffix = _suffix(out)
    truth = out.name.removesuffix(suffix) + ".truth.json"
    names = (out.name, truth)
    check_writable(out.parent, names, force=force)
    with working("Drawing answers"):
        sample = discreet.simulate(
            *(persons, items, answered),
            design=cast("DesignName", design),  # another name is refused there
            steps=steps,
            model=model,
            rng=np.random.default_rng(seed),
        )
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


def _write_truth(path: Path, sample: Simulation, setting: PlainDict) -> None:
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
    first = next(batches)
    with ExitStack() as stack:
        if suffix == ".parquet":
            from pyarrow.parquet import ParquetWriter

            writer = stack.enter_context(ParquetWriter(path, first.schema, compression="zstd"))
        else:
            from pyarrow import csv

            separator = "\t" if suffix.startswith(".tsv") else ","
            stream: Any = stack.enter_context(path.open("wb"))
            if suffix.endswith(".gz"):  # no time stamp inside: the same seed gives the same bytes
                stream = stack.enter_context(gzip.GzipFile("", "wb", 6, stream, 0))
            stream.write((separator.join(first.schema.names) + "\n").encode())
            style = csv.WriteOptions(
                include_header=False, delimiter=separator, quoting_style="needed"
            )
            writer = stack.enter_context(csv.CSVWriter(stream, first.schema, write_options=style))
        for batch in chain([first], batches):
            writer.write_batch(batch)


def _long_batches(responses: Responses) -> Iterator[pa.RecordBatch]:
    import numpy as np
    import pyarrow as pa

    schema = pa.schema({"person": pa.string(), "item": pa.string(), "response": pa.int8()})
    persons, items = pa.array([str(name) for name in responses.persons]), pa.array(responses.items)
    step = max(CHUNK_CELLS // max(responses.n_items, 1), 1)
    for start in range(0, responses.n_persons, step):
        rows = responses.rows(start, min(start + step, responses.n_persons))
        person, item = np.nonzero(rows >= 0)
        columns = [persons.take(pa.array(person + start)), items.take(pa.array(item))]
        yield pa.record_batch([*columns, pa.array(rows[person, item])], schema=schema)


def _wide_batches(responses: Responses) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    persons = pa.array(list(map(str, responses.persons)))
    size = max(CHUNK_CELLS // max(responses.n_items, 1), 1)
    for start in range(0, responses.n_persons, size):
        stop = min(start + size, responses.n_persons)
        rows = responses.rows(start, stop)
        columns = [persons.slice(start, stop - start)]
        columns += [pa.array(column, mask=column < 0) for column in rows.T.copy()]
        yield pa.record_batch(columns, names=["person", *responses.items])


# A name that no steward gives to a real ledger, because the demo replaces it.
LEDGER_FILE = "demo-ledger.db"

DEMO_BUDGET = 1.0, 1e-6


def demo(*, out: Path = Path("demo"), force: bool = False) -> None:
    """Calibrate and privately release a bundled questionnaire. Takes a few seconds."""
    bundle = out / "release"
    check_writable(out, (*CALIBRATION_FILES, LEDGER_FILE), force=force)
    check_place(bundle, force=force)
    report = _calibrate(out)
    say()
    # The answers are simulated, so nothing is lost with the ledger of an earlier demo.
    (out / LEDGER_FILE).unlink(missing_ok=True)
    _release(out / LEDGER_FILE, bundle)
    say()
    say(f"Open {report} in a browser: the report on the questionnaire")
    say(f"Open {bundle / 'report.html'} after it: the page that readers of the release get")


def _calibrate(out: Path) -> Path:
    """Calibrate, and return the place of the report."""
    from discreet.datasets import citation, wellbeing

    answers = wellbeing()
    estimate = discreet.fit(answers)
    say(f"wellbeing: a questionnaire of {answers.n_items} items, {answers.n_persons} persons")
    say(citation("wellbeing"))
    say()
    say("1. Without privacy, for the steward only")
    say()
    print_calibration(estimate)
    conclude(estimate.warnings, choice=estimate.choice)
    say()
    for path in write_calibration(out, estimate, answers, title="wellbeing, a questionnaire"):
        say(f"Wrote {path} (confidential)")
    return out / REPORT_FILE


def _release(ledger: Path, bundle: Path) -> None:
    from discreet.datasets import WELLBEING_ANSWERS, WELLBEING_TEXTS, wellbeing

    book = discreet.Ledger.create(ledger, *DEMO_BUDGET)
    with working("Releasing"):
        released = discreet.release(
            wellbeing(),
            discreet.Budget(*DEMO_BUDGET),
            # From the questionnaire, not from the answers.
            items=dict.fromkeys(WELLBEING_TEXTS, len(WELLBEING_ANSWERS) - 1),
            design="random",
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


@dataclass(frozen=True)
class PlanOptions:
    """What a plan is told: keywords of :func:`discreet.plan`."""

    persons: int | None = None
    items: int | None = None
    answers: int | None = None
    epsilon: float | None = None
    delta: float = 1e-6
    target_rmse: float | None = None
    steps: int = 1
    mechanism: str | None = None
    neighbours: Relation = "replace-one"
    difficulty_spread: float = 1.0
    ability_spread: float = 1.0
    ability_mean: float = 0.0
    design: str = "uniform"
    groups: int = 0


def plan(
    *,
    study: PlanOptions,
    top: int | None = None,
    target_top: float | None = None,
    compare: bool = False,
    simulate: int | None = None,
    as_json: bool = False,
) -> None:
    """Predict what privacy costs. Leave out one of persons, items, epsilon and the target."""
    if target_top is not None and top is None:
        raise BadUsage("--target-top is a share of the K hardest items; give --top K too")
    overlap = None if target_top is None or top is None else (top, target_top)
    words: PlainDict = vars(study)  # names of mechanisms and designs are checked there
    predicted = discreet.plan(**words, target_overlap=overlap)
    conclude(predicted.warnings)
    document = predicted.to_dict()
    if top is not None:
        document["top_overlap"] = predicted.top_overlap(top)
    if not as_json:
        _show(predicted, top)
    if compare:
        plans = predicted.compare()
        document["mechanisms"] = {name: alternative.rmse for name, alternative in plans.items()}
        if not as_json:
            _show_comparison(plans)
    if simulate is not None:
        rmse, uncertainty = _check(predicted, simulate)
        document["simulated_rmse"] = rmse
        if not as_json:
            say(f"Simulated {simulate} times: {rmse:.3f}, give or take {uncertainty:.3f}")
    if as_json:
        print_json(document)


def _show(study: Plan, top: int | None) -> None:
    from discreet.text import show_predicted_share

    solved = {"rmse": "", "target": ""}.get(study.solved, f" (solved for {study.solved})")
    say(
        f"{study.persons:,} persons, {study.items:,} items"
        f"{f' of {study.steps} steps' if study.steps > 1 else ''}, "
        f"{study.answers:,} answers each, epsilon {study.epsilon:g}, "
        f"delta {study.delta:g}{solved}"
    )
    say(f"{study.mechanism}, {study.neighbours}")
    say(f"Typical standard error          {study.rmse:.3f} logits")
    if study.threshold_rmse is not None:
        say(f"The same of thresholds          {study.threshold_rmse:.3f} logits")
    say(f"The same without privacy        {study.rmse_without_privacy:.3f} logits")
    if study.difference_se is not None:
        say(f"Difference of two groups        {study.difference_se:.3f} logits, its standard error")
        say(
            f"Found in 80% of releases        one item that differs by {study.difference_found:.2f}"
        )
    lost = study.persons - study.equivalent_persons
    say(
        f"Equal to losing                 {lost:,} of the "
        f"persons ({study.equivalent_persons:,} would do without privacy)"
    )
    in_order = show_predicted_share(study.order_probability)
    say(f"Two items 0.5 logits apart      in the right order {in_order}")
    if top is not None:
        share = show_predicted_share(study.top_overlap(top))
        say(f"Of the {top} hardest items        {share} are found")
    assumed = study.setting.assumptions
    say(
        f"Assumed: difficulties N(0, {assumed.difficulty_spread:g}), abilities "
        f"N({assumed.ability_mean:g}, {assumed.ability_spread:g}), items given out "
        f"{GIVEN_OUT[study.setting.design]}"
    )


#: How a plan says who answers which items.
GIVEN_OUT = {"uniform": "at random", "booklets": "in booklets of two neighbouring blocks"}


def _show_comparison(plans: dict[str, Plan]) -> None:
    columns: Columns = {
        "mechanism": list(plans),
        "standard error": [one.rmse for one in plans.values()],
        "worth in persons": [one.equivalent_persons for one in plans.values()],
    }
    print_columns(columns, [*columns])


def _check(study: Plan, runs: int) -> tuple[float, float]:
    from discreet.planning.study import check_setting

    def progress(done: int) -> None:
        if runs >= 10 and done % max(1, runs // 10) == 0:
            note(f"Simulated {done} of {runs}")

    check = check_setting(study.setting, runs=runs, progress=progress)
    return check.rmse, check.uncertainty


def audit(
    *,
    mechanism: str,
    epsilon: float,
    delta: float = 1e-6,
    neighbours: Relation = "replace-one",
    items: int | None = None,
    max_answers: int | None = None,
    steps: int = 1,
    forms: Path | None = None,
    design: Design = "unknown",
    typical: float | None = None,
    runs: int | None = None,
    power: float = 0.9,
    as_json: bool = False,
) -> None:
    """Attack a mechanism on simulated data. Exit code 1: its guarantee was refuted."""
    from discreet.planning.audit import Verdict, audit_mechanism
    from discreet.privacy.mechanisms import find_mechanism, set_typical

    budget = discreet.Budget(epsilon, delta, neighbours)
    size = _make_size(items, max_answers, steps, forms, design)
    with working(f"Attacking {mechanism}"):
        attacked = set_typical(find_mechanism(mechanism), typical)
        report = audit_mechanism(attacked, budget, size=size, runs=runs, power=power)
    figures = {name: getattr(report, name) for name in AUDITED} | {"typical_answers": typical}
    show_result(figures, lambda: _say_report(report, budget), as_json=as_json)
    if report.verdict is Verdict.REFUTED:
        raise typer.Exit(1)


#: What JSON says of an audit.
AUDITED = (
    *("mechanism", "claimed_epsilon", "lower_bound", "passed", "verdict", "detectable_factor"),
    *("detectable_epsilon", "power", "runs", "items", "max_answers", "forms", "design", "attack"),
)


def _make_size(
    items: int | None, max_answers: int | None, steps: int, forms: Path | None, design: Design
) -> Size:
    """Return the public parameters of the release that is attacked."""
    from discreet.planning.audit import Size
    from discreet.tables.lists import read_form_list

    if forms is None:
        return Size(20 if items is None else items, max_answers, steps, design=design)
    if items is not None:
        raise BadUsage("--forms FILE names the items of the release; leave out --items.")
    listed = tuple(map(tuple, read_form_list(forms).values()))
    return Size(0, max_answers, steps, listed, design)


def _say_report(report: AuditReport, budget: Budget) -> None:
    forms = f" in {report.forms} forms" if report.forms else ""
    design = f", design {report.design}" if report.design != "unknown" else ""
    cap = f"{report.items} items{forms}, at most {report.max_answers} answers each{design}"
    say(f"{report.mechanism}, {budget.neighbours}, {cap}: {report.verdict}")
    say(f"Claimed           epsilon {report.claimed_epsilon:g} at delta {report.delta:g}")
    say(f"Proved by attack  epsilon {report.lower_bound:.4g} with 99.9% confidence")
    say(f"Strongest attack  {report.attack} ({report.runs:,} releases of each data set)")
    if report.detectable_factor == inf:
        say("Could have shown  no fault in the noise, whatever its size")
    else:
        detectable = f"noise too small by {report.detectable_factor:.3g}"
        detectable += f" (epsilon {report.detectable_epsilon:.3g})"
        say(f"Could have shown  {detectable}, with probability {report.power:g}")
    say(report.meaning)
