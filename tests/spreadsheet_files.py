"""Workbooks for tests: Excel's by xlsxwriter, OpenDocument's by hand."""

import zipfile
from datetime import date
from pathlib import Path
from xml.sax.saxutils import escape

import xlsxwriter

MIMETYPE = "application/vnd.oasis.opendocument.spreadsheet"


def write_xlsx(path: Path, sheets: dict, *, hidden: tuple = (), merged: tuple = ()) -> Path:
    """Write sheets of rows; ``merged`` are (sheet, range, text)."""
    book = xlsxwriter.Workbook(path)
    day = book.add_format({"num_format": "yyyy-mm-dd"})
    for name, rows in sheets.items():
        sheet = book.add_worksheet(name)
        for number, row in enumerate(rows):
            for column, cell in enumerate(row):
                if isinstance(cell, date):
                    sheet.write_datetime(number, column, cell, day)
                elif isinstance(cell, str):
                    sheet.write_string(number, column, cell)
                elif cell is not None:
                    sheet.write(number, column, cell)
        if name in hidden:
            sheet.hide()
    for name, cells, text in merged:
        book.get_worksheet_by_name(name).merge_range(cells, text)
    book.close()
    return path


def write_ods(path: Path, sheets: dict) -> Path:
    """Write sheets of rows as LibreOffice stores them."""
    tables = "".join(
        f'<table:table table:name="{escape(name)}">{"".join(map(_row, rows))}</table:table>'
        for name, rows in sheets.items()
    )
    spaces = "".join(
        f' xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{short}:1.0"'
        for short in ("office", "table", "text")
    )
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document-content{spaces} '
        f'office:version="1.3"><office:body><office:spreadsheet>{tables}'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    manifest = (
        '<?xml version="1.0" encoding="UTF-8"?><manifest:manifest xmlns:manifest='
        '"urn:oasis:names:tc:opendocument:xmlns:manifest:1.0" manifest:version="1.3">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{MIMETYPE}"/>'
        '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/>'
        "</manifest:manifest>"
    )
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("mimetype", MIMETYPE, zipfile.ZIP_STORED)
        packed.writestr("META-INF/manifest.xml", manifest)
        packed.writestr("content.xml", content)
    return path


def _row(cells) -> str:
    return f"<table:table-row>{''.join(map(_cell, cells))}</table:table-row>"


def _cell(cell) -> str:
    if cell is None:
        return "<table:table-cell/>"
    if isinstance(cell, bool):
        kind = f'office:value-type="boolean" office:boolean-value="{str(cell).lower()}"'
    elif isinstance(cell, (int, float)):
        kind = f'office:value-type="float" office:value="{cell}"'
    elif isinstance(cell, date):
        kind = f'office:value-type="date" office:date-value="{cell.isoformat()}"'
    else:
        kind = 'office:value-type="string"'
    return f"<table:table-cell {kind}><text:p>{escape(str(cell))}</text:p></table:table-cell>"
