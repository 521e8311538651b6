"""What mkdocs asks while it builds the site: the navigation, and what becomes of links that leave `docs/`.

The navigation is the table of contents in docs/index.md, so that there is one list of pages. A link to a page outside
`docs/` (the changelog, say) goes to a copy of it in the site; a link to a source file becomes the file's name.
"""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import normpath, relpath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
TAKEN_ALONG = {
    "README.md": "about/readme.md",
    "CHANGELOG.md": "about/changelog.md",
    "CONTRIBUTING.md": "about/contributing.md",
    "bench/README.md": "about/benchmarks.md",
}
"""Pages outside `docs/`, and where they stand in the site."""
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def on_config(config: Any) -> Any:
    config.nav = navigation((ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    config.nav.append({"About": list(TAKEN_ALONG.values())})
    return config


def navigation(contents: str) -> list[Any]:
    """The pages of a table of contents, under its headings of the second and the third level."""
    nav: list[Any] = ["index.md"]
    section: list[Any] = nav
    part = section
    for line in contents.splitlines():
        if line.startswith("## "):
            section = part = []
            nav.append({line[3:]: section})
        elif line.startswith("### "):
            part = []
            section.append({line[4:]: part})
        elif line.startswith("| [") and (found := LINK.search(line)):
            part.append(found[3])
    return [entry for entry in nav if isinstance(entry, str) or any(entry.values())]


def on_files(files: Files, config: Any) -> Files:
    for source, place in TAKEN_ALONG.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links as they must read in the site; what stands in a code block is left alone."""
    place = page.file.src_uri
    source = next((outside for outside, inside in TAKEN_ALONG.items() if inside == place), f"docs/{place}")
    parts = FENCED.split(markdown)
    return "".join(
        part if FENCED.fullmatch(part) else LINK.sub(lambda found: _link(found, source, place), part) for part in parts
    )


def _link(found: re.Match[str], source: str, place: str) -> str:
    picture, text, target = found.groups()
    if "://" in target or target.startswith(("#", "mailto:")):
        return found[0]
    path, mark, anchor = target.partition("#")
    wanted = normpath(f"{source}/../{path}")
    if wanted in TAKEN_ALONG:
        inside = TAKEN_ALONG[wanted]
    elif wanted.startswith("docs/"):
        inside = wanted.removeprefix("docs/")
    else:
        return text if text.startswith("`") else f"`{text}`"
    return f"{picture}[{text}]({relpath(inside, f'{place}/..')}{mark}{anchor})"
