#!/usr/bin/env python3
"""Checks that every relative link of the repository's Markdown files leads to a file, and to a heading where it names one.

Needs no network: links to other sites are not followed. Exit 1 and one line for each dead link."""
import os
import re
import sys
from pathlib import Path
from urllib.parse import unquote

SKIPPED = {".git", ".local", "target", "node_modules"}
LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
DEFINITION = re.compile(r"^\[[^\]]+\]:\s+<?(\S+?)>?\s*$")
CODE = re.compile(r"`[^`]*`")


def documents(root):
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f not in SKIPPED]
        yield from (Path(folder, f) for f in sorted(files) if f.endswith(".md"))


def prose(path):
    """The lines outside fenced code, numbered."""
    fenced = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchors(path):
    """The names that GitHub gives to the headings of a file."""
    seen, names = {}, set()
    for _, line in prose(path):
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            count = seen[name] = seen.get(name, -1) + 1
            names.add(f"{name}-{count}" if count else name)
    return names


def fault(root, path, target):
    """What is wrong with a link, or None."""
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return None
    where, _, heading = target.partition("#")
    file = (root / where.lstrip("/") if where.startswith("/") else path.parent / where) if where else path
    file = Path(unquote(str(file))).resolve()
    if root not in (file, *file.parents):
        return "leaves the repository"
    if not file.exists():
        return "no such file"
    if heading and file.suffix == ".md" and heading not in anchors(file):
        return "no such heading"
    return None


def main():
    root = Path(__file__).resolve().parents[2]
    count, dead = 0, []
    for path in documents(root):
        for number, line in prose(path):
            line = CODE.sub("", line)
            for target in LINK.findall(line) + DEFINITION.findall(line):
                count += 1
                wrong = fault(root, path, target)
                if wrong:
                    dead.append(f"{path.relative_to(root)}:{number}: {target}: {wrong}")
    print("\n".join([*dead, f"{count} links, {len(dead)} dead"]))
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
