# What every machine of the cluster needs to know; read it with `. environment.sh` before `ray start` and before a command.
# Keys belong here or into the secret store of the cluster, never into an experiment or a recipe.

# Records of all commands, in one PostgreSQL: pip install 'climassay[postgres]'
export CLIMASSAY_DATABASE_URL="postgresql://climassay:PASSWORD@postgres.cluster:5432/climassay"

# Collections in object storage; AWS_ENDPOINT only for a store that is not Amazon's.
export CLIMASSAY_COLLECTIONS="s3://climate/collections"
export AWS_ACCESS_KEY_ID="ACCESS"
export AWS_SECRET_ACCESS_KEY="SECRET"
export AWS_REGION="us-east-1"
export AWS_ENDPOINT="http://objects.cluster:9000"
export AWS_ALLOW_HTTP="true"

# Models and converted weights of a machine; on a disk of its own, or shared.
export CLIMASSAY_CACHE="/scratch/climassay"

# No statistics to the makers of Ray.
export RAY_USAGE_STATS_ENABLED=0
