"""Judging: which of two texts has more of a quality, by pairs, probes on contrast pairs, sorting and insertion.

PairS (Liu et al. 2024) and PPairS (Maiya 2024), computed without waste and measured honestly: one pass over a tree of
shared prompts instead of two passes per pair, exact merges, folds that share no item, and baselines that have to be
beaten. See docs/judging.md.
"""

from typing import TYPE_CHECKING

from climassay.registry import export_lazily

if TYPE_CHECKING:
    from climassay.judging.anchor_labelling import (
        Inserted as Inserted,
        insert_items as insert_items,
    )
    from climassay.judging.benchmark import (
        JudgeBenchmark as JudgeBenchmark,
        JudgeResult as JudgeResult,
        JudgeTask as JudgeTask,
        benchmark_judges as benchmark_judges,
        evaluate_judge as evaluate_judge,
    )
    from climassay.judging.preferences import (
        Item as Item,
        ItemColumns as ItemColumns,
        ItemTable as ItemTable,
        parse_levels as parse_levels,
        read_items as read_items,
    )
    from climassay.judging.judges import (
        ContrastProbe as ContrastProbe,
        Harvester as Harvester,
        PointwiseProbe as PointwiseProbe,
        probe_judge as probe_judge,
    )
    from climassay.judging.preferences import Method as Method, Preferences as Preferences
    from climassay.judging.probe import (
        Probe as Probe,
        fit_contrast as fit_contrast,
        load_probe as load_probe,
        save_probe as save_probe,
    )
    from climassay.judging.preferences import (
        Quality as Quality,
        Questions as Questions,
        aspect_names as aspect_names,
        quality as quality,
    )
    from climassay.judging.ranking import ItemRanking as ItemRanking, rank_items as rank_items
    from climassay.judging.settings import BenchmarkSettings as BenchmarkSettings, ProbeSettings as ProbeSettings
    from climassay.judging.ranking import sort_items as sort_items
    from climassay.judging.training import (
        METHODS as METHODS,
        TrainedProbe as TrainedProbe,
        make_folds as make_folds,
        train_probe as train_probe,
    )
    from climassay.learning.harvest import ActivationStore as ActivationStore

export_lazily(__name__)
