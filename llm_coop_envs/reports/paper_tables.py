"""Tables as they stand in a paper: LaTeX, Markdown, HTML, a Word document, or CSV.

Jinja, which writes the report's page, writes the forms that are text, pylatexenc escapes what stands in LaTeX, and
python-docx makes the Word document. great-tables and pandas' Styler were weighed: neither writes Markdown or Word, and
Styler writes no notes. Either would be a fourth library for what three short templates do.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from llm_coop_envs.reports.data import csv_bytes
from llm_coop_envs.reports.page_parts import NOTHING, Cell, ReportTable, TableRow
from llm_coop_envs.reports.run_tables import table_rows
from llm_coop_envs.runs.tables import as_table
from llm_coop_envs.statistics.intervals import Interval
from llm_coop_envs.util.extras import need
from llm_coop_envs.util.quoting import harmless, markdown_text

if TYPE_CHECKING:
    from docx.document import Document
    from docx.table import Table

#: What stands below a row's name is a note from so many characters on.
MOST_BELOW = 40
#: Longer texts of a LaTeX column are broken into lines, of this width in centimetres.
LONGEST_TEXT, TEXT_WIDTH = 26, 3.4
#: The widest table, in characters, for each size of type. Wider ones are shrunk to the width of the text.
SIZES = ((84, "small"), (98, "footnotesize"), (118, "scriptsize"))
_TO = re.compile(r"^(\S+) to (\S+)")
_NUMBERS = re.compile(r"[-\d.,\[\] ]+")
#: Escapes that do nothing after a line's first character.
_NEEDLESS = re.compile(r"(?<!^)\\([-()!])")
_MINUS = re.compile(r"(?<![\w.])-(?=\.?\d)")


@dataclass(frozen=True, kw_only=True)
class PaperRow:
    """A row of a table in a paper.

    Attributes:
        name: its name.
        below: a second line below the name.
        cells: text and second line of each cell.
    """

    name: str
    below: str
    cells: Sequence[tuple[str, str]]

    @property
    def has_below(self) -> bool:
        """Whether anything stands in the second line."""
        return bool(self.below) or any(below for _, below in self.cells)


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A table in a paper.

    Attributes:
        name: a name for references.
        title: its caption.
        head: the names of the columns.
        is_text: whether each column but the first holds words.
        rows: its rows.
        notes: what stands below it.
    """

    name: str
    title: str
    head: Sequence[str]
    is_text: Sequence[bool]
    rows: Sequence[PaperRow]
    notes: Sequence[str]


def arrange(name: str, table: ReportTable) -> PaperTable:
    """Arrange a table for a paper: words that all rows share, and long lines below names, become notes."""
    width = len(table.head) - 1
    columns = [
        [row.cells[index] if index < len(row.cells) else NOTHING for row in table.rows] for index in range(width)
    ]
    shared = {index for index, cells in enumerate(columns) if _is_shared_text(cells)}
    kept = [index for index in range(width) if index not in shared]
    notes = [f"{table.head[index + 1]}: {columns[index][0].text}, in all rows." for index in sorted(shared)]
    notes += [f"{row.name}: {row.below}" for row in table.rows if len(row.below) > MOST_BELOW]
    return PaperTable(
        name=name,
        title=_line(table.title),
        head=[_line(text) for text in (table.head[0], *(table.head[index + 1] for index in kept))],
        is_text=[_is_text_column(columns[index]) for index in kept],
        rows=[_arrange_row(row, [columns[index][number] for index in kept]) for number, row in enumerate(table.rows)],
        notes=list(dict.fromkeys(_line(note) for note in (*notes, *filter(None, (table.lead,)), *table.notes))),
    )


def _is_text(cell: Cell) -> bool:
    return cell.number is None and not re.match(r"^[-\d]", cell.text) and cell != NOTHING


def _is_text_column(cells: Sequence[Cell]) -> bool:
    return any(map(_is_text, cells)) and all(_is_text(cell) or cell == NOTHING for cell in cells)


def _is_shared_text(cells: Sequence[Cell]) -> bool:
    return all(_is_text(cell) and not cell.below for cell in cells) and len({cell.text for cell in cells}) == 1


