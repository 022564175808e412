"""The first half: a collection, a cited answer, a checked claim."""

import shlex
from typing import TYPE_CHECKING

from climassay.demo import CLAIM, PASSAGE_OVERLAP, PASSAGE_SIZE, QUESTION, SHORT_DEBATE
from climassay.errors import InputError
from climassay.models import DEFAULT_MODEL
from climassay.models.servers import is_served
from climassay.quickstart.step import NAME, Room, Step, Talk

if TYPE_CHECKING:
    from climassay.corpus import AddProgress
    from climassay.factcheck import DebateSettings

DOCUMENTS = "primer:physical_climate"
PASSAGES = 3
ROUNDS = 2
"""Of a debate of models behind a server; one on this machine has a single, short one."""


def has_collection(room: Room) -> bool:
    """Whether the quickstart's collection holds a document."""
    return _documents_found(room) is not None


def _documents_found(room: Room) -> str | None:
    from climassay.corpus.collection import survey_collections

    if not room.workspace.collections.is_dir():
        return None
    # A damaged collection beside it is none of its business.
    readable, _ = survey_collections(room.workspace)
    one = next((one for one in readable if one.name == NAME), None)
    if one is None or not one.documents or one.incomplete:
        return None
    return f"{one.documents} document(s) in {one.passages} passages, in the collection {NAME}."


def _add(room: Room, answer: str, talk: Talk) -> str:
    from climassay.api import add_documents

    try:
        files = shlex.split(answer)
    except ValueError:
        files = [answer]
    tell = talk.progress("Reading and indexing", None)
    done = 0

    def on_progress(progress: "AddProgress") -> None:
        nonlocal done
        tell(progress.passages_done - done)
        done = progress.passages_done

    report = add_documents(
        NAME,
        files,
        workspace=room.session,
        passage_size=PASSAGE_SIZE,
        passage_overlap=PASSAGE_OVERLAP,
        on_progress=on_progress,
    )
    kept = (*report.added, *report.already_there)
    if not kept:
        raise InputError(f"There is no text in it: {report.skipped[0].reason}")
    lines = [f"{one.title}: {one.passages} passages" for one in kept]
    return "\n".join([*lines, *(f"left out: {one.reason}" for one in report.skipped)])


def _add_command(_room: Room, answer: str) -> str:
    return f"climassay corpus add {NAME} {answer} --passage-size {PASSAGE_SIZE} --passage-overlap {PASSAGE_OVERLAP}"


def _asked(room: Room) -> str | None:
    for run in room.runs("ask"):
        answers = run.results.get("answer", [])
        if run.config.get("collections") == [NAME] and answers and not answers[0]["error"]:
            return f"{answers[0]['question']}\n{answers[0]['text']}"
    return None


def _ask(room: Room, answer: str, talk: Talk) -> str:
    from climassay.api import ask

    tell = talk.progress("Searching and asking", 1)
    found = ask(answer, NAME, model=room.model, workspace=room.session, passages=PASSAGES)
    tell(1)
    if found.error is not None:
        return found.text
    sources = [f"[{source.number}] {source.citation}" for source in found.sources]
    return "\n".join([found.text, *sources])


def _checked(room: Room) -> str | None:
    for run in room.runs("check", "factcheck"):
        transcripts = run.results.get("transcript", [])
        sides = [name for advocate in run.config.get("advocates", []) for name in advocate["collections"]]
        if NAME in sides and transcripts and transcripts[0]["verdict"]["outcome"] != "failed":
            verdict = transcripts[0]["verdict"]
            return f"{transcripts[0]['claim']['text']}\nVerdict: {verdict['label'] or verdict['outcome']}"
    return None


def debate_settings(room: Room) -> "DebateSettings":
    """A short debate of the documents with the model's own memory."""
    from climassay.factcheck import DebateSettings, advocates_from_names

    advocates = advocates_from_names([NAME], plain=True)
    if is_served(room.model_name):
        return DebateSettings(advocates=advocates, model=room.model_name, split="none", rounds=ROUNDS)
    return DebateSettings(advocates=advocates, model=room.model_name, split="none", rounds=1, profile=SHORT_DEBATE)


def _check(room: Room, answer: str, talk: Talk) -> str:
    from climassay.api import check_claim
    from climassay.factcheck import factcheck_page
    from climassay.factcheck.page_words import DEMONSTRATION, ENDING
    from climassay.grounding import written
    from climassay.io import write_file

    tell = talk.progress("Debating", None)
    transcript = check_claim(
        answer,
        settings=debate_settings(room),
        model=room.model,
        workspace=room.session,
        force=True,
        tell=lambda _claim, _event: tell(1),
    )
    page = room.folder / "factcheck.html"
    write_file(page, factcheck_page(transcript).encode())
    verdict = transcript.verdict
    if verdict.error is not None:
        return f"No verdict: {verdict.error}"
    opinions = [
        f"{opinion.advocate}, round {opinion.round}: {opinion.verdict or 'no opinion'}"
        for held in transcript.rounds
        for opinion in held.opinions
    ]
    reason = " ".join(written(sentence) for sentence in verdict.explanation)
    told = [DEMONSTRATION] if transcript.demonstration else []
    result = f"Verdict: {verdict.label}." if verdict.outcome == "verdict" else ENDING[verdict.outcome]
    return "\n".join([*opinions, f"{result} {reason}".strip(), *told, f"The page: {page}"])


def _check_command(room: Room, answer: str) -> str:
    short = SHORT_DEBATE
    rounds = (
        f"--rounds {ROUNDS}"
        if is_served(room.model_name)
        else f"--rounds 1 --passages {short.passages} --excerpt-words {short.excerpt_words} "
        f"--text-tokens {short.text_tokens}"
    )
    return (
        f"climassay check {shlex.quote(answer)} --collection {NAME} --plain --force --split none "
        f"{rounds}{_model_option(room)}"
    )


def _ask_command(room: Room, answer: str) -> str:
    return f"climassay ask {shlex.quote(answer)} --collection {NAME} --passages {PASSAGES}{_model_option(room)}"


def _model_option(room: Room) -> str:
    return "" if room.model_name == DEFAULT_MODEL else f" --model {room.model_name}"


FIRST_STEPS = (
    Step(
        "documents",
        "Add documents: PDF, HTML, Markdown, text, EPUB or tables become a collection that can be searched.",
        "Files or folders",
        lambda _room: DOCUMENTS,
        _add_command,
        _documents_found,
        _add,
    ),
    Step(
        "ask",
        "Ask: the answer rests on passages of the documents and names them, or says that they do not hold it.",
        "Your question",
        lambda _room: QUESTION,
        _ask_command,
        _asked,
        _ask,
        has_collection,
    ),
    Step(
        "check",
        "Check a claim: an advocate with the documents and one without debate it, and a mediator gives a verdict.",
        "A claim",
        lambda _room: CLAIM,
        _check_command,
        _checked,
        _check,
        has_collection,
    ),
)
