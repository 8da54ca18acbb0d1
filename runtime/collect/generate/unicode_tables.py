#!/usr/bin/env python3
"""Writes the tables that normalize.cc needs: unicode_tables.py OUTPUT.

kDecompositions: canonical decompositions of one step ({code point, first, second or 0}), without the
Hangul syllables, which are computed. kCombiningClasses: ranges of code points whose class is not 0.
"""

import sys
import unicodedata


def decompositions():
    for code in range(sys.maxunicode + 1):
        mapping = unicodedata.decomposition(chr(code))
        if mapping and not mapping.startswith("<"):
            parts = [int(part, 16) for part in mapping.split()]
            if len(parts) > 2:
                raise SystemExit(f"U+{code:04X} has more than two parts")
            yield code, parts[0], parts[1] if len(parts) == 2 else 0


def combining_classes():
    first = last = kind = 0
    for code in range(sys.maxunicode + 1):
        current = unicodedata.combining(chr(code))
        if current == kind and current and code == last + 1:
            last = code
            continue
        if kind:
            yield first, last, kind
        first, last, kind = code, code, current
    if kind:
        yield first, last, kind


def main():
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write(f"// Made by unicode_tables.py from Unicode {unicodedata.unidata_version}.\n")
        out.write("constexpr Decomposition kDecompositions[] = {\n")
        for row in decompositions():
            out.write("    {0x%X, 0x%X, 0x%X},\n" % row)
        out.write("};\nconstexpr CombiningClass kCombiningClasses[] = {\n")
        for first, last, kind in combining_classes():
            out.write(f"    {{0x{first:X}, 0x{last:X}, {kind}}},\n")
        out.write("};\n")


if __name__ == "__main__":
    main()
