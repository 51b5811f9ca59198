#!/bin/sh
# The selection to beat: random rows of the commonest style. Working directory: a copy of the workspace.
set -eu
exec "${PYTHON:-python3}" task/select_style.py --seed "${SEED:-0}"
