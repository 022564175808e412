"""Grammars compiled for one tokenizer, and the answers that must follow them."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from climassay.errors import MissingExtraError, ModelError
from climassay.models.local.schema_grammar import SchemaGrammar, schema_grammar

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class Compiled(NamedTuple):
    """A schema's grammar, ready for a tokenizer."""

    grammar: SchemaGrammar
    automaton: Any
    """xgrammar's compiled grammar."""

    @property
    def max_tokens(self) -> int:
        """Tokens of the longest answer, its end included: a token is at least one byte."""
        return self.grammar.max_bytes + 1


class Constraint:
    """The progress of one answer through its grammar."""

    def __init__(self, compiled: Compiled) -> None:
        import xgrammar

        self._closed = compiled.grammar.closed
        self._matcher = xgrammar.GrammarMatcher(compiled.automaton)

    def fill(self, bitmask: Tensor, row: int) -> None:
        """Write into a row of a bitmask, int32 [rows, ceil(vocabulary / 32)], which tokens may come next."""
        self._matcher.fill_next_token_bitmask(bitmask, row)

    def accept(self, token: int) -> bool:
        """Go on by one token; True when the answer is complete and nothing can follow."""
        if not self._matcher.accept_token(token):
            raise AssertionError("a token was drawn that the grammar does not allow")
        return bool(self._matcher.is_terminated() or (self._closed and self._matcher.is_completed()))


class Grammars:
    """Compiles each schema once for a tokenizer."""

    def __init__(self, tokenizer: "PreTrainedTokenizerBase", vocabulary: int, ends: Sequence[int]) -> None:
        """Prepare the tokenizer's vocabulary; takes about a second for 50,000 tokens at first use.

        Args:
            tokenizer: Of the model.
            vocabulary: Width of the model's logits.
            ends: Tokens that end an answer.
        """
        self._tokenizer, self._vocabulary, self._ends = tokenizer, vocabulary, list(ends)
        self._compiler: Any = None
        self._compiled: dict[tuple[str, int | None], Compiled] = {}

    def compile(self, schema: Mapping[str, Any], room: int | None = None) -> Compiled:
        """Compile a schema.

        Args:
            schema: With bounds on strings and arrays.
            room: Tokens that an answer may have; where the schema's longest answer is longer, the bounds of its
                strings are lowered together until it fits.

        Raises:
            ModelError: The schema has no bounds, cannot be enforced, or needs more than ``room``.
        """
        key = json.dumps(schema)
        compiled = self._cached(key, schema, None)
        if room is None or compiled.max_tokens <= room:
            return compiled
        return self._cached(key, schema, _fitting_length(schema, room))

    def mask(self, logits: Tensor, constraints: Sequence[Constraint | None]) -> None:
        """Forbid in place what constraints do not allow.

        Args:
            logits: Shape [rows, vocabulary].
            constraints: One a row; None allows everything.
        """
        import xgrammar

        rows = [row for row, constraint in enumerate(constraints) if constraint is not None]
        if not rows:
            return
        bitmask = xgrammar.allocate_token_bitmask(len(constraints), self._vocabulary)
        for row, constraint in enumerate(constraints):
            if constraint is not None:
                constraint.fill(bitmask, row)
        xgrammar.apply_token_bitmask_inplace(logits, bitmask.to(logits.device), indices=rows)

    def _cached(self, key: str, schema: Mapping[str, Any], longest_string: int | None) -> Compiled:
        found = self._compiled.get((key, longest_string))
        if found is None:
            grammar = schema_grammar(schema, longest_string=longest_string)
            found = Compiled(grammar, self._automaton(grammar.text))
            self._compiled[key, longest_string] = found
        return found

    def _automaton(self, text: str) -> Any:
        try:
            import xgrammar
        except ImportError as error:
            raise MissingExtraError(
                "Answers with a schema need the package xgrammar: install it with `pip install 'climassay[local]'`."
            ) from error
        if self._compiler is None:
            if not self._ends:
                raise ModelError("The model has no token that ends an answer, so a schema cannot be enforced.")
            info = xgrammar.TokenizerInfo.from_huggingface(
                self._tokenizer, vocab_size=self._vocabulary, stop_token_ids=self._ends
            )
            self._compiler = xgrammar.GrammarCompiler(info, max_threads=max(1, torch.get_num_threads()))
        return self._compiler.compile_grammar(xgrammar.Grammar.from_ebnf(text))


def _fitting_length(schema: Mapping[str, Any], room: int) -> int:
    """Greatest common bound of strings with which the longest answer fits, by bisection."""
    smallest = schema_grammar(schema, longest_string=0).max_bytes + 1
    if smallest > room:
        raise ModelError(f"The schema's longest answer has {smallest} tokens at least, and there is room for {room}.")
    low, high = 0, room
    while low < high:
        middle = (low + high + 1) // 2
        fits = schema_grammar(schema, longest_string=middle).max_bytes + 1 <= room
        low, high = (middle, high) if fits else (low, middle - 1)
    return low
