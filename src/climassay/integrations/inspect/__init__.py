"""Tasks, scorers and a model provider for Inspect (``inspect eval climassay/mcq --model climassay/local:smollm2``)."""
