"""What llmbot's code can say to members and operators, read from its source.

A template is a text with … for what is only known when it is said. Those of the log are put
together across functions that hand a text on to the log, such as `FailureLog.report`.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
from collections.abc import Iterator, Mapping

from devstack.build import ROOT

LOG_METHODS = {"warning": 0, "error": 0, "exception": 0, "critical": 0, "log": 1}
"""Methods that write what operators are meant to see, and which argument is the message."""


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A part of a template that the caller of a function gives."""

    name: str


Function = ast.FunctionDef | ast.AsyncFunctionDef
Template = tuple[str | Parameter, ...]


@dataclasses.dataclass(frozen=True)
class _Call:
    """A call, and the function that it stands in."""

    node: ast.Call
    function: Function


def shown(template: Template) -> str:
    """Return a template as text; what stands next to each other unknown is one …."""
    text = "".join(part if isinstance(part, str) else "…" for part in template)
    return re.sub(r"…( ?…)+", "…", text).strip("*\n")


# --- reading the source ------------------------------------------------------------------------


@functools.cache
def _modules() -> Mapping[str, ast.Module]:
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text())
        for path in sorted((ROOT / "llmbot").glob("**/*.py"))
    }


@functools.cache
def _calls() -> list[_Call]:
    """Return all calls that stand in functions, each with the innermost one."""
    found: dict[ast.Call, Function] = {}
    for module in _modules().values():
        # Outer functions come before the inner ones, which therefore have the last word.
        for function in ast.walk(module):
            if isinstance(function, Function):
                found.update(
                    (node, function) for node in ast.walk(function) if isinstance(node, ast.Call)
                )
    return [_Call(node, function) for node, function in found.items()]


def _name(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def _template(expression: ast.expr, parameters: frozenset[str]) -> Template:
    """Return what an expression says: texts, and … or a parameter for all else."""
    match expression:
        case ast.Constant(value=str(text)):
            return (text,)
        case ast.JoinedStr(values=values):
            return tuple(
                part
                for value in values
                for part in _template(
                    value.value if isinstance(value, ast.FormattedValue) else value, parameters
                )
            )
        case ast.Name(id=name) if name in parameters:
            return (Parameter(name),)
        case ast.Call(func=ast.Name(id="traceback_of")):
            return ()  # It stands below the line.
        case _:
            return ("…",)


def _formatted(message: Template, arguments: list[Template]) -> Template:
    """Return a message with its arguments in the places of %s and the like."""
    parts: list[str | Parameter] = []
    for part in message:
        if not isinstance(part, str):
            parts.append(part)
            continue
        for piece in re.split(r"(%[sdr])", part):
            parts += arguments.pop(0) if re.fullmatch("%[sdr]", piece) else [piece]
    return tuple(parts)


# --- what members are told ---------------------------------------------------------------------


def problems() -> set[str]:
    """Return the texts of all `Problem`s in texts.py."""
    return {
        shown(_template(node.args[0], frozenset()))
        for node in ast.walk(_modules()["llmbot/texts.py"])
        if isinstance(node, ast.Call) and _name(node) == "Problem"
    }


# --- what operators are told -------------------------------------------------------------------


def _parameters(function: Function) -> list[str]:
    return [a.arg for a in (*function.args.args, *function.args.kwonlyargs) if a.arg != "self"]


def _logged(call: _Call) -> Template:
    position = LOG_METHODS[_name(call.node)]
    parameters = frozenset(_parameters(call.function))
    message, *arguments = (_template(a, parameters) for a in call.node.args[position:])
    return _formatted(message, arguments)


def _has_text(template: Template) -> bool:
    return any(isinstance(part, str) and part != "…" for part in template)


def _said_by_callers(template: Template, function: Function) -> Iterator[Template]:
    """Yield a template as it becomes where the function is called with texts of its own."""
    wanted = {part.name for part in template if isinstance(part, Parameter)}
    for call in _calls():
        if not wanted or _name(call.node) != function.name:
            continue
        names = _parameters(function)
        outer = frozenset(_parameters(call.function))
        given = dict(zip(names, (_template(a, outer) for a in call.node.args), strict=False))
        given |= {k.arg: _template(k.value, outer) for k in call.node.keywords if k.arg}
        if not any(_has_text(given.get(name, ())) for name in wanted):
            continue
        said: Template = tuple(
            inner
            for part in template
            for inner in (given.get(part.name, ("…",)) if isinstance(part, Parameter) else (part,))
        )
        yield from list(_said_by_callers(said, call.function)) or [said]


def log_lines() -> set[str]:
    """Return all lines that operators are meant to see: WARNING, ERROR, or as bad as the error."""
    found: set[str] = set()
    for call in _calls():
        if _name(call.node) in LOG_METHODS and isinstance(call.node.func, ast.Attribute):
            template = _logged(call)
            found.update(map(shown, list(_said_by_callers(template, call.function)) or [template]))
    return found


def error_texts() -> set[str]:
    """Return what exceptions say that have a text of their own; it ends in the log."""
    return {
        shown(_template(text, frozenset()))
        for module in _modules().values()
        for kind in ast.walk(module)
        # What begins with _ never leaves its module.
        if isinstance(kind, ast.ClassDef) and not kind.name.startswith("_")
        for node in ast.walk(kind)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "super().__init__"
        for text in node.args[:1]
        if isinstance(text, (ast.Constant, ast.JoinedStr))
    }


def all_texts() -> set[str]:
    """Return every text of the code, and every line of the log."""
    texts = {
        shown(_formatted(_template(node, frozenset()), [("…",)] * 9))
        for module in _modules().values()
        for node in ast.walk(module)
        if isinstance(node, (ast.Constant, ast.JoinedStr))
    }
    return texts | log_lines()
