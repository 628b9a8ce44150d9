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
from typing import Any

from discreet.answers.opening import open_answers
from discreet.answers.protocol import Answers
from discreet.answers.reading import read_planned
from discreet.atomic import PRIVACY_FILE
from discreet.errors import BadUsage
from discreet.privacy.accounting import Budget
from discreet.privacy.ledger import Ledger
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
from discreet.scales.bank import CONFIDENTIAL, is_bank, read_bank
from discreet.studio.forms import Field, read_fields, read_number, read_whole, write_number
from discreet.studio.jobs import TaskProgress
from discreet.studio.look import counting
from discreet.tables.dataset import is_too_large
from discreet.tables.lists import read_items
from discreet.tables.reading import Reading
from discreet.words import LANGUAGES


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
    """

    spec: ReleaseSpec
    ledger: Path
    expected: int
    listed_in: str = field(default="", compare=False)

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

    def list_keywords(self) -> dict[str, Any]:
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

PROTECTION = (
    Field(
        "epsilon",
        "Epsilon",
        "How much this release may reveal about one person: the smaller, the less; and the less "
        "exact the published numbers. 1 is a usual choice for some thousand persons.",
        read=read_number,
        write=write_number,
    ),
    Field(
        "delta",
        "Delta",
        "What a probability may change by beyond epsilon: far below one divided by the number of "
        "persons. A smaller delta costs very little.",
        read=read_number,
        write=write_number,
    ),
    Field(
        "neighbours",
        "What is hidden",
        "Hiding that somebody took part at all is right where taking part is sensitive itself; it "
        "promises less about single answers.",
        {
            "replace-one": "what somebody answered",
            "add-remove": "whether somebody took part",
        },
    ),
    Field(
        "persons",
        "Number of persons",
        "About how many answered, from your own papers (an enrolment, a sample plan) and never "
        "from this file. More persons make the numbers more exact at the same protection.",
        read=read_whole,
    ),
    Field(
        "number",
        "Which number of persons is published",
        "A number that was fixed before, such as an enrolment, hides who of them took part; then "
        "the file may hold fewer persons, and not more.",
        {COUNTED: "as counted in the file", FIXED: "the number above, fixed in advance"},
    ),
    Field(
        "max_answers",
        "At most so many answers of each person",
        "What a typical person answers. Whoever has more keeps a random part; a high cap for the "
        "sake of a few is paid for by everybody with noise. Blank: all items.",
        read=read_whole,
    ),
)
"""What decides how much is revealed, and how exact the numbers are."""

STUDY = (
    Field(
        "mechanism",
        "How noise is added",
        "All of them keep the same promise and differ in how exact the numbers are. If in doubt, "
        "leave the choice to the program; it chooses by the list and the cap alone.",
        {
            "": "choose for me",
            **{name: f"{name}: {one.help}" for name, one in mechanisms_for("answers").items()},
        },
    ),
    Field(
        "design",
        "Who answered which items",
        "Only answers in steps need it. Say what your study planned: it makes the numbers more "
        "exact, and wrong where it is not true.",
        {
            "": "not known",
            "complete": "everybody all items",
            "random": "a part that does not depend on ability",
        },
    ),
    Field(
        "lowest",
        "Lowest number of the scale",
        "Only answers in steps need it: 0, or 1 where your questionnaire counts from 1. Blank: 0.",
        read=read_whole,
    ),
    Field(
        "model",
        "Model of the steps",
        "Only answers in steps need it: whether each item has its own distances between the "
        "categories, or all have the same.",
        {"": "each item its own (partial credit)", "rating-scale": "all the same (rating scale)"},
    ),
    Field(
        "looked",
        "Were the answers looked at before?",
        "Whether anybody has looked at these answers, or at results of them, before the terms on "
        "this page were set: here, in a spreadsheet, in another program. Readers are told.",
        {"": "no", "yes": "yes"},
    ),
)
"""What is public about the study."""

ABOUT = (
    Field("title", "Title", "What readers will call it, such as Reading test, spring 2026."),
    Field("version", "Version", "Such as 1. A correction is a new release with the next version."),
    Field("supersedes", "Takes the place of version", "Only for a correction: the wrong version."),
    Field("reason", "Because", "Only for a correction: what was wrong, for the readers."),
    Field(
        "language",
        "Language",
        "Of the page and the statement for the readers; beside another one the English statement "
        "is published too, and counts.",
        {"": LANGUAGES["en"], **{name: said for name, said in LANGUAGES.items() if name != "en"}},
    ),
)
"""Who the release is; all of it is published as it is typed."""

FIELDS = (*PROTECTION, *STUDY, *ABOUT)
NEEDED = ("account", "epsilon", "delta", "persons")

ACCOUNT = Field(
    "account",
    "Charge it to",
    "The ledger and, in it, whom these answers are about. The release counts against that limit "
    "for ever, whether you publish it or not.",
)


def read_form(
    sent: Mapping[str, str],
    listed: ListedItems,
    accounts: Mapping[str, tuple[Path, str]],
    reading: Mapping[str, Any],
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
        raise BadUsage("There is no ledger that can be charged. Make one first.")
    account = replace(ACCOUNT, choices=dict.fromkeys(accounts, ""))
    entries = read_fields((account, *FIELDS), sent)
    for form_field in (account, *FIELDS):
        if form_field.name in NEEDED and form_field.name not in entries:
            raise BadUsage(f"{form_field.label}: this field is blank, and a release needs it.")
    ledger, population = accounts[entries.pop("account")]
    relation = entries.pop("neighbours", "replace-one")
    budget = Budget(entries.pop("epsilon"), entries.pop("delta"), relation)
    expected, number = entries.pop("persons"), entries.pop("number", COUNTED)
    if _must_declare(ledger, number, relation):
        entries["persons"] = expected
    entries["looked"] = entries.get("looked") == "yes"
    about = {part.name: entries.pop(part.name) for part in ABOUT if part.name in entries}
    keywords = {"items": listed.items, "population": population, "about": about, **entries}
    spec = make_spec(budget, reading=reading, **keywords)
    return ReleaseForm(spec, ledger, expected, listed.shown)


def _must_declare(ledger: Path, number: str, relation: str) -> bool:
    """Say whether the release is told the number of persons: it is published, or a policy asks."""
    policy = Ledger.open(ledger).policy
    return (number == FIXED and relation == "replace-one") or bool(policy and policy.needs_persons)


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
    }
    return {part.name: part.write(values[part.name]) for part in FIELDS if part.name in values}


# -- the list of items -----------------------------------------------------------------------


def read_listed(path: Path, source_name: str, answers: Path) -> ListedItems:
    """Return the items of a list or a bank, each with its steps where there are any."""
    _refuse_answers(path, answers)
    try:
        items = _read_bank(path) if is_bank(path) else read_items(path)
    except BadUsage as error:
        raise BadUsage(str(error).replace(str(path), source_name)) from None
    _refuse_table(items, source_name)
    make_spec(Budget(1.0), items=items)  # a list that no release could have is refused here
    return ListedItems(items, source_name)


def _refuse_answers(path: Path, answers: Path) -> None:
    if (
        answers.is_file()
        and path.is_file()
        and (path.samefile(answers) or cmp(path, answers, shallow=False))
    ):
        raise BadUsage(
            "This is the file of the answers. Its items must not be taken from it: a list that "
            "names an item only because somebody answered it tells that somebody did. Bring a "
            "list that was written before, such as the table of contents of the test."
        )


def _read_bank(path: Path) -> ItemList:
    bank = read_bank(path)
    if bank.ladder is None:
        return list(bank.items)
    if bank.access == CONFIDENTIAL:
        raise BadUsage(
            f"{path} is a confidential bank, whose numbers of steps were found in answers. Bring a "
            "table with the columns item and steps instead, from the questionnaire."
        )
    return {item: own[-1] for item, own in zip(bank.items, bank.ladder.kept, strict=True)}


def _refuse_table(items: ItemList, source_name: str) -> None:
    """Refuse lines with several cells each: a table was brought in the place of a list."""
    for sign in ",;\t":
        if len(items) > 1 and all(sign in name for name in items):
            raise BadUsage(
                f"{source_name} looks like a table, not like a list of items. Bring a file with "
                "one item in each line, or a table with the two columns item and steps."
            )


TOLD = ("model", "lowest")
"""Words about answers that a release is told by its terms."""


def list_words(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return how the answers are read for a release."""
    return {name: value for name, value in options.items() if name not in TOLD}


