"""The commented TOML file that ``climassay factcheck init`` writes."""

COMMENTED = """\
# A debate about climate claims: who takes part, and by which rules.
# climassay check "CLAIM" --config this-file.toml

model = "local:smollm2"        # of everybody who has none of its own; local:HUB_ID_OR_FOLDER or openai:MODEL
scale = "accuracy"             # five steps from false to true; or climate-feedback (its twelve verdicts),
                               # climate-fever, science-feedback, binary, or a .toml file of your own
rounds = 3                     # at most
split = "model"                # who splits a claim into statements: model, rules, none
verdict_first = false          # true: verdict before evidence, agreement and draft (for comparison)
context_prefix = false         # put "This claim is made in a climate-change context:" before each claim
check_claims = true            # tell apart what cannot be checked or is not about climate
latest_only = false            # use the latest edition of each document only
head = ""                      # file of a trained verdict head: climassay factcheck train
entailment = false             # measure whether cited passages entail the sentences they support
leave_one_out = false          # ask the mediator again without each advocate in turn
temperature = 0.0
seed = 0
# max_output_tokens = 4000     # limit of every generated answer; what a model thinks before it comes on top
# reasoning_effort = "low"     # how much models behind a server are to think, in the provider's words

[mediator]
style = "auto"                 # expert trusts all sources, neutral favours none; auto: neutral with an adversary
decide = "mediator"            # pool: from the advocates' probabilities and weights, for models too small to weigh
# model = "openai:gpt-4o"      # its own model

# How the models are asked: strong for those behind an API and from 3 billion parameters, small for others.
[profile]
name = "auto"                  # small, strong; auto: by the size of the model
# scored = true                # any entry of it can be set by itself; verdicts by probabilities, not by a JSON answer
# brief = true                 # short prompts, for models too small to follow every rule
# calibrated = true            # correct probabilities by a prompt without content
# text_tokens = 80             # room for a draft, an explanation or a reply; also excerpt_words, passages, side_check
# queries = 3                  # search queries that it writes for each statement; 0: the statement alone
# grade_passages = true        # it grades the passages found, and only those that bear on the claim are shown

# One table for each advocate. Make its collections first: climassay corpus add ipcc reports/*.pdf
[[advocate]]
name = "IPCC"
collections = ["ipcc"]         # one or several
weight = 1.0                   # authority: 1 is high, 0.5 medium, less is low
# passages = 8                 # put before it at a time; by the profile: 8, of a small model 4
# about = "..."                # what its source is, in one line; the titles of its documents by default
# excerpt_words = 120          # of each passage, its sentences nearest to the claim; 0: all of it; by the profile
rerank = false                 # choose among four times as many passages by their nearest sentences
# min_cosine = 0.4             # similarity below which a passage is not relevant; the encoder's threshold by default
# model = "local:my-model"     # its own model

[[advocate]]
name = "abstracts"
collections = ["abstracts"]
weight = 0.4

# The model's own knowledge, without passages (Climinator+):
# [[advocate]]
# name = "model"
# kind = "plain"
# weight = 0.4

# An advocate that argues the stance of its source; the mediator is then neutral:
# [[advocate]]
# name = "contrarian"
# kind = "adversarial"
# collections = ["pamphlet"]
# weight = 0.25                # an adversary's is low where none is set
# stance = "present warming is natural and nothing to worry about"
"""
