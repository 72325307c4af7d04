"""Long code in an answer, as files: pure."""

from __future__ import annotations

import dataclasses
import re

MIN_LINES = 60
"""Code of more lines than this also comes as a file."""

# Language as it stands after a fence: file name ending and media type.
_TYPES = {
    "bash": ("sh", "text/x-shellscript"),
    "c": ("c", "text/x-c"),
    "cpp": ("cpp", "text/x-c++"),
    "c++": ("cpp", "text/x-c++"),
    "cs": ("cs", "text/plain"),
    "csharp": ("cs", "text/plain"),
    "css": ("css", "text/css"),
    "csv": ("csv", "text/csv"),
    "dart": ("dart", "text/plain"),
    "diff": ("diff", "text/x-diff"),
    "elixir": ("ex", "text/plain"),
    "go": ("go", "text/x-go"),
    "haskell": ("hs", "text/x-haskell"),
    "html": ("html", "text/html"),
    "ini": ("ini", "text/plain"),
    "java": ("java", "text/x-java"),
    "javascript": ("js", "text/javascript"),
    "js": ("js", "text/javascript"),
    "json": ("json", "application/json"),
    "jsx": ("jsx", "text/javascript"),
    "kotlin": ("kt", "text/x-kotlin"),
    "latex": ("tex", "text/x-tex"),
    "lua": ("lua", "text/x-lua"),
    "markdown": ("md", "text/markdown"),
    "md": ("md", "text/markdown"),
    "nix": ("nix", "text/plain"),
    "perl": ("pl", "text/x-perl"),
    "php": ("php", "text/x-php"),
    "powershell": ("ps1", "text/plain"),
    "python": ("py", "text/x-python"),
    "py": ("py", "text/x-python"),
    "r": ("r", "text/plain"),
    "ruby": ("rb", "text/x-ruby"),
    "rust": ("rs", "text/x-rust"),
    "rs": ("rs", "text/x-rust"),
    "scala": ("scala", "text/x-scala"),
    "scss": ("scss", "text/x-scss"),
    "sh": ("sh", "text/x-shellscript"),
    "shell": ("sh", "text/x-shellscript"),
    "sql": ("sql", "application/sql"),
    "svg": ("svg", "image/svg+xml"),
    "swift": ("swift", "text/x-swift"),
    "toml": ("toml", "application/toml"),
    "ts": ("ts", "text/plain"),
    "tsx": ("tsx", "text/plain"),
    "typescript": ("ts", "text/plain"),
    "xml": ("xml", "application/xml"),
    "yaml": ("yaml", "application/yaml"),
    "yml": ("yaml", "application/yaml"),
    "zig": ("zig", "text/plain"),
}
_PLAIN = ("txt", "text/plain")

_FENCED = re.compile(
    r"^(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[^\s`]*)[^\n`]*\n"
    r"(?P<code>.*?)"
    r"(?:^ {0,3}(?P=fence)[`~]*[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)


@dataclasses.dataclass(frozen=True)
class CodeFile:
    """A file to attach to an answer."""

    name: str
    media_type: str
    content: bytes


def code_files(answer: str) -> list[CodeFile]:
    """Return the long code blocks of an answer as files, named after their language."""
    files: list[CodeFile] = []
    for block in _FENCED.finditer(answer):
        code = block["code"]
        if code.count("\n") > MIN_LINES:
            ending, media_type = _TYPES.get(block["language"].lower(), _PLAIN)
            number = f"-{len(files) + 1}" if files else ""
            # JSON can hold half of a surrogate pair, which has no bytes.
            content = code.encode(errors="replace")
            files.append(CodeFile(f"code{number}.{ending}", media_type, content))
    return files
