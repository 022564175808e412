"""Functions that reproduce the tables of the papers; a paper's recipe is imported when it is used."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from climassay.api.benchmarks import Models
from climassay.models import DEFAULT_MODEL
from climassay.session import Place, one_or_several

if TYPE_CHECKING:
    from climassay.evaluation import Scoring
    from climassay.factcheck import DebateSettings
    from climassay.reporting.paper_tables import Reproduction, ReproductionEstimate


def reproduce_climaqa(
    *,
    tables: Sequence[str] = (),
    models: Models = DEFAULT_MODEL,
    gold: str | Sequence[str] = (),
    silver: str | Sequence[str] = (),
    examples: str = "primer",
    source: str | Sequence[str] = (),
    held_out: str | Sequence[str] = (),
    fine_tuned: str = "",
    continued_pretraining: str = "",
    scoring: "Scoring" = "likelihood",
    encoder: str = "local:minilm",
    bert_model: str = "",
    entailment: str = "",
    limit: int | None = None,
    estimate: bool = False,
    seed: int = 0,
    output: Path | str | None = None,
    workspace: Place = None,
) -> "Reproduction | ReproductionEstimate":
    """Reproduce the tables of the ClimaQA paper with your models, next to the published rows.

    Every answer is stored, so that the same call after an interruption requests only the missing answers.

    Args:
        tables: Number of a table (3, 5, 6 or 7); can be repeated. By default all tables.
        models: Name of a model, a loaded model, or several of them.
        gold: File or folder of ClimaQA-Gold; can be repeated. By default the authors' files on the hub.
        silver: File or folder of ClimaQA-Silver; can be repeated. By default the authors' files on the hub.
        examples: Question file of the few-shot examples, or ``primer`` for the bundled questions.
        source: Collection of the five books from which the questions were made, for the setting rag-source; can be
            repeated.
        held_out: Collection of other textbooks, for the setting rag-held-out; can be repeated.
        fine_tuned: Adapter of a local model for the rows ft-silver, made by ``climassay tune finetune``.
        continued_pretraining: Adapter of a local model for the rows cp-held-out, made by ``climassay tune pretrain``.
        scoring: Way of scoring multiple-choice answers: likelihood (of the letters) or letter (generated).
        encoder: Encoder of phrase similarity. The paper uses the Universal Sentence Encoder, version 4:
            savedmodel:FOLDER (needs the extra use).
        bert_model: Model of BERTScore; by default the encoder. The paper uses roberta-large.
        entailment: Scorer of factual accuracy; without one, this metric is left out. The paper uses
            supports:openai:gpt-4o-mini.
        limit: Maximum number of questions per task, drawn at random.
        estimate: Whether to estimate calls, tokens and cost only, without calling a model.
        seed: Random seed for sampling and resampling.
        output: Folder to which the tables are written as Markdown, LaTeX, CSV, HTML and JSON.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: A table does not exist, the questions cannot be read, or a collection does not exist.
        ModelError: A model cannot be loaded, or returns no log-probabilities although the scoring needs them.
    """
    from climassay.evaluation.experiment_file import MetricSpec
    from climassay.reproduction.climaqa import ClimaqaRecipe

    recipe = ClimaqaRecipe(
        numbers=tables,
        limit=limit,
        seed=seed,
        files={"gold": one_or_several(gold), "silver": one_or_several(silver)},
        books={"rag-source": one_or_several(source), "rag-held-out": one_or_several(held_out)},
        adapters={"fine-tuned": fine_tuned, "continued-pretraining": continued_pretraining},
        examples=examples,
        metrics=MetricSpec(encoder=encoder, bert_model=bert_model, entailment=entailment, facts=False),
        scoring=scoring,
    )
    return recipe.reproduce(models, estimate=estimate, output=output, workspace=workspace)


def reproduce_climinator(
    *,
    tables: Sequence[str] = (),
    models: Models = DEFAULT_MODEL,
    claims: Path | str | None = None,
    myths: Path | str | None = None,
    report_claims: Path | str | None = None,
    truth: str | None = None,
    ipcc: str | None = None,
    wmo: str | None = None,
    abstracts: str | None = None,
    scientists: str | None = None,
    contrarian: str | None = None,
    settings: "DebateSettings | None" = None,
    limit: int | None = None,
    estimate: bool = False,
    seed: int = 0,
    output: Path | str | None = None,
    workspace: Place = None,
) -> "Reproduction | ReproductionEstimate":
    """Reproduce the tables of the Climinator paper with your models, next to the published rows.

    Every answer is stored, so that the same call after an interruption requests only the missing answers.

    Args:
        tables: Number of a table (1 to 5); can be repeated. By default all tables for which claims and collections are
            named.
        models: Name of the debating model, a loaded model, or several of them, which debate one after the other.
        claims: Claims of Climate Feedback with their verdicts (Tables 1, 3 and 4).
        myths: Claims of Skeptical Science with their verdicts (Table 2).
        report_claims: Claims from a contrarian report (Table 5); ``climassay factcheck claims`` lists a report's
            claims.
        truth: Column of the verdicts; by default the only column that contains nothing but verdicts.
        ipcc: Collection of the advocate IPCC: the Sixth Assessment Report.
        wmo: Collection of the advocate WMO: reports of the World Meteorological Organization.
        abstracts: Collection of the advocate AbsCC: abstracts of papers on climate change.
        scientists: Collection of the advocate S1000: abstracts of the most cited climate scientists.
        contrarian: Collection of the adversarial advocate NIPCC (Tables 3 to 5).
        settings: Settings of the debates; by default there are at most two rounds.
        limit: Maximum number of claims of each file, drawn at random.
        estimate: Whether to estimate calls, tokens and cost of the first rounds only, without calling a model.
        seed: Random seed for sampling and resampling.
        output: Folder to which the tables are written as Markdown, LaTeX, CSV, HTML and JSON.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: Claims or collections for a table are missing or cannot be read.
        ModelError: A model cannot be loaded.
    """
    from climassay.factcheck import DebateSettings
    from climassay.reproduction.climinator import ROUNDS, ClimateClaims, CliminatorRecipe

    feedback, myth_file, report = (None if file is None else Path(file) for file in (claims, myths, report_claims))
    collections = {"IPCC": ipcc, "WMO": wmo, "AbsCC": abstracts, "S1000": scientists, "NIPCC": contrarian}
    recipe = CliminatorRecipe(
        numbers=tables,
        limit=limit,
        seed=seed,
        claims=ClimateClaims(feedback, myth_file, report, truth),
        collections={advocate: name for advocate, name in collections.items() if name is not None},
        settings=settings or DebateSettings(rounds=ROUNDS),
    )
    return recipe.reproduce(models, estimate=estimate, output=output, workspace=workspace)


def reproduce_ppairs(
    *,
    tables: Sequence[str] = (),
    models: Models = DEFAULT_MODEL,
    newsroom: Path | str | None = None,
    summeval: Path | str | None = None,
    climate: Path | str | None = None,
    health: Path | str | None = None,
    energy: Path | str | None = None,
    statements: Path | str | None = None,
    paragraphs: Path | str | None = None,
    limit: int | None = None,
    estimate: bool = False,
    seed: int = 0,
    output: Path | str | None = None,
    workspace: Place = None,
) -> "Reproduction | ReproductionEstimate":
    """Reproduce the tables of the thesis on PPairS with your models, next to the published rows.

    The evaluation of the thesis has a data leak. Its results are labelled as leaky, and shown next to those of an
    evaluation without the leak. Results are stored, so that the same call after an interruption computes only the
    missing ones.

    Args:
        tables: Number of a table (4.1, 4.2, 4.3 or 4.4); can be repeated. By default all tables whose data is named.
        models: Local model whose hidden states are used, or several, which are evaluated one after the other.
        newsroom: Newsroom's human ratings (newsroom-human-eval.csv), for Tables 4.1 and 4.2.
        summeval: SummEval's ratings with articles (model_annotations.aligned.paired.jsonl, or a download of
            mteb/summeval), for Tables 4.1 and 4.2.
        climate: Claims on climate with Science Feedback's verdicts, for Table 4.3. From a file with a column topic or
            field, only the claims on climate are used, so that one file may be named for all three domains.
        health: Claims on health, for Table 4.3.
        energy: Claims on energy, for Table 4.3; they are judged by probes trained on the other domains.
        statements: Statements with their levels, for Table 4.4: JSON lines written by ``climassay confidence extract``,
            or ClimateX's table (.tsv or .csv).
        paragraphs: File of the reports' paragraphs, from which the contexts of ClimateX's statements are recovered.
        limit: Maximum number of articles per data set, of claims per domain (drawn evenly over the verdicts), and of
            statements per cycle.
        estimate: Whether to estimate calls and tokens only, without calling a model.
        seed: Seed of draws, splits and resampling.
        output: Folder to which the tables are written as Markdown, LaTeX, CSV, HTML and JSON.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: No data is named for a table, a file cannot be read, or the model does not expose hidden states.
        ModelError: The model cannot be loaded.
    """
    from climassay.reproduction.ppairs import PpairsRecipe

    files = {"Newsroom": newsroom, "SummEval": summeval}, {"Climate": climate, "Health": health, "Energy": energy}
    summaries, claims = (
        {name: str(file) for name, file in file_by_name.items() if file is not None} for file_by_name in files
    )
    recipe = PpairsRecipe(
        numbers=tables,
        limit=limit,
        seed=seed,
        summaries=summaries,
        claims=claims,
        statements=str(statements or ""),
        paragraphs=str(paragraphs or ""),
    )
    return recipe.reproduce(models, estimate=estimate, output=output, workspace=workspace)
