#!/usr/bin/env python3
"""Checks an unpacked image and prints its manifest.

Usage: seal.py ROOTFS --name NAME > manifest.json
       seal.py ROOTFS --digest

Refuses, naming every offending path, a tree that could not be mounted read-only for any uid or that
would hand a program something it must not have. The digest is the SHA-256 of one line per entry, sorted by
path: type, mode and, for a file, the SHA-256 of its contents or, for a link, its target. Owners and times do
not count: root's build and a user's build of the same packages have the same digest.
"""

import argparse
import datetime
import hashlib
import json
import os
import stat
import sys

MOUNT_POINTS = ("dev", "proc", "tmp", "code", "input", "output", "work")
FORBIDDEN = ("etc/resolv.conf", "etc/machine-id", "etc/hostname", "etc/shadow", "etc/apt")


def entries(root):
    """Yields (path relative to root, lstat) of everything below root, links not followed."""
    pending = [""]
    while pending:
        directory = pending.pop()
        for entry in os.scandir(os.path.join(root, directory)):
            path = os.path.join(directory, entry.name)
            info = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(info.st_mode):
                pending.append(path)
            yield path, info


def faults_of(root, path, info):
    """What is wrong with one entry, as sentences."""
    mode = info.st_mode
    full = os.path.join(root, path)
    if stat.S_ISLNK(mode):
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        yield "is neither a file, a directory nor a link"
        return
    if mode & (stat.S_ISUID | stat.S_ISGID):
        yield "is setuid or setgid"
    if mode & 0o022:
        yield "is writable by others"
    needed = 0o555 if stat.S_ISDIR(mode) else 0o444
    if mode & needed != needed:
        yield "is not readable by everyone"
    if os.listxattr(full, follow_symlinks=False):
        yield "has extended attributes"


def faults_of_tree(root):
    for name in MOUNT_POINTS:
        path = os.path.join(root, name)
        if os.path.islink(path) or not os.path.isdir(path) or os.listdir(path):
            yield f"/{name}: must be an empty directory"
    for name in FORBIDDEN:
        if os.path.lexists(os.path.join(root, name)):
            yield f"/{name}: must not be in an image"


def content_of(root, path, info):
    full = os.path.join(root, path)
    if stat.S_ISLNK(info.st_mode):
        return os.readlink(full)
    if stat.S_ISDIR(info.st_mode):
        return "-"
    with open(full, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def inspect(root):
    """Returns (digest, faults)."""
    faults = list(faults_of_tree(root))
    digest = hashlib.sha256()
    for path, info in sorted(entries(root), key=lambda item: os.fsencode(item[0])):
        faults.extend(f"/{path}: {fault}" for fault in faults_of(root, path, info))
        if not os.access(os.path.join(root, path), os.R_OK, follow_symlinks=False):
            continue
        kind = stat.filemode(info.st_mode)[0]
        mode = "-" if kind == "l" else f"{stat.S_IMODE(info.st_mode):04o}"
        line = (kind, mode, path, content_of(root, path, info))
        digest.update(b"\0".join(os.fsencode(field) for field in line) + b"\n")
    return digest.hexdigest(), faults


def debian_packages(root):
    """Package versions from dpkg's status file."""
    packages = {}
    with open(os.path.join(root, "var/lib/dpkg/status"), encoding="utf-8") as status:
        for paragraph in status.read().split("\n\n"):
            fields = dict(
                line.split(": ", 1)
                for line in paragraph.splitlines()
                if ": " in line and not line.startswith(" ")
            )
            if fields.get("Status", "").endswith(" installed"):
                packages[fields["Package"]] = fields["Version"]
    return dict(sorted(packages.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rootfs")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--name", help="print the manifest of an image of this name")
    what.add_argument("--digest", action="store_true", help="print the digest only")
    arguments = parser.parse_args()

    digest, faults = inspect(arguments.rootfs)
    if faults:
        for fault in faults[:50]:
            print(f"image: {fault}", file=sys.stderr)
        print(f"image: {len(faults)} faults; fix rootfs/finish.sh", file=sys.stderr)
        return 1
    if arguments.digest:
        print(digest)
        return 0
    with open(os.path.join(arguments.rootfs, "opt/sbx/packages.json"), encoding="utf-8") as file:
        packages = json.load(file)
    packages["debian"] = debian_packages(arguments.rootfs)
    created = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    manifest = {"name": arguments.name, "digest": digest, "created": created, "packages": packages}
    json.dump(manifest, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
