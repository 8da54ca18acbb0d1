"""The checks of content: right answers pass in every form that a program may give them, wrong ones do not."""

import io
import pathlib
import sys
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/agent"))

import cases  # noqa: E402
import checks  # noqa: E402
import mutations  # noqa: E402
import png  # noqa: E402
import workbook  # noqa: E402
from cells import as_number, numbers_in  # noqa: E402
from envelope import parse_envelope  # noqa: E402

TABLE = {"type": ["table"], "rows": {"expect": [["North", 1234.5], ["South", 20.0]], "ordered": True}}
SERIES = {"type": ["chart"], "series": [{"labels": ["a", "b", "c"], "values": [3, 5, 8]}]}


def answer(kind, data=None, artifacts=None, note=None):
    artifacts = artifacts or {}
    path = "/output/" + next(iter(artifacts)) if artifacts else None
    return checks.Answer({"type": kind, "data": data, "artifact_path": path, "note": note}, artifacts)


def drawing(width, height, inked):
    """A white picture with the pixels black for which `inked` says so."""
    white, black = (255, 255, 255), (0, 0, 0)
    return png.encode([[black if inked(x, y) else white for x in range(width)] for y in range(height)])


class Tables(unittest.TestCase):
    def passes(self, data, check=TABLE):
        return not checks.complaints(check, answer("table", data))

    def test_a_table_passes_in_any_form(self):
        for data in ({"columns": ["Region", "Sum"], "rows": [["North", 1234.5], ["South", 20]]},
                     {"columns": ["n", "Sum", "Region"],
                      "rows": [[1, "1,234.50", "north "], [2, "€ 20.00", "SOUTH"]]},
                     [{"region": "North", "sum": 1234.504}, {"region": "South", "sum": "20"}]):
            self.assertTrue(self.passes(data), data)

    def test_a_wrong_table_fails(self):
        north, south = ["North", 1234.5], ["South", 20]
        for rows in ([["North", 1234.6], south], [south, north], [["North", 20], ["South", 1234.5]], [north], [],
                     [north, south, south], [["Nord", 1234.5], south], [["North", None], south],
                     [["North", True], south]):
            self.assertFalse(self.passes({"columns": ["Region", "Sum"], "rows": rows}), rows)

    def test_cells_of_different_rows_do_not_make_up_for_each_other(self):
        check = {"type": ["table"], "rows": {"expect": [["a", 1], ["b", 2]]}}
        self.assertFalse(self.passes([{"k": "a", "v": 2}, {"k": "b", "v": 1}], check))
        self.assertTrue(self.passes([{"k": "b", "v": 2}, {"k": "a", "v": 1}], check))

    def test_numbers_are_read_as_people_write_them(self):
        for text, number in (("1,234.50", 1234.5), ("€ 20", 20), ("13.2 %", 13.2), ("\u22125.6", -5.6),
                             ("+3.1%", 3.1), ("1e3", 1000)):
            self.assertEqual(as_number(text), number)
        for text in ("2025-03", "12 of 20", "", None, "none", True):
            self.assertIsNone(as_number(text), text)
        self.assertEqual(numbers_in("NPS: 5.6 (198 answers), 1,200 in all."), [5.6, 198, 1200])

    def test_numbers_and_words_are_looked_for_in_data_and_note(self):
        check = {"type": ["text"], "numbers": {"expect": {"mean": 3.77}, "tolerance": 0.01}, "mentions": ["00317"]}
        self.assertEqual(checks.complaints(check, answer("text", "The mean is 3.77.", note="No price: 00317")), [])
        self.assertTrue(checks.complaints(check, answer("text", "The mean is 3.79.", note="No price: 00317")))
        self.assertTrue(checks.complaints(check, answer("text", "The mean is 3.77.", note="No price: 317")))


