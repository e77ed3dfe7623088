"""From text to tree (cel-go parser/parser.go, parser/gen/CEL.g4).

Of words that do not fit, the parser leaves one out if the next one fits, and takes an operator without its operand; at
any other it stops (antlr4 DefaultErrorStrategy: singleTokenDeletion, recover).

Three calls of functions for each level of parentheses keep deep expressions below Python's own limit.
"""

from collections.abc import Sequence

from lastcall.kube.cel.ast import Call, Constant, Entry, Expression, ListLiteral, MapLiteral, Name, Select, Struct, Tree
from lastcall.kube.cel.errors import CompileError, Issue
from lastcall.kube.cel.parsing import literals
from lastcall.kube.cel.parsing.builder import MOST_NODES, Builder, TooManyNodes
from lastcall.kube.cel.parsing.lexer import END, Token, tokens
from lastcall.kube.cel.parsing.macros import METHODS, NotExpanded, presence
from lastcall.kube.cel.values import Scalar

LONGEST = 100_000
"""Code points of an expression."""
DEEPEST = 250
"""Levels of expressions within each other."""
RESERVED = frozenset(
    ("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
     "package", "namespace", "null", "return", "true", "var", "void", "while")
)  # fmt: skip
_TOO_DEEP = f"expression recursion limit exceeded: {DEEPEST}"
_LEVELS: Sequence[tuple[str, ...]] = (
    ("||",),
    ("&&",),
    ("<", "<=", ">=", ">", "==", "!=", "in"),
    ("+", "-"),
    ("*", "/", "%"),
)
_PRECEDENCE = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators}
_FUNCTIONS = {"in": "@in"} | {each: f"_{each}_" for each in _PRECEDENCE if each != "in"}
_STARTS = frozenset(
    ("[", "{", "(", ".", "-", "!", "true", "false", "null", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES",
     "IDENTIFIER")
)  # fmt: skip
_LITERALS = {"NUM_INT", "NUM_UINT", "NUM_FLOAT", "STRING", "BYTES", "true", "false", "null"}
_BEGINNINGS = "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
_EXPECTED = f"{{'[', '{{', '(', '.', '-', '!', {_BEGINNINGS}"
_EXPECTED_INDEX = f"{{'[', '{{', '(', '.', '-', '!', '?', {_BEGINNINGS}"
_EXPECTED_ARGUMENT = f"{{'[', '{{', '(', ')', '.', '-', '!', {_BEGINNINGS}"
_EXPECTED_ELEMENT = f"{{'[', ']', '{{', '(', '.', ',', '-', '!', '?', {_BEGINNINGS}"
_EXPECTED_ENTRY = f"{{'[', '{{', '}}', '(', '.', ',', '-', '!', '?', {_BEGINNINGS}"
_GOES_ON = frozenset((*_PRECEDENCE, "?"))
"""What may follow an operand that is wrong."""


class _Stop(Exception):
    """A word does not fit, and nothing after it is read."""


def parse(source: str) -> Tree:
    """Parse an expression. Raises CompileError."""
    if len(source) > LONGEST:
        why = f"expression code point size exceeds limit: size: {len(source)}, limit {LONGEST}"
        raise CompileError(source, [Issue(None, why)])
    words, issues = tokens(source)
    parser = _Parser(source, words, issues)
    root = parser.whole()
    if root is None or issues:
        raise CompileError(source, issues)
    return Tree(source, root, parser.build.offsets, parser.build.macros)


