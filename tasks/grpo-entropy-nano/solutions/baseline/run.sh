#!/bin/sh
# Plain GRPO, as it ships. Working directory: a copy of the workspace.
set -eu
mkdir -p data/outputs
cp data/grpo.json data/outputs/program.json
