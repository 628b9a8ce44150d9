"""A release: the form that asks for it, and the task that makes it once for one ticket.

In: what a steward types, and a file with the items; then the answers. Out: a :class:`ReleaseForm`
with the specification, or a refusal; then the folder of the release. The form opens no answers; a
list of items that is the file of the answers is refused. The ledger is charged under the ticket's
own name, so that a task that is begun again finds what the first one paid for, and delivers that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from filecmp import cmp
from pathlib import Path

from discreet.answers.protocol import Answers
from discreet.api.banks import is_bank, read_bank
from discreet.atomic import PRIVACY_FILE
from discreet.choices import PlainDict, PlainMapping
from discreet.coding.remedies import list_values
from discreet.errors import BadUsage, DiscreetError
from discreet.privacy.accounting import Budget
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger.request import Request
from discreet.privacy.mechanisms import mechanisms_for
from discreet.privacy.protocol import Public
from discreet.publishing.delivery import (
    DataSource,
    DeliveryTerms,
    find_charged,
    read_order,
    release_spec,
    resume_release,
)
from discreet.publishing.release import Preview, preview_release
from discreet.publishing.spec import ItemList, ReleaseSpec, make_spec, restrict_reading
from discreet.readers.answers import read_planned
from discreet.readers.opening import open_answers
from discreet.scales.bank import CONFIDENTIAL
from discreet.studio.forms import (
    LIST,
    NUMBER,
    WHOLE,
    FieldKind,
    check_needed,
    load_fields,
    read_fields,
    refuse_fields,
)
from discreet.studio.inspecting import FIELDS as READING
from discreet.studio.inspecting import counting
from discreet.studio.jobs import TaskProgress
from discreet.studio.language import refuse, tell
from discreet.tables.dataset import is_too_large
from discreet.tables.lists import read_items, state_reading
from discreet.tables.opener import read_tables
from discreet.words import LANGUAGES, mark


@dataclass(frozen=True)
class ListedItems:
    """The items of a release, and what the user calls the file that names them."""

    items: ItemList
    shown: str


@dataclass(frozen=True)
class ReleaseForm:
    """What is released, and who pays.

    Attributes
    ----------
    spec
        The specification.
    ledger
        The file that is charged.
    expected
        About how many persons there are, as somebody said; for the forecast.
    listed_in
        What the user calls the list of items.
    request
        What approvers signed, where the ledger asks for that.
    """

    spec: ReleaseSpec
    ledger: Path
    expected: int
    listed_in: str = field(default="", compare=False)
    request: Path | None = field(default=None, compare=False)

    @property
    def items(self) -> ItemList:
        """The listed items, with their steps where there are any."""
        public = self.spec.public
        steps = dict(zip(public.items, public.steps, strict=True))
        return steps if public.has_steps else list(public.items)

    def preview(self) -> Preview:
        """Return what the release will say, or refuse what it would be refused for."""
        return preview_release(self.spec, Ledger.open(self.ledger), self.expected)

    def set_looked(self, *, looked: bool) -> ReleaseForm:
        """Return the form with whether somebody looked at the answers before."""
        identity = replace(self.spec.identity, looked=looked)
        return replace(self, spec=replace(self.spec, identity=identity))

    def list_keywords(self) -> PlainDict:
        """Return the keywords of :func:`discreet.release` that say the same, but for the budget."""
        public, identity = self.spec.public, self.spec.identity
        usual = make_spec(self.spec.budget, items=self.items).public
        names = ("lowest", "design", "model", "max_answers", "persons", "mechanism")
        changed = {
            name: getattr(public, name)
            for name in names
            if getattr(public, name) != getattr(usual, name)
        }
        about = identity.to_dict()
        return {
            "items": self.items,
            "population": identity.population,
            **changed,
            **({"about": about} if about else {}),
        }


COUNTED, FIXED = "counted", "fixed"
STEPS, CORRECTION = "steps", "correction"
#: Fields that only answers with steps, or a correction, need.
ASKED = {STEPS: ("design", "lowest", "model"), CORRECTION: ("supersedes", "reason")}

#: What decides how much is revealed, and how exact the numbers are.
PROTECTION = load_fields(
    "protection", epsilon=NUMBER, delta=NUMBER, persons=WHOLE, max_answers=WHOLE
)

(PERSON_FIELD,) = load_fields("person")
#: How the file is written, from its code book: nothing is found out by looking.
WRITTEN = (
    *(part for part in READING if part.name not in ("categories", "model")),
    *load_fields("written", skip_rows=WHOLE, reverse=LIST),
)
FILE = (PERSON_FIELD, *WRITTEN)

#: What is asked first; the rest of the form follows from it.
KIND, EDITION = load_fields("first")


#: What is public about the study.
STUDY = load_fields(
    "public",
    lowest=WHOLE,
    mechanism=FieldKind(choices={k: v.help for k, v in mechanisms_for("answers").items()}),
)

#: Who the release is; all of it is published as it is typed.
ABOUT = load_fields(
    "identity", language=FieldKind(choices={k: v for k, v in LANGUAGES.items() if k != "en"})
)

FIELDS = (*PROTECTION, *STUDY, *ABOUT)
NEEDED = ("account", "epsilon", "delta", "persons")

(ACCOUNT,) = load_fields("account")


#: What is stated about a reading that a release is told by its list of items and its form.
NOT_RELEASED = {"model", "lowest", "keep", "steps", "categories", "merge"}


def list_words(options: PlainMapping, sent: Mapping[str, str]) -> PlainDict:
    """Return how the answers are read for a release: as the form says, whatever was found."""
    if options.get("drop_rows") or options.get("key_row") is not None:
        raise refuse(
            "A release reads every row of the file. Take the rows that are no persons (totals, "
            "the key, blank rows) out of the file, and open it again."
        )
    return read_fields(FILE, sent)


def show_words(words: PlainMapping) -> dict[str, str]:
    """Return keywords of a reading as they would stand in the form, by their fields."""
    stated = {part.name: part for part in (*FILE, *STUDY) if part.name in words}
    shown = {name: part.write(words[name]) for name, part in stated.items()}
    return {
        name: tell.term(stated[name].choices.get(text, text))
        for name, text in shown.items()
        if text
    }


def read_form(
    sent: Mapping[str, str],
    listed: ListedItems,
    accounts: Mapping[str, tuple[Path, str]],
    reading: PlainMapping,
) -> ReleaseForm:
    """Return what a form says.

    Parameters
    ----------
    sent
        What was typed.
    listed
        The listed items.
    accounts
        Ledgers and populations, by what stands for them in the form.
    reading
        How the answers are read.
    """
    if not accounts:
        raise refuse("There is no ledger that can be charged. Make one first.")
    if sent.get("kind") == "right" and isinstance(listed.items, Mapping):
        raise refuse("The list of items has steps. Choose points or categories at the top.")
    account = replace(ACCOUNT, choices=dict.fromkeys(accounts, ""))
    chosen = (sent.get("kind", STEPS), sent.get("edition", CORRECTION))
    hidden = {name for kind, names in ASKED.items() if kind not in chosen for name in names}
    entries = read_fields((account, *(part for part in FIELDS if part.name not in hidden)), sent)
    words = tell("this field is blank, and a release needs it.")
    check_needed((account, *FIELDS), NEEDED, entries, words)
    ledger, population = accounts[entries.pop("account")]
    relation = entries.pop("neighbours", "replace-one")
    budget = Budget(entries.pop("epsilon"), entries.pop("delta"), relation)
    expected, number = entries.pop("persons"), entries.pop("number", COUNTED)
    # The release is told the number of persons where it is published, or a policy asks.
    policy = Ledger.open(ledger).policy
    if (number == FIXED and relation == "replace-one") or bool(policy and policy.needs_persons):
        entries["persons"] = expected
    entries["looked"] = entries.get("looked") == "yes"
    about = {part.name: entries.pop(part.name) for part in ABOUT if part.name in entries}
    keywords = {"items": listed.items, "population": population, "about": about, **entries}
    spec = make_spec(budget, reading=reading, **keywords)
    return ReleaseForm(spec, ledger, expected, listed.shown)


#: What names columns of a file.
COLUMNS = ("person", "item", "response", "order_by", "reverse")


def check_columns(source: Path, form: ReleaseForm) -> None:
    """Refuse names of columns that the file has not; nothing else of the file is told."""
    stated = form.spec.reading
    typed = {one: stated[one] for one in COLUMNS if one in stated}
    if "layout" in stated or not typed:
        typed.pop("reverse", None)  # in long tables these are no columns
    try:
        reading = state_reading({k: v for k, v in stated.items() if k not in typed})
        names = read_tables(source, lambda tables: {*next(tables).names}, reading=reading)
    except DiscreetError:
        return  # what else is wrong is said once it is read
    problems = {}
    for part in FILE:
        columns = list_values(typed.get(part.name))
        if absent := [column for column in columns if column not in names]:
            words = tell("There is no column “{column}” in the file.", column=absent[0])
            problems[part.name] = f"{tell.term(part.label)}: {words}"
    if problems:
        raise refuse_fields(problems)


def write_form(form: ReleaseForm) -> dict[str, str]:
    """Return what stands in the form that says the same, but for the account."""
    keywords, budget = form.list_keywords(), form.spec.budget
    values = {
        **keywords,
        **keywords.get("about", {}),
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "neighbours": str(budget.neighbours),
        "persons": form.expected,
        "number": FIXED if "persons" in keywords else COUNTED,
        "looked": "yes" if form.spec.identity.looked else "",
        **form.spec.reading,
    }
    marks = {
        "kind": STEPS if form.spec.public.has_steps else "right",
        "edition": CORRECTION if "supersedes" in values else "new",
    }
    fields = (*FIELDS, *FILE)
    return marks | {one.name: one.write(values[one.name]) for one in fields if one.name in values}


# -- the list of items -----------------------------------------------------------------------


def read_listed(path: Path, source_name: str, answers: Path) -> ListedItems:
    """Return the items of a list or a bank, each with its steps where there are any."""
    if (
        answers.is_file()
        and path.is_file()
        and (path.samefile(answers) or cmp(path, answers, shallow=False))
    ):
        raise refuse(
            "This is the file of the answers. Its items must not be taken from it: a list that "
            "names an item only because somebody answered it tells that somebody did. Bring a "
            "list that was written before, such as the table of contents of the test."
        )
    try:
        items = _read_bank(path) if is_bank(path) else read_items(path)
    except BadUsage as error:
        raise BadUsage(str(error).replace(str(path), source_name)) from None
    # Refuse lines with several cells each: a table was brought in the place of a list.
    for sign in ",;\t":
        if len(items) > 1 and all(sign in name for name in items):
            raise refuse(
                "{file} looks like a table, not like a list of items. Bring a file with one "
                "item in each line, or a table with the two columns item and steps.",
                file=source_name,
            )
    make_spec(Budget(1.0), items=items)  # a list that no release could have is refused here
    return ListedItems(items, source_name)


def _read_bank(path: Path) -> ItemList:
    bank = read_bank(path)
    if bank.ladder is None:
        return list(bank.items)
    if bank.access == CONFIDENTIAL:
        raise refuse(
            "{file} is a confidential bank, whose numbers of steps were found in answers. "
            "Bring a table with the columns item and steps instead, from the questionnaire.",
            file=path,
        )
    return {item: own[-1] for item, own in zip(bank.items, bank.ladder.kept, strict=True)}


def make(
    progress: TaskProgress,
    reservation: str,
    ledger: Path,
    out: Path,
    source: Path,
    options: PlainMapping,
    terms: ReleaseForm,
) -> str:
    """Make a release, or deliver the one that this reservation paid for; return its folder."""
    if find_charged(Ledger.open(ledger), reservation):
        return finish(progress, reservation, ledger, out, source, options)
    progress.begin(mark("Reading the answers"))
    spec = terms.spec
    with _open(progress, source, spec.reading, spec.public) as answers:
        progress.commit()
        progress.begin(mark("Charging the ledger, drawing the noise, writing the release"))
        request = None if terms.request is None else Request.load(terms.request)
        delivery = DeliveryTerms(ledger, out=out, request=request, reservation=reservation)
        data = DataSource(answers, words=spec.reading)
        release_spec(data, replace(spec, reading={}), delivery)
    return out.name


def finish(
    progress: TaskProgress,
    reservation: str,
    ledger: Path,
    out: Path,
    source: Path | None,
    options: PlainMapping,
) -> str:
    """Deliver a release that was paid for; return its folder."""
    if (out / PRIVACY_FILE).exists():
        return out.name
    book = Ledger.open(ledger)
    entry = book.find(reservation)
    order = read_order(book, entry)
    progress.begin(mark("Fetching what was paid for"))
    if source is None or entry.has_values:
        progress.commit()
        resume_release(book, reservation, out=out)
        return out.name
    with _open(progress, source, options, order.public) as answers:
        progress.commit()
        resume_release(book, reservation, answers, out=out)
    return out.name


@contextmanager
def _open(
    progress: TaskProgress, source: Path, words: PlainMapping, public: Public
) -> Iterator[Answers]:
    """Give the answers as the terms say they are to be read, large ones where they are."""
    reading = restrict_reading(public, state_reading(words))
    if is_too_large(source, reading):
        with open_answers(source, "disk", reading=reading) as streamed:
            yield streamed
    else:
        yield read_planned(source, reading, counting(progress, source))
