"""A preprocessor of mdBook: pages of the root get a place in the site, and links lead to pages of the site.

The pages are written for a reader of the repository, with links from file to file. A link to a file that is no page of the site,
such as SUMMARY.md, becomes plain text; one to a file that does not exist ends the build.
"""

import json
import posixpath
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(!?)\[((?:[^\[\]`]|`[^`]*`)*)\]\(([^()\s]+)\)")


def chapters(items):
    for item in items:
        if chapter := item.get("Chapter"):
            yield chapter
            yield from chapters(chapter["sub_items"])


def file_of(chapter):
    """The file of a chapter, from the root of the repository."""
    return posixpath.normpath(posixpath.join("docs", chapter["source_path"]))


def place_of(file):
    """Where a file is in the site; README comes first."""
    return "index.md" if file == "README.md" else posixpath.basename(file)


def relinked(chapter, pages):
    file = file_of(chapter)

    def relink(link):
        mark, text, target = link.groups()
        if target.startswith(("#", "http://", "https://")):
            return link[0]
        path, hash, anchor = target.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(file), path))
        if path in pages:
            return f"[{text}]({place_of(path)}{hash}{anchor})"
        if not (ROOT / path).exists():
            sys.exit(f"{file}: no file {path}, to which `{text}` links")
        if mark:
            return f"![{text}]({posixpath.basename(path)})"
        return text

    # Every other part is code.
    parts = re.split(r"(^```.*?^```)", chapter["content"], flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else LINK.sub(relink, part) for part in parts)


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    found = list(chapters(book["items"]))
    pages = {file_of(chapter) for chapter in found}
    for chapter in found:
        chapter["content"] = relinked(chapter, pages)
        chapter["path"] = place_of(file_of(chapter))
    json.dump(book, sys.stdout)


main()
