"""How many lines of code a file has."""

import io
import tokenize
from ast import AsyncFunctionDef, ClassDef, Constant, Expr, FunctionDef, Module, parse, walk


def code_lines(path):
    """Lines of code: docstrings, comments and blank lines do not count."""
    source = path.read_text()
    docstrings = set()
    for node in walk(parse(source)):
        if isinstance(node, Module | ClassDef | FunctionDef | AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, Expr) and isinstance(first.value, Constant) and isinstance(first.value.value, str):
                docstrings |= set(range(first.lineno, first.end_lineno + 1))
    silent = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return len({n for t in tokens if t.type not in silent for n in range(t.start[0], t.end[0] + 1)} - docstrings)
