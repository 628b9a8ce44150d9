"""Results for readers: tables, findings, pages, workbooks, statements.

In: estimates, analyses and releases. Out: text, HTML, SVG and files of other programs. Nothing is
estimated here.
"""
