#!/usr/bin/env python3
"""What SECURITY.md says is shown by a test is shown by one.

Usage: security_claims.py SOURCE_DIRECTORY [--update]

Each test, program, file and attack that SECURITY.md and docs/attack-matrix.md name must exist, each attack of selftest must be in the matrix,
what the table of layers says a layer stops by itself must be what the matrix says (--update writes those cells anew), and where the matrix has
fewer than two layers it must say why.
"""
import pathlib
import re
import sys

MOST_NAMES = 12  # a cell with more attacks counts them
TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)")
CASE = re.compile(r'(?:\{k(?:Calls|Views|Network|SettingUp),|\b(?:silent|empty|out|service)\()\s*"([^"]+)"')
NAMED_TEST = re.compile(r"`([A-Z]\w+)\.(\w+|\*)`")
NAMED_SUITE = re.compile(r"`(\w+)` tests\b")
NAMED_PROGRAM = re.compile(r"`(\w+_test)`")
NAMED_FILE = re.compile(r"`?((?:tests|docs|runtime)/[\w./-]+\.\w+)`?")
SELFTEST = re.compile(r"selftest ((?:\*[^*]+\*(?:, )?)+)")
ITALIC = re.compile(r"\*([^*]+)\*")
FILE_ENDINGS = {"md", "json", "toml", "txt", "cc", "h", "py"}


def tests_in(texts):
    """{suite: {name}} of GoogleTest macros."""
    suites = {}
    for text in texts:
        for suite, name in TEST.findall(text):
            suites.setdefault(suite, set()).add(name)
    return suites


def matrix_rows(text):
    """{attack: [layer]} of docs/attack-matrix.md."""
    rows = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 3 and cells[0] not in ("attack", "---"):
            rows[cells[0]] = re.findall(r"`(\w+)`", cells[1]) + (["never off"] if "*never off*" in cells[1] else [])
    return rows


def unexplained(text):
    """Attacks of docs/attack-matrix.md that fewer than two layers stop, without a reason that the text explains."""
    legend = set(re.findall(r"^\* \*\*([^*]+)\*\*: ", text, re.MULTILINE))
    layers = matrix_rows(text)
    reasons = {cells[0]: cells[2] for line in text.splitlines()
               for cells in [[cell.strip() for cell in line.split("|")[1:-1]]] if len(cells) == 3 and cells[0] in layers}
    return [attack for attack, stops in layers.items() if len(stops) < 2 and reasons[attack] not in legend]


def stopped_by(rows, layer):
    """The cell of a layer."""
    names = [attack for attack, layers in rows.items() if layer in layers]
    if not names:
        return "–"
    if len(names) > MOST_NAMES:
        return f"{len(names)} attacks"
    return ", ".join(f"*{name}*" for name in names)