class Charts(unittest.TestCase):
    def test_a_series_passes_in_any_form(self):
        for data in ({"a": 3, "b": 5, "c": 8}, {"x": ["a", "b", "c"], "y": [3, 5, 8]},
                     [{"k": "a", "v": 3}, {"k": "b", "v": 5}, {"k": "c", "v": 8}],
                     {"columns": ["k", "v"], "rows": [["a", 3], ["b", 5], ["c", 8]]},
                     {"series": [{"name": "s", "labels": ["a", "b", "c"], "values": [3, 5, 8]}]},
                     {"totals": {"a": 3, "b": 5.001, "c": 8}}, [["a", 3], ["b", 5], ["c", 8]],
                     {"a": {"n": 3}, "b": {"n": 5}, "c": {"n": 8}}):
            self.assertEqual(checks.complaints(SERIES, answer("chart", data)), [], data)

    def test_a_wrong_series_fails(self):
        for data in ({"a": 3, "b": 5, "c": 9}, {"a": 5, "b": 3, "c": 8}, [3, 5, 8], {"a": 3, "b": 5}, None,
                     {"a": 3, "b": 5, "c": 8, "d": 0}, {"b": 5, "a": 3, "c": 8}, "a 3, b 5, c 8",
                     {"x": ["a", "b"], "y": [3, 5, 8]}):
            self.assertTrue(checks.complaints(SERIES, answer("chart", data)), data)

    def test_gaps_and_outer_zeros_are_passed_over_where_allowed(self):
        check = {"type": ["chart"], "series": [{"values": [2, 0, 1], "trim_zeros": True}]}
        self.assertEqual(checks.complaints(check, answer("chart", {"n": [None, 0, 2, 0, 1, 0]})), [])
        self.assertTrue(checks.complaints(check, answer("chart", {"n": [2, 1]})))

    def test_a_named_series_must_have_the_name(self):
        check = {"type": ["chart"], "series": [{"name": "Dach", "values": [1, 2]}]}
        self.assertEqual(checks.complaints(check, answer("chart", {"Dach": [1, 2], "Keller": [3, 4]})), [])
        cells = (("x", "Dach", 1), ("x", "Keller", 3), ("y", "Dach", 2), ("y", "Keller", 4))
        long = [{"day": day, "sensor": sensor, "mean": mean} for day, sensor, mean in cells]
        self.assertEqual(checks.complaints(check, answer("chart", long)), [])
        self.assertTrue(checks.complaints(check, answer("chart", {"Dach": [3, 4], "Keller": [1, 2]})))

    def test_shares_may_be_counts_or_percentages(self):
        check = {"type": ["chart"], "series": [{"labels": ["a", "b"], "values": [30, 90], "share": True,
                                                "ordered": False}]}
        for data in ({"a": 30, "b": 90}, {"b": 75.0, "a": 25.0}, {"a": 0.25, "b": 0.75}):
            self.assertEqual(checks.complaints(check, answer("chart", data)), [])
        self.assertTrue(checks.complaints(check, answer("chart", {"a": 30, "b": 80})))

    def test_points_are_pairs(self):
        check = {"type": ["chart"], "points": {"expect": [[1, 10], [2, 20]]}}
        self.assertEqual(checks.complaints(check, answer("chart", {"y": [20, 10], "x": [2, 1]})), [])
        self.assertEqual(checks.complaints(check, answer("chart", [{"km": 1, "pace": 10}, {"km": 2, "pace": 20}])), [])
        self.assertTrue(checks.complaints(check, answer("chart", {"x": [1, 2], "y": [20, 10]})))

    def test_a_matrix_may_be_turned_and_labelled(self):
        check = {"type": ["chart"], "matrix": {"expect": [[1, 2, 3], [4, 5, 6]]}}
        for data in ([[1, 2, 3], [4, 5, 6]], {"m": [[1, 4], [2, 5], [3, 6]]}, {"Mon": [1, 2, 3], "Tue": [4, 5, 6]},
                     {"Mon": {"8": 1, "9": 2, "10": 3}, "Tue": {"8": 4, "9": 5, "10": 6}},
                     [{"day": "Mon", "8": 1, "9": 2, "10": 3}, {"day": "Tue", "8": 4, "9": 5, "10": 6}]):
            self.assertEqual(checks.complaints(check, answer("chart", data)), [], data)
        self.assertTrue(checks.complaints(check, answer("chart", [[1, 2, 3], [4, 5, 7]])))

    def test_a_picture_must_decode_and_have_something_in_its_middle(self):
        check = {"type": ["chart"], "picture": {}}
        bars = drawing(640, 480, lambda x, y: x % 80 > 40 and y > x / 2)
        frame = drawing(640, 480, lambda x, y: x // 4 in (10, 150) or y // 4 in (5, 110))
        good = checks.complaints(check, answer("chart", artifacts={"a.png": bars}))
        self.assertEqual(good, [])
        for name, wrong in (("blank", drawing(640, 480, lambda x, y: False)), ("frame", frame), ("cut", bars[:-30]),
                            ("small", drawing(64, 48, lambda x, y: x > y)), ("text", b"not a picture"), ("none", b""),
                            ("altered", bars[:60] + b"\0" + bars[61:])):
            self.assertTrue(checks.complaints(check, answer("chart", artifacts={"a.png": wrong})), name)


class Files(unittest.TestCase):
    def test_a_csv_is_compared_by_header_rows_and_order(self):
        rule = {"columns": ["k", "v"], "expect": [["x", 1], ["y", 2]], "ordered": True}
        check = {"type": ["file"], "file": {"name": "a.csv", "csv": rule}}
        right = answer("file", artifacts={"a.csv": b"\xef\xbb\xbfk,v\r\nx,1\r\ny,2.00\r\n"})
        self.assertEqual(checks.complaints(check, right), [])
        for name, content in (("a.csv", b"k,v\ny,2\nx,1\n"), ("a.csv", b"v,k\n1,x\n2,y\n"), ("a.csv", b"k,v\nx,1\n"),
                              ("b.csv", b"k,v\nx,1\ny,2\n"), ("a.csv", b"")):
            self.assertTrue(checks.complaints(check, answer("file", artifacts={name: content})), content)

    def test_rows_must_be_sorted_where_asked(self):
        rule = {"columns": ["k"], "expect": [["a"], ["b"]], "sorted_by": [0]}
        self.assertEqual(checks.check_csv(rule, b"k\na\nb\n"), [])
        self.assertTrue(checks.check_csv(rule, b"k\nb\na\n"))

    def test_a_json_is_compared_with_its_types(self):
        rule = {"expect": {"a": True, "b": 1.5, "c": None, "d": [{"e": "x"}]}}
        self.assertEqual(checks.check_json(rule, b'{"d": [{"e": "x"}], "c": null, "b": 1.5, "a": true}'), [])
        for content in (b'{"a": "yes", "b": 1.5, "c": null, "d": [{"e": "x"}]}',
                        b'{"a": 1, "b": 1.5, "c": null, "d": [{"e": "x"}]}',
                        b'{"a": true, "b": "1.5", "c": null, "d": [{"e": "x"}]}',
                        b'{"a": true, "b": 1.5, "d": [{"e": "x"}]}', b"[]"):
            self.assertTrue(checks.check_json(rule, content), content)

    def test_a_workbook_is_compared_by_sheets_header_rows_and_total(self):
        rule = {"North": {"orders": 1, "total": 20.5}}
        self.assertEqual(checks.check_sheets(rule, book("North", bold=True, total="20.5")), [])
        for name, bold, total in (("North", False, "20.5"), ("South", True, "20.5"), ("North", True, "21.5")):
            self.assertTrue(checks.check_sheets(rule, book(name, bold, total)))
        with self.assertRaises(ValueError):
            workbook.read(b"PK\x03\x04 no workbook")

    def test_lines_are_compared_one_by_one(self):
        self.assertEqual(checks.check_lines(["a", "", "b"], b"a\r\n\r\nb\r\n\r\n"), [])
        for wrong in (b"a\nb\n", b"a\n\nc\n", b"a\n\nb\nc\n"):
            self.assertTrue(checks.check_lines(["a", "", "b"], wrong))


def book(name, bold, total):
    """The smallest .xlsx with a header, one order and a total."""
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    links = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
    style = 1 if bold else 0
    parts = {
        "xl/workbook.xml": f'<workbook {main} xmlns:r="{links}"><sheets>'
                           f'<sheet name="{name}" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships {package}>'
                                      '<Relationship Id="rId1" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet {main}><fonts><font/><font><b/></font></fonts>'
                         '<cellXfs><xf fontId="0"/><xf fontId="1"/></cellXfs></styleSheet>',
        "xl/worksheets/sheet1.xml": f'<worksheet {main}><sheetData>'
                                    f'<row><c r="A1" s="{style}" t="inlineStr"><is><t>Amount</t></is></c></row>'
                                    f'<row><c r="A2"><v>{total}</v></c></row><row><c r="A3"><v>{total}</v></c></row>'
                                    '</sheetData></worksheet>'}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, text in parts.items():
            archive.writestr(path, text)
    return buffer.getvalue()


class Mutations(unittest.TestCase):
    def test_every_check_in_use_has_mutations_of_each_rule(self):
        for case in cases.load("bench/requests.jsonl"):
            check = case.fields["check"]
            names = " ".join(what for what, _ in mutations.of(check))
            for rule in set(check) - {"type", "picture"}:
                self.assertTrue(rule in names or "each alternative" in names, (case.id, rule))

    def test_a_right_answer_fails_each_mutation(self):
        right = answer("table", {"columns": ["Region", "Sum"], "rows": [["North", 1234.5], ["South", 20]]})
        altered = mutations.of(TABLE)
        self.assertEqual(len(altered), 1 + 4 + 1)
        for what, check in altered:
            self.assertTrue(checks.complaints(check, right), what)


class Envelopes(unittest.TestCase):
    def test_a_good_envelope_is_the_last_line(self):
        self.assertEqual(parse_envelope('noise\n{"type": "text", "data": "x"}\n\n', {})["data"], "x")
        parse_envelope('{"type": "chart", "artifact_path": "/output/a/b.png"}', {"a/b.png": b""})

    def test_a_bad_envelope_is_refused(self):
        for line in ("", "x", "[]", '{"type": "picture"}', '{"type": "text", "data": 1}',
                     '{"type": "table", "data": [1]}', '{"type": "text", "data": "x"}\nDone.',
                     '{"type": "table", "data": [{"a": NaN}]}', '{"type": "text", "type": "text", "data": "x"}',
                     '{\n"type": "text"\n}', '{"type": "chart"}',
                     '{"type": "file", "artifact_path": "/tmp/a.png"}',
                     '{"type": "file", "artifact_path": "/output/../a.png"}'):
            with self.assertRaises(ValueError, msg=line):
                parse_envelope(line, {"a.png": b""})


if __name__ == "__main__":
    unittest.main()
