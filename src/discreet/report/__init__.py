"""Results for readers: tables, findings, pages, workbooks, statements.

In: estimates, analyses and releases. Out: text, HTML, SVG and files of other programs. Nothing is
estimated here.
"""

from discreet.hints import answer_guesses

answer_guesses(__name__)
