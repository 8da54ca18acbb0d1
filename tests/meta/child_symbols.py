#!/usr/bin/env python3
"""The code that runs in another process's memory calls nothing but itself.

Usage: child_symbols.py --nm NM --archive LIBSBX_CHILD --init SBX_INIT --testing-archive LIBRARY

Between clone(CLONE_VM) and exec the payload shares pid 1's memory, and sbx-init has no libc: an
allocation, an errno, a stdio buffer or an exception table would be somebody else's.
"""
import argparse
import re
import struct
import subprocess
import sys

# Undefined symbols that may be left, each with its reason.
ALLOWED = {
    "memcpy": "the compiler makes calls of it from struct copies; init_main.cc defines it",
    "memset": "the same, from zero initialisation",
    "_GLOBAL_OFFSET_TABLE_": "the linker's, in position-independent code; resolves to no call",
}
# Static data with a constructor, thread-locals and the like have no one to run or hold them.
FORBIDDEN_DEFINED = [
    (re.compile(r"^_GLOBAL__sub_I_"), "a static constructor, which nobody would run"),
    (re.compile(r"^_ZGV"), "a guard for a function's static, which needs libstdc++"),
    (re.compile(r"^(_Znw|_Zna|_Zdl|_Zda|malloc|free|calloc|realloc)"), "an allocator"),
    (re.compile(r"^_Z(TI|TS|TV)"), "type information or a virtual table"),
]


def symbols(nm, path, undefined):
    """{name: type letter} of an archive's or object's symbols."""
    listing = subprocess.run([nm, "-u" if undefined else "--defined-only", path], check=True,
                             capture_output=True, text=True).stdout
    found = {}
    for line in listing.splitlines():
        fields = line.split()
        if len(fields) >= 2 and len(fields[-2]) == 1:
            found[fields[-1]] = fields[-2]
    return found


def complaints(undefined, defined):
    """What is wrong with an archive."""
    found = [f"calls {name}, which is not its own" for name in sorted(undefined)
             if name not in defined and name not in ALLOWED]
    for name in sorted(defined):
        found += [f"defines {name}: {why}" for pattern, why in FORBIDDEN_DEFINED
                  if pattern.match(name)]
        if defined[name] in "uU" or name.startswith("__tls"):
            found.append(f"{name} is thread-local or unique")
    return found


def loaded_bytes(program):
    """What of a 64-bit ELF program is loaded: its file also has gaps as large as a page may be."""
    offset, = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    headers = [struct.unpack_from("<II4Q", program, offset + i * size) for i in range(count)]
    pt_load = 1
    return sum(header[5] for header in headers if header[0] == pt_load)


def control():
    """Each rule must catch its own violation."""
    bad = [({"malloc": "U"}, {}), ({"__cxa_throw": "U"}, {}), ({"__stack_chk_fail": "U"}, {}),
           ({"__errno_location": "U"}, {}), ({"_Znwm": "U"}, {}), ({"memmove": "U"}, {}),
           ({}, {"_GLOBAL__sub_I_seen": "t"}), ({}, {"_ZGVZ4mainE1x": "b"}),
           ({}, {"_ZTVN3sbx5childE": "V"}), ({}, {"x": "u"})]
    missed = [case for case in bad if not complaints(*case)]
    wrong = complaints({"memcpy": "U", "_ZN3sbx5child4walkEv": "U"}, {"_ZN3sbx5child4walkEv": "T"})
    if missed or wrong:
        sys.exit(f"child_symbols: the check itself is broken: missed {missed}, found {wrong}")


def main():
    parser = argparse.ArgumentParser()
    for option in ("--nm", "--archive", "--init", "--testing-archive"):
        parser.add_argument(option, required=True)
    options = parser.parse_args()
    control()
    found = []
    for archive in (options.archive, options.testing_archive):
        defined = symbols(options.nm, archive, undefined=False)
        if not any("run_payload" in name for name in defined):
            sys.exit(f"{archive} does not look like the child's library")
        found += [f"{archive}: {line}" for line in
                  complaints(symbols(options.nm, archive, undefined=True), defined)]
    # A program without a libc has no dynamic section: nothing is resolved when it starts.
    with open(options.init, "rb") as program:
        head = program.read()
    if b"/ld-linux" in head or b"libc.so" in head:
        found.append(f"{options.init}: it is linked dynamically")
    size = loaded_bytes(head)
    if size > 32 * 1024:
        found.append(f"{options.init}: {size} bytes; something large was linked in")
    print("\n".join(found) if found else f"the child calls nothing but itself; sbx-init has {size} bytes")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
