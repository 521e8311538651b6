"""What mkdocs asks while it builds the site: the navigation, links that leave `docs/`, search from a folder, and `llms.txt`.

The navigation is the table of contents in docs/index.md, so that there is one list of pages. A link to a page outside
`docs/` (the changelog, say) goes to a copy of it in the site; a link to a source file becomes the file's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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
FOREIGN_WORKER = re.compile(r"https://[^\"]*/iframe-worker/shim")
"""What the theme would fetch from elsewhere so that search works from a folder; ours takes its place."""
WORKER = "assets/javascripts/folder_worker.js"
LLMS_PARTS = ("Start", "How-to", "Reference")
"""The parts whose pages `llms-full.txt` has in full."""
LLMS_LEFT_OUT = ("reference/python-calls.md", "reference/http.md", "reference/cli.md")
"""But for these, which the docstrings, `/openapi.json` and `--help` say as well."""
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
    for source, place in {**TAKEN_ALONG, "tools/docs_worker.js": WORKER}.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_post_page(output: str, page: Any, **_: Any) -> str:
    return FOREIGN_WORKER.sub(relpath(WORKER, f"{page.file.dest_uri}/.."), output)


def on_post_template(output_content: str, **_: Any) -> str:
    return FOREIGN_WORKER.sub(f"/{WORKER}", output_content)


def on_post_build(config: Any) -> None:
    """Write `llms.txt`, a list of the pages for language models, and `llms-full.txt`, the pages themselves."""
    contents = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    site = Path(config.site_dir)
    (site / "llms.txt").write_text(llms_list(contents), encoding="utf-8")
    (site / "llms-full.txt").write_text(llms_pages(contents), encoding="utf-8")


def _pages(contents: str) -> Iterator[tuple[str, str, str, str]]:
    """Part, title, path and description of each page in a table of contents."""
    part = ""
    for line in contents.splitlines():
        if line.startswith("## "):
            part = line[3:]
        elif line.startswith("| [") and (found := LINK.search(line)):
            yield part, found[2], found[3], line[found.end() :].strip(" |")


def llms_list(contents: str) -> str:
    """The form of llmstxt.org: a title, a summary, and lists of links with a description each."""
    intro = contents.partition("\n## ")[0].partition("\n")[2].strip()
    lines = ["# perdure", "", f"> {' '.join(intro.split())}"]
    before = ""
    for part, title, path, about in _pages(contents):
        if part != before:
            lines += ["", f"## {part}", ""]
            before = part
        lines.append(f"- [{title}]({Path(path).with_suffix('.html').as_posix()}): {about}")
    return "\n".join(lines) + "\n"


def llms_pages(contents: str) -> str:
    """The pages that a model needs to use perdure, one after the other."""
    wanted = (path for part, _, path, _ in _pages(contents) if part in LLMS_PARTS and path not in LLMS_LEFT_OUT)
    return "\n\n".join((ROOT / "docs" / path).read_text(encoding="utf-8").strip() for path in wanted) + "\n"


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
