#!/bin/sh
# The reference: replace it by what reaches your reference result. Working directory: a copy of the workspace.
set -eu
exec "$${PYTHON:-python3}" "$$(dirname "$$0")/solve.py" $reference_argument
