"""The contract's own functions: windows and token counts of models that tell, and of models that do not."""

import pytest

from climassay.models.contract import CHARACTERS_PER_TOKEN, DEFAULT_WINDOW, Windowed, token_count, window_of
from scripted_model import ScriptedModel


class Telling(ScriptedModel):
    window = 96

    def count_tokens(self, texts):
        return [len(text.split()) for text in texts]


def test_a_model_that_tells_is_believed():
    model = Telling()
    assert isinstance(model, Windowed)
    assert window_of(model) == 96
    assert token_count(model, "The sea is warm.") == 4


@pytest.mark.parametrize(("characters", "tokens"), [(0, 1), (3, 1), (4, 2), (35, 11)])
def test_a_model_that_does_not_tell_is_given_too_many_tokens_rather_than_too_few(characters, tokens):
    model = ScriptedModel()
    assert not isinstance(model, Windowed)
    assert window_of(model) == DEFAULT_WINDOW
    assert token_count(model, "x" * characters) == tokens >= characters / CHARACTERS_PER_TOKEN
