import pytest

from climassay.errors import InputError
from climassay.generation.validation import load_validator
from climassay.generation.validation.training import train_adapter
from climassay.prompts import Prompt
from climassay.tuning import TuningConfig
from tiny_models import save_tiny

pytestmark = pytest.mark.model

SHORT = "[user]\n{{ question }} {{ answer }}\n[assistant]\nVerdict:"
CONFIG = TuningConfig(rank=4, alpha=8, epochs=8, learning_rate=2e-2, batch_size=8, max_length=64, dtype="float32")


def test_an_adapter_learns_is_saved_and_is_loaded_by_its_folder(tmp_path, labels, make_draft):
    template = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
    model = save_tiny(tmp_path / "model", chat_template=template)
    prompts = tmp_path / "prompts"
    prompts.mkdir()
    (prompts / "validate.prompt").write_text(SHORT, encoding="utf-8")
    prompt, folder, told = Prompt("validate", SHORT, "test"), tmp_path / "adapter", []
    trained = train_adapter(
        labels, f"local:{model}", folder, CONFIG, prompt=prompt, precision=0.6, on_progress=told.append
    )
    assert trained.scores.evaluation.auroc.value > 0.9
    assert trained.record.provenance.items + trained.scores.evaluation.n == 60
    loaded = load_validator(f"adapter:{folder}", prompts=prompts)
    assert loaded.name == "adapter:adapter"
    drafts = [make_draft(1), make_draft(2, answer="It cools."), make_draft(3, kind="mcq", options=("a", "b"))]
    given = loaded.judge(drafts)
    # Batches of another make-up round otherwise.
    assert given[:2] == pytest.approx(trained.validator.judge(drafts)[:2], abs=1e-4)
    assert given[0] > given[1]
    assert given[2] is None
    assert load_validator(str(folder), prompts=prompts).threshold == trained.record.threshold
    with pytest.raises(InputError, match="another text of the prompt"):
        load_validator(f"adapter:{folder}")
    # The same again finds that it is done.
    steps = len(told)
    train_adapter(labels, f"local:{model}", folder, CONFIG, prompt=prompt, on_progress=told.append)
    assert len(told) == steps
