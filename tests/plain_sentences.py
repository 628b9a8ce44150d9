"""Which sentences of a page hold syntax of Python or of the command line, that nobody must know."""

import re

from tools.translated import PageTexts

#: Keywords with a value, options, code in quotes, names of the package, lists and calls.
SYNTAX = re.compile(r"\b[a-z_]+=(?!\s|$)|(?<![\w-])--[a-z]|`|\bdiscreet\.[a-z]|\[['\"]|\(\)")


def find_syntax(html):
    """Return the texts and labels of a page that hold syntax; what is there to be copied may."""
    page = PageTexts()
    page.feed(html)
    return [" ".join(text.split()) for text, _ in page.texts if SYNTAX.search(text)]
