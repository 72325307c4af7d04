"""What MkDocs does besides, when it builds docs/ as a site.

Links of the pages lead to files of the whole checkout, as they do on a code host. The site takes
each linked file along below `repository/`: Markdown as a page, pictures as they are, all else as
text that a browser shows. When it is built, no page may load anything from another host.
"""

import re
from html.parser import HTMLParser
from pathlib import Path
from posixpath import dirname, normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

DOCS, TAKEN_ALONG = "docs", "repository"
AS_IT_IS = (".md", ".svg", ".png")
FENCE = re.compile(r"(^ *```.*?^ *```$)", re.DOTALL | re.MULTILINE)
TABLE_ROW = re.compile(r"^\|.*$", re.MULTILINE)
CODE = re.compile(r"`[^`]+`")
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")


def _replaced(text: str, uri: str, root: Path) -> tuple[str, set[str]]:
    """Return a page's text with links for the site, and which files outside docs/ they lead to.

    Args:
        text: The page as it is written.
        uri: Where the site has the page.
        root: The checkout.
    """
    taken: set[str] = set()
    name = _name_in_checkout(uri)

    def link(match: re.Match[str]) -> str:
        target = normpath(f"{dirname(name)}/{match[1]}")
        if target.startswith(f"{DOCS}/"):
            wanted = target.removeprefix(f"{DOCS}/")
        elif (root / target).is_file():
            taken.add(target)
            wanted = _uri_on_site(target)
        else:
            raise PluginError(f"{name}: the link to {match[1]} leads to no file")
        return relpath(wanted, dirname(uri) or ".")

    # Every second part is a block of code.
    parts = FENCE.split(text)
    parts[::2] = [LINK.sub(link, part) for part in parts[::2]]
    return "".join(parts), taken


def _name_in_checkout(uri: str) -> str:
    inside = uri.removeprefix(f"{TAKEN_ALONG}/")
    return inside if inside != uri else f"{DOCS}/{uri}"


def _uri_on_site(name: str) -> str:
    return f"{TAKEN_ALONG}/{name}" + ("" if name.endswith(AS_IT_IS) else ".txt")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Take along what the pages link to, and what those pages link to."""
    root = Path(config.config_file_path).parent
    waiting = list(files.documentation_pages())
    while waiting:
        page = waiting.pop()
        for name in sorted(_replaced(page.content_string, page.src_uri, root)[1]):
            uri = _uri_on_site(name)
            if uri in files.src_uris:
                continue
            file = File.generated(
                config,
                uri,
                abs_src_path=str(root / name),
                inclusion=InclusionLevel.NOT_IN_NAV,
            )
            files.append(file)
            if file.is_documentation_page():
                waiting.append(file)
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let a page's links lead to where the site has the files."""
    del files
    root = Path(config.config_file_path).parent
    return _without_escapes(_replaced(markdown, page.file.src_uri, root)[0])


def _without_escapes(text: str) -> str:
    """Return a page's text without the backslash that a `|` in a table's code has to have.

    Code hosts take the backslash out; MkDocs needs none, and would show it.
    """
    parts = FENCE.split(text)
    parts[::2] = [
        TABLE_ROW.sub(lambda row: CODE.sub(lambda code: code[0].replace(r"\|", "|"), row[0]), part)
        for part in parts[::2]
    ]
    return "".join(parts)


class _Loaded(HTMLParser):
    """Collects what a page loads from other hosts; plain links to them are no matter."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            return
        for name, value in attrs:
            if name in {"src", "href", "srcset", "data"} and re.match(r"(\w+:)?//", value or ""):
                self.found.append(f"<{tag} {name}={value}>")


def foreign(text: str, suffix: str) -> list[str]:
    """Return what a built page or style sheet loads from other hosts."""
    if suffix == ".css":
        return re.findall(r"url\([\"']?(?:\w+:)?//[^)]*\)|@import [^;]*//[^;]*", text)
    page = _Loaded()
    page.feed(text)
    return page.found


def on_post_build(*, config: MkDocsConfig) -> None:
    """Fail where a page could not be read without a network."""
    site = Path(config.site_dir)
    for path in sorted(site.rglob("*")):
        if path.suffix in {".html", ".css"}:
            for found in foreign(path.read_text(), path.suffix):
                raise PluginError(f"{path.relative_to(site)} loads from another host: {found}")
