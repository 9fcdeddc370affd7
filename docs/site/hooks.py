"""Hooks of MkDocs: pages from files outside docs/, and links that lead there.

README.md becomes the front page; CONTRIBUTING.md and CHANGELOG.md become pages. Links to other files of the
repository, such as sources, become their text, because the site does not have them."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages whose sources are outside docs/."""
    for source, page in PAGES.items():
        text = _rewritten((ROOT / source).read_text(), "", files)
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Rewrite links that leave docs/, and give lists of tasks and paragraphs the blank line they need."""
    if page.file.src_uri in PAGES.values():
        return markdown
    return _rewritten(markdown, f"docs/{page.file.src_uri}", files)


def _rewritten(markdown: str, source: str, files: Files) -> str:
    """A page whose links are those of the site. `source` is its path in the repository."""
    folder = posixpath.dirname(source)

    def replaced(found: re.Match[str]) -> str:
        words, target, anchor = found[1], found[2], found[3] or ""
        path = posixpath.normpath(posixpath.join(folder, target))
        if not (ROOT / path).exists():
            return found[0]  # strict mode reports it
        page = PAGES.get(path, path.removeprefix("docs/") if path.startswith("docs/") else "")
        if not page or (page not in PAGES.values() and files.get_file_from_path(page) is None):
            return words
        here = folder.removeprefix("docs").strip("/")
        return f"[{words}]({posixpath.relpath(page, here or '.')}{anchor})"

    # Code is left alone.
    parts = re.split(r"(```.*?```)", markdown, flags=re.S)
    return "".join(part if part.startswith("```") else LINK.sub(replaced, part) for part in parts)
