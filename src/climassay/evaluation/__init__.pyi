from .comparing import (
    SelfPreference as SelfPreference,
    ModelMeans as ModelMeans,
    experiment_means as experiment_means,
    self_preference as self_preference,
    published_means as published_means,
    rank_agreement as rank_agreement,
)
from .experiment_file import (
    BenchmarkSpec as BenchmarkSpec,
    ExperimentPlan as ExperimentPlan,
    HarnessSpec as HarnessSpec,
    ModelSpec as ModelSpec,
    load_plan as load_plan,
    parse_plan as parse_plan,
)
from .planning import (
    assume_binary as assume_binary,
    assume_from_run as assume_from_run,
    assume_mean as assume_mean,
    plan as plan,
)
from .report import (
    experiment_report as experiment_report,
    mcq_report_sections as mcq_report_sections,
)
from .judge_check import (
    BlindAnswer as BlindAnswer,
    PreferredAnswer as PreferredAnswer,
    RatedAnswer as RatedAnswer,
    alpha_estimate as alpha_estimate,
)
from .results import (
    Cell as Cell,
    CellRecord as CellRecord,
    ConstantScore as ConstantScore,
    Experiment as Experiment,
    Outcome as Outcome,
    TaskGroup as TaskGroup,
    load_experiment as load_experiment,
)
from .resources import (
    EvaluationResources as EvaluationResources,
    ExperimentCallbacks as ExperimentCallbacks,
    HarnessCell as HarnessCell,
    HarnessCells as HarnessCells,
    RecordModel as RecordModel,
    open_resources as open_resources,
    make_source_loaders as make_source_loaders,
)
from .runner import (
    count_answers as count_answers,
    draw_indices as draw_indices,
    limit_questions as limit_questions,
    read_benchmark as read_benchmark,
    run_experiment as run_experiment,
)
from .paper_scores import (
    PublishedScore as PublishedScore,
    published_scores as published_scores,
    has_published_questions as has_published_questions,
)
from .scores import (
    OVERALL as OVERALL,
    ExperimentScores as ExperimentScores,
    score_experiment as score_experiment,
    score_mcq as score_mcq,
)
from .settings import (
    ExamplePool as ExamplePool,
    PromptContext as PromptContext,
    Setting as Setting,
    SourceLoaders as SourceLoaders,
    TaskPrompts as TaskPrompts,
    Values as Values,
    after_prefix as after_prefix,
    example_values as example_values,
    make_setting as make_setting,
    open_pool as open_pool,
    parse_spec as parse_spec,
)
from .long_answers import Better as Better, Comparer as Comparer
from .tables import (
    experiment_tables as experiment_tables,
    mcq_tables as mcq_tables,
    published_benchmarks as published_benchmarks,
    screen_tables as screen_tables,
)
from .tasks import (
    Prediction as Prediction,
    Scoring as Scoring,
    ask_mcq as ask_mcq,
    option_orders as option_orders,
)
from .tuned import (
    TrainingDocument as TrainingDocument,
    collection_documents as collection_documents,
    question_data as question_data,
    split_questions as split_questions,
)
