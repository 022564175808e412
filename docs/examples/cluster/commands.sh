# A cluster by hand, without containers: a head, workers, two vLLM servers. The same Python, Ray and climassay everywhere.

# On the head:
. ./environment.sh
ray start --head --port 6379 --num-cpus 8

# On each worker; --num-gpus is found out where there are drivers:
. ./environment.sh
ray start --address head.cluster:6379

# On two machines with GPUs, one server each (pip install vllm):
vllm serve Qwen/Qwen3-8B --port 8000 --max-logprobs 20

# On the head: documents into object storage, embedded by 64 workers; one such command at a time a collection.
climassay corpus add books /data/books --ray head.cluster:6379 --ray-workers 64 --ray-gpus-per-worker 0

# An experiment: the server's model is asked from here, the local one computes on the cluster's GPUs.
climassay evaluate run experiment.toml --ray head.cluster:6379 -o report.html

# Claims by the thousand, and a ranking by a trained probe.
climassay factcheck run claims.csv -c books --model openai:Qwen/Qwen3-8B --base-url http://vllm-1.cluster:8000/v1 --debates 256
climassay judge rank statements.csv --text statement --probe accuracy.safetensors --ray head.cluster:6379 --ray-gpus-per-worker 1

# Questions from the books, written by a local model on the workers.
climassay generate run recipe.toml --ray head.cluster:6379

# Afterwards, on every machine:
ray stop
