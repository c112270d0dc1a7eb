"""All mutants of a file in one source: each mutated expression asks which mutant is active.

A mutant is one of `cargo mutants --list --json`, with its number. `a < b` becomes

    (if crate::active::is(7) { (a) == (b) } else if crate::active::is(8) { (a) <= (b) } else { a < b })

and a function whose value is replaced returns that first. Comments around what is inserted say whose it is, so that
those that do not compile can be left out by the places of rustc's errors.
"""

import re
from dataclasses import dataclass, field

import tree_sitter_rust
from tree_sitter import Language, Node, Parser

PARSER = Parser(Language(tree_sitter_rust.language()))
# Where no function can be called that is not constant.
CONSTANT = {"const_item", "static_item", "const_block", "array_type", "enum_variant"}


@dataclass
class Edit:
    """What is done with a range of the source: `mutants` maps a number to the text that takes its place."""

    kind: str
    start: int
    end: int
    mutants: dict[int, str] = field(default_factory=dict)


def is_active(number: int) -> str:
    return f"crate::active::is({number})"


def marked(number: int, text: str) -> str:
    return f"/*<{number}*/{text}/*{number}>*/"


class Source:
    """A file with its tree."""

    def __init__(self, text: str) -> None:
        self.bytes = text.encode()
        self.tree = PARSER.parse(self.bytes)
        self.lines = [0]
        for line in text.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line.encode()))
        self.text_lines = text.splitlines(keepends=True)

    def offset(self, place: dict) -> int:
        """Lines and columns begin at 1; columns count characters."""
        line = place["line"] - 1
        return self.lines[line] + len(self.text_lines[line][: place["column"] - 1].encode())

    def text(self, start: int, end: int) -> str:
        return self.bytes[start:end].decode()

    def ancestor(self, start: int, end: int, *kinds: str) -> "Node | None":
        node = self.tree.root_node.descendant_for_byte_range(start, end)
        while node is not None and node.type not in kinds:
            node = node.parent
        return node

    def is_constant(self, start: int) -> bool:
        node = self.tree.root_node.descendant_for_byte_range(start, start + 1)
        while node is not None:
            if node.type in CONSTANT:
                return True
            if node.type == "function_item":
                modifiers = (child for child in node.children if child.type == "function_modifiers")
                return any("const" in child.text.decode().split() for child in modifiers)
            node = node.parent
        return False


def edit_of(source: Source, mutant: dict) -> "Edit | None":
    """The edit of one mutant, or nothing if it can be none."""
    start, end = source.offset(mutant["span"]["start"]), source.offset(mutant["span"]["end"])
    number, replacement, genre = mutant["number"], mutant["replacement"], mutant["genre"]
    if source.is_constant(start):
        return None
    if genre == "FnValue":
        kind = "iterator" if "impl Iterator" in mutant["function"]["return_type"] else "value"
        return Edit(kind, start, end, {number: replacement})
    if genre == "BinaryOperator":
        node = source.ancestor(start, end, "binary_expression", "compound_assignment_expr", "let_chain")
        if node is None or node.type == "let_chain":
            return None
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left.end_byte > start or right.start_byte < end:
            return None
        left, right = left.text.decode(), right.text.decode()
        if node.type == "binary_expression":
            left, right = f"({left})", f"({right})"
        return Edit("expression", node.start_byte, node.end_byte, {number: f"{left} {replacement} {right}"})
    if genre == "UnaryOperator":
        node = source.ancestor(start, end, "unary_expression")
        if node is None or node.start_byte != start:
            return None
        return Edit("expression", start, node.end_byte, {number: source.text(end, node.end_byte)})
    if genre == "MatchArmGuard":
        return Edit("guard", start, end, {number: replacement})
    if genre == "MatchArm":
        arm = source.ancestor(start, start + 1, "match_arm")
        pattern = arm.child_by_field_name("pattern")
        return Edit("arm", pattern.end_byte, pattern.end_byte, {number: ""})
    if genre == "StructField":
        node = source.ancestor(start, end, "struct_expression")
        text = source.text(node.start_byte, start) + source.text(end, node.end_byte)
        return Edit("expression", node.start_byte, node.end_byte, {number: text})
    return None