def _arrange_row(row: TableRow, cells: Sequence[Cell]) -> PaperRow:
    return PaperRow(
        name=_line(row.name),
        below=_line(row.below) if len(row.below) <= MOST_BELOW else "",
        cells=[(_line(cell.text), _line(_bracketed(cell))) for cell in cells],
    )


def _bracketed(cell: Cell) -> str:
    """What stands below a cell; an interval in brackets, as papers write it."""
    return _TO.sub(r"[\1, \2]", cell.below) if isinstance(cell.number, Interval) else cell.below


def _line(text: str) -> str:
    """A text on one line in which nothing acts on a terminal, or is refused by XML."""
    return " ".join(harmless(text).split())


def _with_minus(text: str) -> str:
    """A text with true minus signs before numbers, which print and read better than hyphens."""
    return _MINUS.sub("\N{MINUS SIGN}", text)


def need_form(form: str) -> Any:
    """The library that writes a form of tables; `None` if it takes none.

    Raises:
        MissingExtra: it is not installed.
    """
    library = {"latex": ("pylatexenc.latexencode", "a table in LaTeX"), "docx": ("docx", "a table as a Word document")}
    return need(*library[form], "tables") if form in library else None


def write_latex(table: PaperTable) -> bytes:
    """A table for LaTeX with booktabs, for `input`.

    Raises:
        MissingExtra: pylatexenc is not installed.
    """
    latexencode = need_form("latex")
    encoder = latexencode.UnicodeToLatexEncoder(unknown_char_policy="keep", unknown_char_warning=False)

    def escape(text: str) -> str:
        # With the classic font encoding a bar prints as a dash.
        return str(encoder.unicode_to_latex(_with_minus(text))).replace("|", "{\\textbar}")

    text = _render(
        "paper_table.tex.jinja",
        {"escape": escape},
        table=table,
        size=_type_size(table),
        columns=_latex_columns(table),
        # Names in scripts that pdfTeX has no letters for.
        unicode=not escape(_all_text(table)).isascii(),
    )
    return text.encode()


def _all_text(table: PaperTable) -> str:
    rows = [
        text for row in table.rows for text in (row.name, row.below, *(part for cell in row.cells for part in cell))
    ]
    return " ".join([table.title, *table.head, *rows, *table.notes])


def _latex_columns(table: PaperTable) -> str:
    """The columns in LaTeX's letters: words flush left and broken into lines if they are long, numbers flush right."""
    names = [text for row in table.rows for text in (row.name, row.below)]
    columns = [_text_column([table.head[0], *names])]
    for index, is_text in enumerate(table.is_text):
        texts = [row.cells[index][0] for row in table.rows]
        columns.append(_text_column([table.head[index + 1], *texts]) if is_text else "r")
    return "".join(columns)


def _text_column(texts: Sequence[str]) -> str:
    if max(map(len, texts)) <= LONGEST_TEXT:
        return "l"
    return f">{{\\raggedright\\arraybackslash}}p{{{TEXT_WIDTH}cm}}"


def _type_size(table: PaperTable) -> str:
    """The largest size of type in which a table is no wider than a page's text; empty if none is small enough."""
    columns = zip(*([row.name, *(max(cell, key=len) for cell in row.cells)] for row in table.rows), strict=True)
    widths = [
        max(min(max(map(len, texts)), LONGEST_TEXT), len(head)) for head, texts in zip(table.head, columns, strict=True)
    ]
    return next((size for widest, size in SIZES if sum(widths) + 2 * len(widths) <= widest), "")


def write_markdown(table: PaperTable) -> bytes:
    """A table as a pipe table of Markdown, with notes below."""
    return _render("paper_table.md.jinja", {"escape": _escape_markdown}, table=table).encode()


def _escape_markdown(text: str) -> str:
    """A text that Markdown only shows, with no backslash in `-0.45 [-0.6, -0.3]` or before (these)."""
    return text if _NUMBERS.fullmatch(text) else _NEEDLESS.sub(r"\1", markdown_text(text))


def write_html(table: PaperTable) -> bytes:
    """A table as a fragment of HTML that brings its style."""
    return _render("paper_table.html.jinja", {"minus": _with_minus}, autoescape=True, table=table).encode()


