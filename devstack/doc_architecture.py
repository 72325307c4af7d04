"""Keep docs/architecture.md what the code is: `problems` names each difference.

The page links to every module of the plugin once in its tables of modules; where it says that a
module carries a rule of the memory, the module names the rule; and the picture shows no module
that is gone.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

PAGE = "docs/architecture.md"
PICTURE = "docs/images/architecture.svg"
RULES = range(1, 19)
MODULE = re.compile(r"\]\(\.\./(llmbot/[^)]+\.py)\)")


def problems(root: Path) -> Iterator[str]:
    """Name all that differs between the page and the code of a checkout, a line each."""
    page = (root / PAGE).read_text()
    modules = {path.relative_to(root).as_posix() for path in (root / "llmbot").rglob("*.py")}
    listed = Counter(MODULE.findall(_block(page, "modules")))
    for module in sorted(modules - set(listed)):
        yield f"{PAGE}: {module} is missing in the tables of modules"
    for module, count in listed.items():
        if count > 1:
            yield f"{PAGE}: {module} stands {count} times in the tables of modules"
    yield from _rule_problems(root, page)
    for shown in re.findall(r"[\w/]+\.py", (root / PICTURE).read_text()):
        if not any(PurePosixPath(module).match(shown) for module in modules):
            yield f"{PICTURE}: there is no {shown}"


def _rule_problems(root: Path, page: str) -> Iterator[str]:
    rows = dict(re.findall(r"^\| (M\d+) \|(.*)$", _block(page, "rules"), re.MULTILINE))
    for rule in (f"M{number}" for number in RULES):
        modules = MODULE.findall(rows.get(rule, ""))
        if not modules:
            yield f"{PAGE}: the table of rules does not say where {rule} is"
        for module in modules:
            path = root / module
            if not path.exists() or not re.search(rf"\b{rule}\b", path.read_text()):
                yield f"{PAGE}: {module} does not name the rule {rule}"


def _block(page: str, kind: str) -> str:
    """Return what stands between a page's marks; nothing where it has none."""
    _, _, after = page.partition(f"<!-- {kind} table: begin -->")
    return after.partition(f"<!-- {kind} table: end -->")[0]