def make(
    progress: TaskProgress,
    reservation: str,
    ledger: Path,
    out: Path,
    source: Path,
    options: Mapping[str, Any],
    terms: ReleaseForm,
) -> str:
    """Make a release, or deliver the one that this reservation paid for; return its folder."""
    if find_charged(Ledger.open(ledger), reservation):
        return finish(progress, reservation, ledger, out, source, options)
    progress.begin("Reading the answers")
    spec = terms.spec
    with _open(progress, source, spec.reading, spec.public) as answers:
        progress.commit()
        progress.begin("Charging the ledger, drawing the noise, writing the release")
        delivery = DeliveryTerms(ledger, out=out, reservation=reservation)
        release_spec(DataSource(answers), replace(spec, reading={}), delivery)
    return out.name


def finish(
    progress: TaskProgress,
    reservation: str,
    ledger: Path,
    out: Path,
    source: Path | None,
    options: Mapping[str, Any],
) -> str:
    """Deliver a release that was paid for; return its folder."""
    if (out / PRIVACY_FILE).exists():
        return out.name
    book = Ledger.open(ledger)
    entry = book.find(reservation)
    order = read_order(book, entry)
    progress.begin("Fetching what was paid for")
    if source is None or entry.has_values:
        progress.commit()
        resume_release(book, reservation, out=out)
        return out.name
    with _open(progress, source, list_words(options), order.public) as answers:
        progress.commit()
        resume_release(book, reservation, answers, out=out)
    return out.name


@contextmanager
def _open(
    progress: TaskProgress, source: Path, words: Mapping[str, Any], public: Public
) -> Iterator[Answers]:
    """Give the answers as the terms say they are to be read, large ones where they are."""
    reading = restrict_reading(public, Reading(**words))
    if is_too_large(source, reading):
        with open_answers(source, "disk", reading=reading) as streamed:
            yield streamed
    else:
        yield read_planned(source, reading, counting(progress, source))