def _render(template: str, filters: dict[str, Callable[[str], str]], *, autoescape: bool = False, **texts: Any) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=autoescape,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **(_LATEX_MARKS if template.endswith(".tex.jinja") else {}),
    )
    environment.filters.update(filters)
    return environment.get_template(template).render(**texts)


# LaTeX is full of braces and per cent signs.
_LATEX_MARKS: dict[str, Any] = {
    "block_start_string": "<%",
    "block_end_string": "%>",
    "variable_start_string": "<<",
    "variable_end_string": ">>",
    "comment_start_string": "<#",
    "comment_end_string": "#>",
}


def write_docx(table: PaperTable) -> bytes:
    """A table as a Word document; the same table gives the same bytes.

    Raises:
        MissingExtra: python-docx is not installed.
    """
    docx = need_form("docx")
    document: Document = docx.Document()
    document.add_paragraph(table.title, style="Caption")
    _fill_docx(document.add_table(rows=0, cols=len(table.head)), table)
    for note in table.notes:
        document.add_paragraph().add_run(_with_minus(note)).font.size = docx.shared.Pt(8)
    buffer = io.BytesIO()
    document.save(buffer)
    return _undated(buffer.getvalue())


def _fill_docx(grid: Table, table: PaperTable) -> None:
    """Fill a Word table, with lines above and below its head, and below its last row."""
    from docx.enum.text import WD_ALIGN_PARAGRAPH
    from docx.oxml import OxmlElement
    from docx.shared import Pt

    lines = [list(table.head)]
    lines += [
        ["\n".join(filter(None, (row.name, row.below))), *("\n".join(filter(None, c)) for c in row.cells)]
        for row in table.rows
    ]
    for number, line in enumerate(lines):
        row = grid.add_row()  # type: ignore[no-untyped-call]  # of python-docx
        if number == 0:
            # Repeated at the top of each page.
            row._tr.get_or_add_trPr().append(OxmlElement("w:tblHeader"))
        for index, (cell, text) in enumerate(zip(row.cells, line, strict=True)):
            (paragraph,) = cell.paragraphs
            run = paragraph.add_run(_with_minus(text))
            run.font.size, run.bold = Pt(9), number == 0
            paragraph.paragraph_format.space_after = Pt(2)
            if index and not table.is_text[index - 1]:
                paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT
            edges = [("top", number == 0), ("bottom", number in (0, len(lines) - 1))]
            _draw_borders(cell, [edge for edge, is_drawn in edges if is_drawn])


def _draw_borders(cell: Any, edges: Sequence[str]) -> None:
    """Draw lines at some edges of a Word cell, which python-docx has no call for."""
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    borders = OxmlElement("w:tcBorders")
    for edge in edges:
        line = OxmlElement(f"w:{edge}")
        line.set(qn("w:val"), "single")
        line.set(qn("w:sz"), "8")
        borders.append(line)
    cell._tc.get_or_add_tcPr().append(borders)


def _undated(archive: bytes) -> bytes:
    """A ZIP archive with the dates of its members taken out."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as dated, zipfile.ZipFile(buffer, "w") as undated:
        for name in dated.namelist():
            undated.writestr(zipfile.ZipInfo(name), dated.read(name), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def write_csv(table: ReportTable) -> bytes:
    """A table as CSV with its numbers unrounded, the columns being those of `Run.table`."""
    return csv_bytes(as_table(table_rows(table)))


#: The forms of `write_table`, with a few words on each.
FORMS = {
    "markdown": "a pipe table",
    "latex": "booktabs, for \\input",
    "docx": "a Word document",
    "html": "a fragment of a page",
    "csv": "numbers unrounded",
}
_WRITERS: dict[str, Callable[[PaperTable], bytes]] = {
    "markdown": write_markdown,
    "latex": write_latex,
    "docx": write_docx,
    "html": write_html,
}


def write_table(name: str, table: ReportTable, form: str) -> bytes:
    """Write a table in one of `FORMS`.

    Args:
        name: a name for references, such as that of `tab:comparisons`.
        table: the table.
        form: the form.

    Raises:
        MissingExtra: what writes this form is not installed.
    """
    return write_csv(table) if form == "csv" else _WRITERS[form](arrange(name, table))