def render(source: Source, start: int, end: int, edits: list[Edit]) -> str:
    """A range of the source with its edits, which are sorted, those that hold others before them."""
    pieces, at = [], start
    edits = list(edits)
    while edits:
        edit = edits.pop(0)
        within = []
        while edits and edits[0].start < edit.end:
            within.append(edits.pop(0))
        pieces.append(source.text(at, edit.start))
        pieces.append(replace(edit, render(source, edit.start, edit.end, within)))
        at = edit.end
    pieces.append(source.text(at, end))
    return "".join(pieces)


def replace(edit: Edit, original: str) -> str:
    mutants = edit.mutants.items()
    if edit.kind == "value":
        returns = (f"if {is_active(number)} {{ {marked(number, f'return {text};')} }}" for number, text in mutants)
        return " ".join(returns) + original
    if edit.kind == "iterator":
        branches = original
        for number, text in mutants:
            mutated = marked(number, f"crate::active::Either::Mutated({{ {text} }})")
            otherwise = f"crate::active::Either::Original({{ {branches} }})"
            branches = f"if {is_active(number)} {{ {mutated} }} else {{ {otherwise} }}"
        return branches
    if edit.kind == "guard":
        condition = f"({original})"
        for number, text in mutants:
            asked = f"{is_active(number)} ||" if text == "true" else f"!{is_active(number)} &&"
            condition = f"({marked(number, asked)} {condition})"
        return condition
    if edit.kind == "arm":
        return "".join(f" {marked(number, f'if !{is_active(number)}')} " for number, _ in mutants)
    branches = "".join(f"if {is_active(number)} {{ {marked(number, text)} }} else " for number, text in mutants)
    numbers = ".".join(map(str, edit.mutants))
    return f"/*({numbers}*/({branches}{{ {original} }})/*{numbers})*/"


def mutate(text: str, mutants: list[dict]) -> tuple[str, set[int]]:
    """The source with all of these mutants, and the numbers of those that it cannot have."""
    source = Source(text)
    edits: dict[tuple, Edit] = {}
    left_out = set()
    for mutant in mutants:
        edit = edit_of(source, mutant)
        if edit is None:
            left_out.add(mutant["number"])
            continue
        edits.setdefault((edit.kind, edit.start, edit.end), edit).mutants.update(edit.mutants)
    ordered = sorted(edits.values(), key=lambda edit: (edit.start, -edit.end, edit.kind == "expression"))
    return render(source, 0, len(source.bytes), ordered), left_out


def culprits(text: bytes, start: int, end: int) -> set[int]:
    """Whose text rustc's error at these bytes is about: the innermost mutant, or all of the innermost expression."""
    for opening, closing in ((rb"/\*<([0-9]+)\*/", b"/*%b>*/"), (rb"/\*\(([0-9.]+)\*/", b"/*%b)*/")):
        best = None
        for found in re.finditer(opening, text[:end]):
            close = text.find(closing % found[1], found.end())
            if close >= start and found.start() < end:
                if best is None or close - found.start() < best[0]:
                    best = (close - found.start(), found[1])
        if best is not None:
            return {int(number) for number in best[1].split(b".")}
    return set()


def in_function(text: bytes, at: int) -> set[int]:
    """All mutants of the function that holds a byte of a mutated source."""
    node = PARSER.parse(text).root_node.descendant_for_byte_range(at, at + 1)
    while node is not None and node.type != "function_item":
        node = node.parent
    return {int(found) for found in re.findall(rb"/\*<([0-9]+)\*/", node.text)} if node is not None else set()
