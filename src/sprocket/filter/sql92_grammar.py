"""The grammar of SQL92 filters: parses a text to terms, or raises an error with a column.

Comments are `-- …` to the end of the line and `/* … */`. Keywords may have any letter case, names
of properties are exact. Text after a complete expression is an error here; Java ignores it. Pure.

Source: SelectorParser.jj of RocketMQ 5.x.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedToken

from sprocket.filter import sql92_terms as terms
from sprocket.filter.sql92_terms import SqlInvalid, Term

#: The most tokens. Parsing takes some 10 µs a token and blocks the event loop meanwhile.
TOKENS_MAX = 2_048

_GRAMMAR = r"""
start: disjunction
?disjunction: conjunction (OR conjunction)*
?conjunction: equality (AND equality)*
?equality: comparison
    | equality "=" comparison -> equal
    | equality DIFFERS comparison -> different
    | equality IS NULL -> null
    | equality IS NOT NULL -> not_null
?comparison: unary
    | comparison ORDER unary -> order
    | comparison BETWEEN unary AND unary -> between
    | comparison NOT BETWEEN unary AND unary -> between
    | comparison IN "(" STRING ("," STRING)* ")" -> member
    | comparison NOT IN "(" STRING ("," STRING)* ")" -> member
    | comparison how STRING -> search
    | comparison NOT how STRING -> search
?how: CONTAINS | STARTSWITH | ENDSWITH
?unary: primary
    | "+" unary -> plus
    | MINUS unary -> minus
    | NOT unary -> negate
?primary: STRING -> string
    | WHOLE -> whole
    | DECIMAL -> decimal
    | TRUE -> true
    | FALSE -> false
    | NULL -> nothing
    | ID -> property
    | "(" disjunction ")" -> plus