def layer_cells(text):
    """[(layer, cell)] of SECURITY.md's table: what a layer stops by itself."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 4:
            layer = re.match(r"`(\w+)`$|\*(never off)\*", cells[0])
            if layer:
                found.append((layer.group(1) or layer.group(2), cells[2]))
    return found


def missing_tests(text, suites, programs):
    """Named tests, suites and programs that there are not."""
    found = []
    for suite, name in NAMED_TEST.findall(text):
        if name in FILE_ENDINGS:
            continue
        if suite not in suites or (name != "*" and name not in suites[suite]):
            found.append(f"names the test {suite}.{name}, which does not exist")
    for suite in NAMED_SUITE.findall(text):
        if not any(known.startswith(suite) for known in suites):
            found.append(f"names tests {suite}, which do not exist")
    for program in NAMED_PROGRAM.findall(text):
        if program not in programs:
            found.append(f"names the program {program}, which does not exist")
    return found


def missing_attacks(text, attacks):
    """Attacks of selftest that there are not."""
    return [f"names the attack '{name}', which selftest does not make"
            for names in SELFTEST.findall(text) for name in ITALIC.findall(names) if name not in attacks]


def wrong_cells(security, rows):
    """Cells that do not say what the matrix says, and layers without a row."""
    cells = layer_cells(security)
    found = [f"layer {layer} stops {stopped_by(rows, layer)}, not: {cell}"
             for layer, cell in cells if cell != stopped_by(rows, layer)]
    listed = {layer for layer, _ in cells}
    return found + [f"no row for layer {layer}" for layers in rows.values() for layer in set(layers) - listed]


def update(security, rows):
    """SECURITY.md with the cells as they should be."""
    for layer, cell in layer_cells(security):
        label = "*never off*" if layer == "never off" else f"`{layer}`"
        pattern = re.compile(rf"^(\| {re.escape(label)}[^|]*\|[^|]*\| ){re.escape(cell)}( \|)", re.MULTILINE)
        security = pattern.sub(lambda m, new=stopped_by(rows, layer): m.group(1) + new + m.group(2), security)
    return security


def control():
    """Each rule must catch its own violation."""
    suites = tests_in(["TEST_F(Good,\n  IsThere) {", "TEST(Other, One)"])
    rows = matrix_rows("| attack | x | y |\n|---|---|---|\n| bpf | `seccomp`, *never off* | |\n| udp | n.a. | |\n")
    table = "| `seccomp` | x | *bpf* | y |\n| *never off* | x | *bpf* | y |\n"
    caught = [missing_tests("`Good.IsNot`", suites, set()), missing_tests("`Bad.*`", suites, set()),
              missing_tests("`Bad` tests", suites, set()), missing_tests("`no_test`", suites, {"a_test"}),
              missing_attacks("selftest *bpf*, *none*", rows), wrong_cells(table.replace("*bpf*", "*udp*"), rows),
              wrong_cells("", rows), unexplained("| udp | n.a. |  |\n"), unexplained("| bpf | `seccomp` | why |\n")]
    passed = [missing_tests("`Good.IsThere`, `Good.*`, `Good` tests, `a_test`, `README.md`", suites, {"a_test"}),
              missing_attacks("selftest *bpf*, *udp*; *anything*", rows), wrong_cells(table, rows),
              unexplained("| udp | n.a. | why |\n| bpf | `seccomp`, `proc` |  |\n* **why**: because\n")]
    if not all(caught) or any(passed) or update(table.replace("x | *bpf*", "x | –"), rows) != table:
        sys.exit(f"security_claims: the check itself is broken: {caught} {passed}")


def main():
    control()
    root = pathlib.Path(sys.argv[1])
    sources = list((root / "tests").rglob("*.cc"))
    suites = tests_in(path.read_text() for path in sources)
    cmake = " ".join(path.read_text() for path in (root / "tests").rglob("CMakeLists.txt"))
    programs = set(re.findall(r"\b(\w+_test)\b", cmake))
    attacks = {name for path in (root / "runtime/cli").glob("selftest_*.cc") for name in CASE.findall(path.read_text())}
    matrix_file, security_file = root / "docs/attack-matrix.md", root / "SECURITY.md"
    rows = matrix_rows(matrix_file.read_text())
    if "--update" in sys.argv:
        security_file.write_text(update(security_file.read_text(), rows))
    found = [f"docs/attack-matrix.md lacks '{attack}'" for attack in sorted(attacks - rows.keys())]
    found += [f"docs/attack-matrix.md has '{attack}', which is no attack" for attack in sorted(rows.keys() - attacks)]
    found += [f"docs/attack-matrix.md does not say why not two layers stop '{attack}'"
              for attack in unexplained(matrix_file.read_text())]
    for path in (security_file, matrix_file):
        text = path.read_text()
        found += [f"{path.name} {line}" for line in missing_tests(text, suites, programs) + missing_attacks(text, attacks)]
        found += [f"{path.name} names {name}, which does not exist"
                  for name in NAMED_FILE.findall(text) if not (root / name).exists()]
    found += [f"SECURITY.md: {line}" for line in wrong_cells(security_file.read_text(), rows)]
    print("\n".join(found) if found else f"{len(attacks)} attacks, {sum(map(len, suites.values()))} tests: every claim names one")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
