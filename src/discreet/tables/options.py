"""Options of reading, with their help texts.

It imports nothing heavy, so that commands can show their options at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Origin = Literal["fixed", "names", "data"]


class Declared(NamedTuple):
    """What is said about one field of a reading.

    Attributes
    ----------
    unstated
        Where its value comes from if nobody states it. ``"fixed"``: the default, for every table.
        ``"names"``: the names of the columns, which are public. ``"data"``: values or labels of
        the file; if they ask for something else than the default, a release needs the field stated.
    metavar
        What the command line calls its value; empty for a choice or a switch.
    about
        The help text of the command line.
    release
        Whether a release takes it.
    """

    unstated: Origin
    metavar: str
    about: str
    release: bool = True


# fmt: off
#: The fields that a user states, in order, with what is said about each.
READING_FIELDS: Mapping[str, Declared] = {
    "layout": Declared("names", "", "long: one answer per row. wide: one column per item. "
                       "transposed: one row per item. Default: detected from the column names."),
    "person": Declared("names", "COL", "Column with the person ids."),
    "item": Declared("names", "COL", "Long tables: column with the item ids."),
    "response": Declared("names", "COL", "Long tables: column with the answers."),
    "ignore": Declared("fixed", "COL", "Wide tables: a column that is not an item (may be "
                       "repeated)."),
    "group": Declared("fixed", "COL", "A column that groups persons (may be repeated)."),
    "repeats": Declared("fixed", "", "If a person answered an item, or a judge compared a pair, "
                        "more than once: stop, which one counts, or (fit, leaderboard) their sum."),
    "one_means": Declared("fixed", "", "What a 1 stands for."),
    "at_least": Declared("fixed", "SCORE", "Scores of at least SCORE are right, others wrong."),
    "missing": Declared("data", "CODES", "Codes for a missing answer, such as 9,99; of one column: "
                        "Q1:9."),
    "key": Declared("data", "KEY", "The right answers: a table with item and answer, or letters: "
                    "ABDC."),
    "sheet": Declared("fixed", "NAME", "Workbooks: the sheet. Default: the only one with data. "
                      "Several sheets are joined (may be repeated)."),
    "delimiter": Declared("data", "SIGN", "Text files: field separator, also tab or space. "
                          "Default: detected."),
    "header": Declared("data", "", "The file has no row of names: columns are called 1, 2, ..."),
    "skip_rows": Declared("data", "N", "Rows above the row of names that are left out."),
    "header_rows": Declared("data", "N", "Rows of names, joined: 2 where 'Task 1' stands above "
                            "'a)' (default 1).", release=False),
    "drop_rows": Declared("data", "ROWS", "Rows to leave out: their label (Total), their number "
                          "below the names, or the words blank and short: Total,3,blank.",
                          release=False),
    "key_row": Declared("data", "ROW", "The row that holds the right answers: its label or its "
                        "number below the names.", release=False),
    "keep": Declared("fixed", "COL", "Wide tables: a column that is an item although it does not "
                     "look like one (may be repeated).", release=False),
    "order_by": Declared("fixed", "COL", "With --repeats: the column that says which answer is "
                         "first or last."),
    "model": Declared("fixed", "", "rasch: right and wrong. partial-credit, rating-scale: answers "
                      "with steps. Default: detected from the answers.", release=False),
    "steps": Declared("data", "N", "Steps of all items, where more than occur: 4; of one item: "
                      "Q1:4.", release=False),
    "lowest": Declared("data", "N", "The lowest category. Default: 0, or 1 where no 0 occurs.",
                       release=False),
    "reverse": Declared("fixed", "ITEMS", "Items with a reversed scale: Q2,Q5."),
    "categories": Declared("data", "TEXTS", "Texts that are categories, from the lowest to the "
                           "highest: 'never,sometimes,always' (may be repeated).", release=False),
    "blank": Declared("fixed", "", "What a blank cell is: missing, or wrong where only right "
                      "answers are ticked.", release=False),
    "invalid": Declared("fixed", "", "Values that are not answers: stop, or read them as missing."),
    "filter": Declared("fixed", "NAME", "Logs of the Evaluation Harness: the filter that counts."),
    "merge": Declared("fixed", "ITEM:A+B", "Categories that count as one, of one item or of all, "
                      "*:2+3 (may be repeated).", release=False),
}
