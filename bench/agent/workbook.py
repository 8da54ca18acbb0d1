"""Reading an .xlsx with the standard library: its sheets, their cells, and whether the first row is bold."""

import dataclasses
import io
import re
import zipfile
from xml.etree import ElementTree

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


@dataclasses.dataclass
class Sheet:
    rows: list           # lists of cells: str, float or None
    bold_header: bool


def parse(archive, name):
    return ElementTree.fromstring(archive.read(name))


def text_of(element):
    return "".join(part.text or "" for part in element.iter(MAIN + "t"))


def shared_strings(archive):
    if "xl/sharedStrings.xml" not in archive.namelist():
        return []
    return [text_of(item) for item in parse(archive, "xl/sharedStrings.xml").findall(MAIN + "si")]


def bold_styles(archive):
    """The indices of the cell formats whose font is bold."""
    styles = parse(archive, "xl/styles.xml")
    fonts = [font.find(MAIN + "b") is not None for font in styles.find(MAIN + "fonts")]
    return {index for index, form in enumerate(styles.find(MAIN + "cellXfs")) if fonts[int(form.get("fontId", 0))]}


def column_number(reference):
    number = 0
    for letter in re.match(r"[A-Z]+", reference).group():
        number = number * 26 + ord(letter) - 64
    return number - 1


def cell_value(cell, strings):
    kind, value = cell.get("t"), cell.find(MAIN + "v")
    if kind == "inlineStr":
        return text_of(cell)
    if value is None or value.text is None:
        return None
    if kind == "s":
        return strings[int(value.text)]
    return value.text if kind in ("str", "b", "e", "d") else float(value.text)


def read_sheet(tree, strings, bold):
    rows, header = [], []
    for row in tree.iter(MAIN + "row"):
        cells = []
        for cell in row.findall(MAIN + "c"):
            at = column_number(cell.get("r"))
            cells += [None] * (at + 1 - len(cells))
            cells[at] = cell_value(cell, strings)
            if not rows and cells[at] is not None:
                header.append(int(cell.get("s", 0)) in bold)
        rows.append(cells)
    return Sheet([row for row in rows if any(cell is not None for cell in row)], bool(header) and all(header))


def read(data):
    """{sheet's name: Sheet}; ValueError for what is no workbook."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            targets = {link.get("Id"): link.get("Target") for link in parse(archive, "xl/_rels/workbook.xml.rels")}
            strings, bold = shared_strings(archive), bold_styles(archive)
            found = {}
            for sheet in parse(archive, "xl/workbook.xml").iter(MAIN + "sheet"):
                target = targets[sheet.get(RELATION)].lstrip("/")
                target = target if target.startswith("xl/") else "xl/" + target
                found[sheet.get("name")] = read_sheet(parse(archive, target), strings, bold)
            return found
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError, AttributeError) as error:
        raise ValueError(f"this is no workbook: {error}") from None