class _Parser:
    def __init__(self, source: str, words: list[Token], issues: list[Issue]) -> None:
        self._source, self._words, self._issues = source, words, issues
        self._at = 0
        self._depth = 0
        self._expected = _EXPECTED
        """What an expression may begin with here."""
        self.build = Builder()

    def whole(self) -> Expression | None:
        try:
            root = self._expression()
            if self._word.kind != END:
                self._unexpected("<EOF>", "extraneous" if self._words[self._at + 1].kind == END else "mismatched")
            return root
        except _Stop:
            return None
        except RecursionError:
            self._issues.append(Issue(None, _TOO_DEEP))
            return None
        except TooManyNodes:
            self._issues.append(
                Issue(None, f"expression has more than {MOST_NODES} parts once its macros are expanded")
            )
            return None

    # -- words ---------------------------------------------------------------------------------------------------------

    @property
    def _word(self) -> Token:
        return self._words[self._at]

    def _take(self, kind: str) -> Token | None:
        """The next word if it is one of this kind."""
        word = self._words[self._at]
        if word.kind != kind:
            return None
        self._at += 1
        return word

    def _need(self, kind: str, expected: str = "") -> Token:
        word, wanted = self._take(kind), expected or f"'{kind}'"
        if word is None and self._word.kind != END and self._words[self._at + 1].kind == kind:
            self._complain(self._word, f"extraneous input '{self._word.text}' expecting {wanted}")
            self._at += 1
            word = self._take(kind)
        if word is None:
            opens = self._word.kind in _STARTS
            if expected or (opens if kind != ":" else not opens) or self._word.kind == ",":
                self._unexpected(wanted)
            self._syntax(self._word, f"missing '{kind}' at '{self._word.text}'")
            raise AssertionError("it stopped")
        return word

    def _unexpected(self, expected: str, what: str = "mismatched") -> None:
        self._syntax(self._word, f"{what} input '{self._word.text}' expecting {expected}")

    def _syntax(self, word: Token, text: str) -> None:
        self._complain(word, text)
        raise _Stop

    def _complain(self, word: Token, text: str) -> None:
        """As `_syntax`, and go on."""
        self._issues.append(Issue(word.offset, f"Syntax error: {text}"))

    def _wrong(self, text: str) -> Expression:
        """Return a placeholder for an operand that does not begin with this word; stop where no operator follows."""
        self._complain(self._word, text)
        if self._word.kind not in _GOES_ON:
            raise _Stop
        return Constant(self.build.id(self._word.offset), None)

    def _left_out(self, closing: str, expected: str) -> None:
        """Leave out a word that begins nothing if the next one is one of `closing`."""
        word = self._word
        if word.kind not in _STARTS and word.kind not in (END, *closing) and self._words[self._at + 1].kind in closing:
            self._complain(word, f"extraneous input '{word.text}' expecting {expected}")
            self._at += 1

    def _issue(self, offset: int, text: str) -> None:
        self._issues.append(Issue(offset, text))

    # -- expressions ---------------------------------------------------------------------------------------------------

    def _expression(self) -> Expression:
        self._depth += 1
        if self._depth > DEEPEST:
            self._issues.append(Issue(None, _TOO_DEEP))
            raise _Stop
        condition = self._binary()
        if (question := self._take("?")) is not None:
            id_ = self.build.id(question.offset)
            then = self._binary()
            self._need(":")
            condition = Call(id_, "_?_:_", (condition, then, self._expression()))
        self._depth -= 1
        return condition

    def _binary(self) -> Expression:
        """Operators with two operands. Those of one level join from the left; `&&` and `||` make a balanced tree."""
        operands, operators = [self._unary()], list[Token]()
        while self._word.kind in _PRECEDENCE:
            level = _PRECEDENCE[self._word.kind]
            while operators and _PRECEDENCE[operators[-1].kind] > level:
                self._join(operands, operators)
            while level > 1 and operators and _PRECEDENCE[operators[-1].kind] == level:
                self._join(operands, operators)
            operators.append(self._word)
            self._at += 1
            operands.append(self._unary())
        while operators:
            self._join(operands, operators)
        return operands[0]

    def _join(self, operands: list[Expression], operators: list[Token]) -> None:
        """Replace the operands of the last operator, of all last ones of `&&` or `||`, by their call."""
        last = operators[-1]
        count = 1
        if _PRECEDENCE[last.kind] <= 1:
            while count < len(operators) and operators[-count - 1].kind == last.kind:
                count += 1
        ids = [self.build.id(each.offset) for each in operators[-count:]]
        terms = operands[-count - 1 :]
        del operators[-count:], operands[-count - 1 :]
        operands.append(_balanced(_FUNCTIONS[last.kind], ids, terms, 0, len(ids) - 1))

    def _unary(self) -> Expression:
        """A member, perhaps after `!` or `-`; two equal signs cancel each other."""
        sign = self._word
        count = 0
        if sign.kind in ("!", "-"):
            while self._word.kind == sign.kind:
                number = self._words[self._at + 1].kind in ("NUM_INT", "NUM_FLOAT")
                if sign.kind == "-" and number and count == 0:
                    break
                self._at += 1
                count += 1
        id_ = self.build.id(sign.offset) if count % 2 else 0
        if count == 1 and sign.kind == "-" and self._word.kind not in _STARTS:
            self._complain(self._word, f"no viable alternative at input '{self._since(sign)}'")
        node = self._primary()
        while True:
            word = self._word
            if word.kind == ".":
                self._at += 1
                node = self._member(node, word)
            elif word.kind == "[":
                self._at += 1
                index_id = self.build.id(word.offset)
                function = "_[?_]" if self._take("?") else "_[_]"
                self._expected = _EXPECTED_INDEX if function == "_[_]" else _EXPECTED
                node = Call(index_id, function, (node, self._expression()))
                self._need("]")
            else:
                break
        return Call(id_, "!_" if sign.kind == "!" else "-_", (node,)) if count % 2 else node

    def _member(self, operand: Expression, dot: Token) -> Expression:
        """What follows a dot."""
        if self._take("?"):
            word = self._identifier()
            field = Constant(self.build.id(word.offset), _unescaped(word))
            return Call(self.build.id(dot.offset), "_?._", (operand, field))
        if self._word.kind in _GOES_ON:
            return self._wrong(f"no viable alternative at input '{self._since(dot)}'")
        word = self._identifier()
        opening = self._take("(") if word.kind == "IDENTIFIER" else None
        if opening is None:
            if word.kind == "ESC_IDENTIFIER":
                self._issue(word.offset, "unsupported syntax: '`'")
            return Select(self.build.id(dot.offset), operand, _unescaped(word))
        id_ = self.build.id(opening.offset)
        arguments = self._arguments()
        expand = METHODS.get((word.text, len(arguments)))
        call = Call(id_, word.text, arguments, operand)
        if expand is None:
            return call
        self.build.here = opening.offset
        try:
            made = expand(self.build, operand, arguments)
        except NotExpanded as error:
            self._issue(self.build.offsets[error.id], error.message)
            return call
        self.build.macros[made.id] = call
        return made

    def _identifier(self) -> Token:
        word = self._word
        if word.kind in ("IDENTIFIER", "ESC_IDENTIFIER"):
            self._at += 1
            return word
        if word.kind in ("true", "false", "null"):
            self._unexpected("IDENTIFIER")
        self._syntax(word, f"no viable alternative at input '{self._since(self._words[self._at - 1])}'")
        raise AssertionError("it stopped")

    def _since(self, first: Token) -> str:
        """The source from a word to the end of this one."""
        word = self._word
        return self._source[first.offset : word.offset + (0 if word.kind == END else len(word.text))]

    def _arguments(self) -> tuple[Expression, ...]:
        """Parse what is between parentheses, after the first one."""
        if self._take(")"):
            return ()
        self._left_out(")", _EXPECTED_ARGUMENT)
        if self._take(")"):
            return ()
        self._expected = _EXPECTED_ARGUMENT
        made = [self._expression()]
        while self._take(","):
            made.append(self._expression())
        self._need(")")
        return tuple(made)

    def _primary(self) -> Expression:
        word = self._word
        if word.kind in _STARTS:
            self._expected = _EXPECTED
        if self._take("("):
            inner = self._expression()
            self._need(")")
            return inner
        if word.kind in ("IDENTIFIER", "."):
            return self._name()
        if word.kind == "[":
            self._at += 1
            return self._list(self.build.id(word.offset))
        if word.kind == "{":
            self._at += 1
            return self._map(self.build.id(word.offset))
        if word.kind in _LITERALS or word.kind == "-":
            return self._literal()
        expected, self._expected = self._expected, _EXPECTED
        follows = self._words[self._at + 1].kind if word.kind != END else END
        if follows in _STARTS or (self._at and self._words[self._at - 1].kind == "!"):
            self._complain(word, f"extraneous input '{word.text}' expecting {expected}")
            if word.kind == END:
                raise _Stop
            self._at += 1
            return self._primary()
        return self._wrong(f"mismatched input '{word.text}' expecting {expected}")

    def _literal(self) -> Expression:
        start = self._word
        sign = "-" if self._take("-") else ""
        word = self._word
        if sign and word.kind not in ("NUM_INT", "NUM_FLOAT"):
            self._unexpected(_EXPECTED)
        self._at += 1
        value: Scalar = None
        try:
            match word.kind:
                case "NUM_INT":
                    value = literals.integer(sign + word.text)
                case "NUM_FLOAT":
                    value = literals.double(sign + word.text)
                case "NUM_UINT":
                    value = literals.unsigned(word.text)
                case "STRING":
                    value = literals.string(word.text)
                case "BYTES":
                    value = literals.octets(word.text[1:])
                case "true" | "false":
                    value = word.kind == "true"
        except ValueError as error:
            self._issue(start.offset, str(error))
        return Constant(self.build.id(start.offset), value)

    def _name(self) -> Expression:
        """A name, the call of a function, or a struct."""
        start = self._word
        dot = "." if self._take(".") else ""
        if self._word.kind != "IDENTIFIER":
            return self._wrong(f"no viable alternative at input '{self._since(start)}'")
        word = self._need("IDENTIFIER")
        if (opening := self._take("(")) is not None:
            id_ = self.build.id(opening.offset)
            arguments = self._arguments()
            if word.text in RESERVED:
                self._issue(start.offset, f"reserved identifier: {word.text}")
            if word.text == "has" and not dot and len(arguments) == 1:
                return self._presence(id_, opening, arguments)
            return Call(id_, dot + word.text, arguments)
        if (names := self._struct_names()) is not None:
            opening = self._need("{")
            return self._struct(self.build.id(opening.offset), dot + ".".join((word.text, *names)))
        if word.text in RESERVED:
            self._issue(start.offset, f"reserved identifier: {word.text}")
        return Name(self.build.id(word.offset), dot + word.text)

    def _presence(self, id_: int, opening: Token, arguments: tuple[Expression, ...]) -> Expression:
        call = Call(id_, "has", arguments)
        self.build.here = opening.offset
        try:
            made = presence(self.build, arguments[0])
        except NotExpanded as error:
            self._issue(self.build.offsets[error.id], error.message)
            return call
        self.build.macros[made.id] = call
        return made

    def _struct_names(self) -> list[str] | None:
        """The rest of a struct's type name, when a brace follows the names that come next."""
        at, names = self._at, []
        while self._words[at].kind == "." and self._words[at + 1].kind == "IDENTIFIER":
            names.append(self._words[at + 1].text)
            at += 2
        if self._words[at].kind != "{":
            return None
        self._at = at
        return names

    def _list(self, id_: int) -> Expression:
        elements: list[Expression] = []
        optional: set[int] = set()
        self._left_out("],", _EXPECTED_ELEMENT)
        if self._take(","):
            self._need("]", "']'")
            return ListLiteral(id_, ())
        while not self._take("]"):
            if self._take("?"):
                optional.add(len(elements))
            self._expected = _EXPECTED if elements else _EXPECTED_ELEMENT
            elements.append(self._expression())
            if not self._take(","):
                self._need("]", "{']', ','}")
                break
            if self._word.kind == ",":
                self._unexpected("']'")
        return ListLiteral(id_, tuple(elements), frozenset(optional))

    def _map(self, id_: int) -> Expression:
        entries: list[Entry] = []
        if self._take(","):
            self._need("}", "'}'")
            return MapLiteral(id_, ())
        while not self._take("}"):
            optional = self._take("?") is not None
            self._expected = _EXPECTED if entries else _EXPECTED_ENTRY
            key = self._expression()
            colon = self._need(":")
            entry_id = self.build.id(colon.offset)
            entries.append(Entry(entry_id, key, self._expression(), optional))
            if not self._take(","):
                self._need("}", "{'}', ','}")
                break
        return MapLiteral(id_, tuple(entries))

    def _struct(self, id_: int, name: str) -> Expression:
        entries: list[Entry] = []
        while not self._take("}"):
            optional = self._take("?") is not None
            word = self._identifier()
            if word.kind == "ESC_IDENTIFIER":
                self._issue(word.offset, "unsupported syntax: '`'")
            colon = self._need(":")
            entry_id = self.build.id(colon.offset)
            entries.append(Entry(entry_id, _unescaped(word), self._expression(), optional))
            if not self._take(","):
                self._need("}", "{'}', ','}")
                break
        return Struct(id_, name, tuple(entries))


def _unescaped(word: Token) -> str:
    return word.text[1:-1] if word.kind == "ESC_IDENTIFIER" else word.text


def _balanced(function: str, ids: list[int], terms: list[Expression], low: int, high: int) -> Expression:
    """(parser/helper.go:balancingLogicManager)"""
    middle = (low + high + 1) // 2
    left = terms[middle] if middle == low else _balanced(function, ids, terms, low, middle - 1)
    right = terms[middle + 1] if middle == high else _balanced(function, ids, terms, middle + 1, high)
    return Call(ids[middle], function, (left, right))
