#!/usr/bin/env python3
"""What g++ 12 compiles wrongly is not written: `co_await` stands in a statement of its own, and no
temporary in that statement is made of braces (an aggregate or a lambda), because such a temporary
is copied bit by bit into the coroutine's frame and destroyed twice.

Usage: coroutines.py SOURCE_DIRECTORY
"""
import pathlib
import re
import sys

# What must not enclose it. Our macros put their argument into a condition or a block of theirs.
ENCLOSING = re.compile(r"\b(if|while|for|switch|SBX_TRY|SBX_ASSIGN|EXPECT_\w+|ASSERT_\w+)\s*\(")
CODE_ONLY = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def blank(match):
    """Comments and literals as blanks of the same length and lines."""
    return re.sub(r"[^\n]", " ", match.group())


def is_enclosed(before):
    """Whether a parenthesis that ENCLOSING opens is still open at the end of `before`."""
    return any(before.count("(", match.start()) > before.count(")", match.start())
               for match in ENCLOSING.finditer(before))


def complaints(path, text):
    found = []
    code = CODE_ONLY.sub(blank, text)
    for match in re.finditer(r"\bco_await\b", code):
        line = code.count("\n", 0, match.start()) + 1
        begin = max(code.rfind(mark, 0, match.start()) for mark in ";{}") + 1
        before = code[begin:match.start()]
        after = code[match.end():code.find(";", match.end())]
        if "{" in after:
            found.append(f"{path}:{line}: braces in a statement with co_await: name it before")
        if is_enclosed(before):
            found.append(f"{path}:{line}: co_await inside a macro or a condition")
    return found


def control():
    """Each rule must catch its own violation, and let the lawful case pass."""
    bad = [
        "auto x = co_await f({1, 2});",
        "co_await pool.run([p] { return 1; });",
        "co_await g(Response{200});",
        "SBX_TRY(co_await f());",
        "EXPECT_EQ(co_await f(), 1);",
        "if (co_await f()) return;",
        "while (a && co_await f()) g();",
    ]
    good = [
        "const auto x = co_await f(a, b(1)); if (x) { g(); }",
        "run([](int& out) -> Task<void> { out = co_await f(); }(value));",
        "if (x) co_await f(); else { g(); }",
        'co_await f("{"); // {',
        "// co_await f({});",
    ]
    missed = [text for text in bad if not complaints("control", text)]
    wrong = [text for text in good if complaints("control", text)]
    if missed or wrong:
        sys.exit(f"coroutines: the check itself is broken: missed {missed}, wrongly found {wrong}")


def main():
    control()
    root = pathlib.Path(sys.argv[1])
    files = [path for folder in ("runtime", "http", "agentd", "tests")
             for path in sorted((root / folder).rglob("*")) if path.suffix in (".h", ".cc")]
    found = []
    for path in files:
        found += complaints(path.relative_to(root).as_posix(), path.read_text())
    print("\n".join(found) if found else f"{len(files)} files: every co_await stands by itself")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
