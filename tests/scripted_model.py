"""A model that answers as a test tells it to, for tests of what is done with answers."""

from climassay.models import Completion, OptionScores, Usage

USAGE = Usage(10, 5, 1)


class ScriptedModel:
    """Options are weighed by ``choose``, texts written by ``write``; both get the prompt as one text.

    Args:
        choose: From (prompt, options) to the option to prefer, to a list of log-probabilities, or to an exception.
        write: From (prompt, schema or None) to the text, to a completion, or to an exception.
        parameters: How many it tells that it has; None, as of a model behind a server, is asked as a strong model.
    """

    def __init__(self, choose=None, write=None, name="local:scripted", parameters=None):
        self.name = name
        self.parameters = parameters
        self.fingerprint = "5" * 64
        self.choose = choose or (lambda _, options: options[0])
        self.write = write or (lambda _, schema: "The passages bear on it." if schema is None else "{}")
        self.options: list[tuple[str, tuple[str, ...]]] = []
        """Prompts and options asked so far."""
        self.texts: list[str] = []
        """Prompts of the texts asked for so far."""

    def render(self, messages, assistant_prefix=""):
        return "\n".join(f"<{message.role}>{message.content}" for message in messages) + f"\n<answer>{assistant_prefix}"

    def generate(self, requests, *, on_result=None):
        return self._answer(requests, self._text, on_result)

    def option_logprobs(self, requests, *, on_result=None):
        return self._answer(requests, self._scores, on_result)

    def close(self):
        """Nothing to give back."""

    def _answer(self, requests, give, on_result):
        answers = []
        for index, request in enumerate(requests):
            answers.append(give(request))
            if on_result is not None:
                on_result(index, answers[-1])
        return answers

    def _text(self, request):
        prompt = self.render(request.messages, request.assistant_prefix)
        self.texts.append(prompt)
        text = self.write(prompt, request.schema)
        if isinstance(text, Completion):
            return text
        return Completion.failed(str(text)) if isinstance(text, Exception) else Completion(text, "stop", USAGE)

    def _scores(self, request):
        prompt = self.render(request.messages, request.assistant_prefix)
        self.options.append((prompt, request.options))
        chosen = self.choose(prompt, request.options)
        if isinstance(chosen, Exception):
            return OptionScores.failed(str(chosen))
        if isinstance(chosen, str):
            chosen = [-0.1 if option == chosen else -4.0 for option in request.options]
        return OptionScores(tuple(chosen), usage=USAGE)
