"""The command of lm-evaluation-harness with climassay's models in it."""

from lm_eval.__main__ import cli_evaluate

import climassay.integrations.lm_eval.model  # noqa: F401

if __name__ == "__main__":
    cli_evaluate()
