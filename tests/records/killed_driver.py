"""A small program for the kill tests: asks generations and scorings through the records and prints all answers.

python killed_driver.py FOLDER URL
"""

import json
import sys
from dataclasses import asdict

from climassay.models.contract import GenerationRequest, Message, OptionRequest
from climassay.models.openai.client import OpenAIModel
from climassay.models.openai.connection import RetryPolicy
from climassay.records import RecordedModel, Records
from climassay.redaction import TrustedUrl

SCHEMA = {"type": "object", "properties": {"why": {"type": "string", "maxLength": 20}}, "required": ["why"]}


def main() -> None:
    folder, url = sys.argv[1:]
    model = OpenAIModel("test", base_url=TrustedUrl(url), concurrency=4, policy=RetryPolicy(base=0.0))
    chats = [(Message("user", f"Number {number}: which letter?"),) for number in range(60)]
    generations = [GenerationRequest(chat) for chat in chats]
    generations += [GenerationRequest((Message("user", f"Why {n}?"),), schema=SCHEMA) for n in range(20)]
    scorings = [OptionRequest(chat, ("a", "b", "c", "d")) for chat in chats]
    with Records(f"sqlite:///{folder}/records.sqlite") as store, store.run("kill", {"url": url}) as run:
        recorded = RecordedModel(model, store, run)
        answers = [asdict(answer) for answer in recorded.generate(generations)]
        answers += [asdict(scores) for scores in recorded.option_logprobs(scorings)]
        run.save_results("answers", answers)
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
