#!/bin/sh
# The baseline, as it ships in the workspace. Working directory: a copy of the workspace.
set -eu
exec "$${PYTHON:-python3}" task/predict.py $baseline_argument