DIFFERS.2: "<>"
ORDER: ">=" | "<=" | ">" | "<"
MINUS: "-"
STRING: /'(?:''|[^'])*'/
DECIMAL.2: /[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+/
WHOLE: /0|[1-9][0-9]*[lL]?/
ID: /[A-Za-z_$][A-Za-z0-9_$]*/
%declare NOT AND OR BETWEEN IN TRUE FALSE NULL IS CONTAINS STARTSWITH ENDSWITH
%ignore /[ \t\n\r\f]+/
COMMENT.3: /--[^\r\n]*|\/\*[^*]*\*+(?:[^*\/][^*]*\*+)*\//
%ignore COMMENT
"""
_WORDS = frozenset(
    (
        "NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS",
        "CONTAINS", "STARTSWITH", "ENDSWITH",
    )
)  # fmt: skip
_END = "$END"
#: Hints for signs and words from other languages.
_HINTS = {
    "!": "unequal is written <>",
    "&": "write AND",
    "|": "write OR",
    '"': "strings stand between single quotes",
    "'": "the string that begins here has no end",
    "=": "equal is written with a single =",
    "LIKE": "there is no LIKE; use CONTAINS, STARTSWITH or ENDSWITH",
}


def read(text: str) -> Term:
    """Parses a condition.

    Raises:
        SqlInvalid: it is none, or is too long or too deep.
    """
    # Parsing token by token allows the limit, and keeps the parser's state at the error: the words
    # that it expected there make the error text.
    reading = _parser().parse_interactive(text)
    token: Token | None = None
    try:
        for count, token in enumerate(reading.iter_parse()):
            if count >= TOKENS_MAX:
                fault = f"an expression has at most {TOKENS_MAX} words and signs"
                raise SqlInvalid(fault, _column(token))
        found: Term = reading.feed_eof(token)  # type: ignore[no-untyped-call]
    except UnexpectedCharacters as error:
        raise _unreadable(text, error.pos_in_stream or 0) from None
    except UnexpectedToken as error:
        is_end = error.token.type == _END
        column = len(text.rstrip()) + 1 if is_end else _column(error.token)
        raise _unexpected(error, column) from None
    return found


def _column(token: Token) -> int:
    return (token.start_pos or 0) + 1


def _unreadable(text: str, at: int) -> SqlInvalid:
    sign = text[at]
    return SqlInvalid(_HINTS.get(sign, f"{sign!r} has no meaning here"), at + 1)


def _unexpected(error: UnexpectedToken, column: int) -> SqlInvalid:
    token = error.token
    shown = "the end" if token.type == _END else repr(str(token))
    hint = _HINTS.get(token.upper())
    if hint is not None:
        return SqlInvalid(hint, column)
    expected = set(error.expected)
    if "ID" in expected:
        return SqlInvalid(f"a property or a value is missing before {shown}", column)
    if expected == {"STRING"}:
        return SqlInvalid(f"a string between single quotes is missing before {shown}", column)
    if _END in expected:
        return SqlInvalid(f"nothing is compared or joined by {shown}", column)
    wanted = " or ".join(sorted(_shown(each) for each in expected))
    return SqlInvalid(f"{wanted} is missing before {shown}", column)


def _shown(terminal: str) -> str:
    return {"RPAR": ")", "LPAR": "(", "COMMA": ",", "EQUAL": "=", "ORDER": "<, >"}.get(
        terminal, terminal
    )


class _Terms(Transformer[Token, Term]):
    """Makes a term for each rule as soon as it is parsed; the methods have the rules' names."""

    def start(self, items: list[Any]) -> Term:
        return terms.condition(items[0])

    def disjunction(self, items: list[Any]) -> Term:
        return terms.joined(items[::2], is_and=False)

    def conjunction(self, items: list[Any]) -> Term:
        return terms.joined(items[::2], is_and=True)

    def equal(self, items: list[Any]) -> Term:
        return terms.equal(items[0], items[-1])

    def different(self, items: list[Any]) -> Term:
        return terms.negated(items[0].column, terms.equal(items[0], items[-1]))

    def null(self, items: list[Any]) -> Term:
        return terms.is_null(items[0], is_there=False)

    def not_null(self, items: list[Any]) -> Term:
        return terms.is_null(items[0], is_there=True)

    def order(self, items: list[Any]) -> Term:
        return terms.ordered(str(items[1]), items[0], items[2])

    def between(self, items: list[Any]) -> Term:
        is_in = items[1].type == "BETWEEN"
        return terms.between(items[0], items[-3], items[-1], is_in=is_in)

    def member(self, items: list[Any]) -> Term:
        values = [_unquoted(each) for each in items[1:] if each.type == "STRING"]
        return terms.member(items[0], values, is_in=items[1].type == "IN")

    def search(self, items: list[Any]) -> Term:
        is_found = len(items) == 3
        return terms.search(items[-2].type, items[0], _unquoted(items[-1]), is_found=is_found)

    def plus(self, items: list[Any]) -> Term:
        found: Term = items[0]
        return found

    def minus(self, items: list[Any]) -> Term:
        return terms.negative(_column(items[0]), items[1])

    def negate(self, items: list[Any]) -> Term:
        return terms.negated(_column(items[0]), items[1])

    def string(self, items: list[Any]) -> Term:
        return terms.text(_column(items[0]), _unquoted(items[0]))

    def whole(self, items: list[Any]) -> Term:
        return terms.whole(_column(items[0]), items[0])

    def decimal(self, items: list[Any]) -> Term:
        return terms.decimal(_column(items[0]), items[0])

    def true(self, items: list[Any]) -> Term:
        return terms.boolean(_column(items[0]), True)

    def false(self, items: list[Any]) -> Term:
        return terms.boolean(_column(items[0]), False)

    def nothing(self, items: list[Any]) -> Term:
        return terms.boolean(_column(items[0]), None)

    def property(self, items: list[Any]) -> Term:
        return terms.named(_column(items[0]), str(items[0]))


def _unquoted(token: str) -> str:
    return token[1:-1].replace("''", "'")


def _word(token: Token) -> Token:
    """Turns a name that is a keyword into that keyword."""
    word = token.upper()
    return token.update(type=word) if word in _WORDS else token


@lru_cache(maxsize=1)
def _parser() -> Lark:
    """The parser. It is built for the first expression, which takes some milliseconds."""
    return Lark(
        _GRAMMAR,
        parser="lalr",
        lexer="basic",
        transformer=_Terms(),
        lexer_callbacks={"ID": _word},
    )
