#!/usr/bin/env python3
"""Includes go only leftwards (CONTRIBUTING.md), and heavy headers stay out of ours.

Usage: layering.py SOURCE_DIRECTORY
"""
import pathlib
import re
import sys

# From left to right. A stage may include itself and what stands before it.
STAGES = ["base", "policy", "cgroup", "plan", "child", "spawn", "supervise", "collect", "workspace",
          "warm", "sandbox", "http", "daemon", "cli"]
# Files that stand directly in runtime/ and are the stage `sandbox`.
SANDBOX_FILES = {"sandbox.h", "sandbox.cc", "run.h", "run.cc"}
# What runs in another process's memory, and in a program without libc, has no `base` to use.
CHILD_MAY = {"child", "plan"}
CHILD_HEADERS = {"runtime/plan/flat_plan.h", "runtime/plan/steps.h"}
# sbx-probe is a program that runs inside: it stands alone.
ALONE = {"runtime/cli/probe": {"runtime/cli/probe"}}
# Headers that cost seconds: only in .cc files, behind interfaces of ours.
HEAVY = re.compile(r"^(nlohmann/(?!json_fwd\.hpp)|CLI/|toml\+\+/|boost/|curl/|fmt/|openssl/|seccomp\.h|"
                   r"sqlite3\.h|systemd/)")
# Libraries that one folder wraps: nobody else includes them.
WRAPPED = {"http/": re.compile(r"^(boost/|curl/)")}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def stage_of(path):
    """The stage of a file below runtime/ or http/; None for others."""
    parts = path.split("/")
    if parts[0] == "http":
        return "http"
    if parts[0] != "runtime":
        return None
    if len(parts) == 2:
        return "sandbox" if parts[1] in SANDBOX_FILES else parts[1]
    return parts[1]


def check_runtime(path, target):
    own, other = stage_of(path), stage_of(target)
    if own not in STAGES:
        return f"{own} is no stage: add it to STAGES, in its place"
    if other not in STAGES:
        return f"includes {target}, which is in no stage"
    if own == "child" and (other not in CHILD_MAY or
                           (other == "plan" and target not in CHILD_HEADERS)):
        return f"child code includes {target}"
    if STAGES.index(other) > STAGES.index(own):
        return f"{own} includes {target}, which stands to its right"
    if own == "http" and other not in ("http", "base"):
        return f"http includes {target}, but uses runtime/base alone"
    for folder, allowed in ALONE.items():
        if path.startswith(folder + "/") and not any(target.startswith(a + "/") for a in allowed):
            return f"{folder} stands alone, but includes {target}"
    return None


def check_agent(target):
    """agentd uses runtime/base and http alone."""
    if target.startswith("runtime/") and not target.startswith("runtime/base/"):
        return f"agentd includes {target}"
    return None


def check_library(path, target):
    if path.endswith(".h") and HEAVY.match(target):
        return f"heavy header <{target}> in a header of ours"
    for folder, library in WRAPPED.items():
        if library.match(target) and not path.startswith(folder):
            return f"includes <{target}>, which is for {folder} alone"
    return None


def complaints(path, text):
    """What is wrong with one file's includes."""
    found = []
    for bracket, target in INCLUDE.findall(text):
        problem = None
        if bracket == "<":
            problem = check_library(path, target)
        elif target.startswith("tests/"):
            problem = f"product code includes {target}"
        elif not re.match(r"(runtime|http|agentd|tests)/", target):
            # Generated files too: their directory mirrors the tree.
            problem = f'"{target}" is not named from the root'
        elif path.startswith(("runtime/", "http/")):
            problem = check_runtime(path, target)
        elif path.startswith("agentd/"):
            problem = check_agent(target)
        if problem:
            found.append(f"{path}: {problem}")
    return found


def control():
    """Each rule must catch its own violation, and let the lawful case pass."""
    bad = {
        "runtime/plan/a.cc": '#include "runtime/spawn/child.h"',
        "runtime/policy/a.cc": '#include "runtime/cgroup/driver.h"',
        "runtime/collect/a.cc": '#include "runtime/sandbox.h"',
        "runtime/child/a.cc": '#include "runtime/base/sys.h"',
        "runtime/child/b.cc": '#include "runtime/plan/plan.h"',
        "runtime/nowhere/a.cc": '#include "runtime/base/sys.h"',
        "runtime/plan/a.h": "#include <nlohmann/json.hpp>",
        "runtime/plan/b.h": "  #  include <fmt/format.h>",
        "agentd/ledger/a.h": "#include <sqlite3.h>",
        "runtime/base/a.cc": '#include "result.h"',
        "runtime/base/b.cc": '#include "tests/support/leaks.h"',
        "runtime/cli/probe/a.cc": '#include "runtime/base/sys.h"',
        "agentd/loop/a.cc": '#include "runtime/sandbox.h"',
        "http/a.cc": '#include "runtime/collect/outcome.h"',
        "http/async/a.h": "#include <boost/asio/io_context.hpp>",
        "runtime/daemon/a.cc": "#include <boost/asio/post.hpp>",
        "agentd/loop/b.cc": "#include <curl/curl.h>",
    }
    good = {
        "runtime/spawn/a.cc": '#include "runtime/child/kernel.h"\n#include "runtime/plan/plan.h"',
        "runtime/child/a.cc": '#include "runtime/plan/flat_plan.h"\n#include <linux/mount.h>',
        "runtime/plan/image.cc": "#include <nlohmann/json.hpp>",
        "agentd/redact/a.h": "#include <nlohmann/json_fwd.hpp>",
        "runtime/run.cc": '#include "runtime/collect/outcome.h"',
        "agentd/loop/a.cc": '#include "runtime/base/result.h"\n#include "http/client.h"',
        "http/a.cc": '#include "runtime/base/sys.h"\n#include <curl/curl.h>',
    }
    missed = [path for path, text in bad.items() if not complaints(path, text)]
    wrong = [line for path, text in good.items() for line in complaints(path, text)]
    if missed or wrong:
        sys.exit(f"layering: the check itself is broken: missed {missed}, wrongly found {wrong}")


def main():
    control()
    root = pathlib.Path(sys.argv[1])
    # Tests and benchmarks may use everything.
    files = [path for folder in ("runtime", "http", "agentd")
             for path in sorted((root / folder).rglob("*")) if path.suffix in (".h", ".cc")]
    found = []
    for path in files:
        found += complaints(path.relative_to(root).as_posix(), path.read_text())
    print("\n".join(found) if found else f"{len(files)} files: includes go leftwards")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
