"""Settings that all tests share."""

import os

from hypothesis import settings

# The same examples in every run, so that a change is judged by what it changed; the other profile looks for new ones.
# No deadlines: how long an example takes says more about what else the machine is doing.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
