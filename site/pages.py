"""A preprocessor of mdBook: pages of the root get a place in the site, and links lead to pages of the site.

The pages are written for a reader of the repository, with links from file to file. A link to a file that is no page of the site,
such as SUMMARY.md, becomes plain text; one to a file that does not exist ends the build.

    pages.py markdown FOLDER

writes the pages as Markdown beside those of the site, and `llms.txt`, which lists them with what each begins with.
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


def relinked(file, content, pages):
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
    parts = re.split(r"(^```.*?^```)", content, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else LINK.sub(relink, part) for part in parts)


def first_sentence(content):
    """What a page begins with, as one line without links."""
    paragraph = next(part for part in content.split("\n\n") if not part.startswith("#"))
    text = LINK.sub(lambda link: link[2], " ".join(paragraph.split()))
    return text.split(". ")[0].rstrip(".:") + "."


def write_markdown(folder):
    """The pages as Markdown, and `llms.txt`, as https://llmstxt.org describes it."""
    summary = (ROOT / "docs/SUMMARY.md").read_text().splitlines()
    found = [(line, LINK.search(line)) for line in summary[1:] if line]
    files = [posixpath.normpath(posixpath.join("docs", link[3])) for _, link in found if link]
    contents = {file: relinked(file, (ROOT / file).read_text(), files) for file in files}
    for file, content in contents.items():
        (folder / place_of(file)).write_text(content)
    index = []
    for line, link in found:
        if not link:
            index.append(f"\n#{line}\n\n")
            continue
        file = posixpath.normpath(posixpath.join("docs", link[3]))
        about = first_sentence(contents[file])
        if file == "README.md":
            index.append(f"# {link[2]}\n\n> {about}\n")
        else:
            index.append(f"- [{link[2]}]({place_of(file)}): {about}\n")
    (folder / "llms.txt").write_text("".join(index))


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    if sys.argv[1:2] == ["markdown"]:
        write_markdown(Path(sys.argv[2]))
        return
    _, book = json.load(sys.stdin)
    found = list(chapters(book["items"]))
    pages = {file_of(chapter) for chapter in found}
    for chapter in found:
        chapter["content"] = relinked(file_of(chapter), chapter["content"], pages)
        chapter["path"] = place_of(file_of(chapter))
    json.dump(book, sys.stdout)


main()
