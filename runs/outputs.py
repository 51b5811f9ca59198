"""Room: runs. From the declared outputs on the node to a stored bundle. Touches the node and the blob store."""

import tempfile
from dataclasses import dataclass

from evaluator.manifest import Manifest
from portal.core.blobs import BlobsUnavailable, blobs
from runs.environment import Environment, Wanted
from runs.failures import Code, Outage
from runs.scoring.bundle import Bundle, bundle_key, bundle_write

SPOOL_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class Collected:
    """A stored bundle, and a sentence for each declared output that is not in it."""

    bundle: Bundle
    problems: tuple[str, ...]


def outputs_collect(environment: Environment, manifest: Manifest) -> Collected:
    """Fetch what the manifest declares (regular files within their limits), write the bundle, store it under its hash.

    Raises NodeError and RequestRefused from the node, Outage while the blob store is away.
    """
    wanted = [Wanted(each.path, int(each.max_mb * 1024 * 1024)) for each in manifest.outputs]
    fetched = environment.outputs(wanted)
    with tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES) as target:
        bundle = bundle_write(((path, file, size) for path, file, size in fetched.files), target)
        for _, file, _ in fetched.files:
            file.close()
        target.seek(0)
        try:
            if not blobs().exists(bundle_key(bundle.sha256)):
                blobs().put(bundle_key(bundle.sha256), target)
        except BlobsUnavailable as problem:
            raise Outage(Code.STORE_DOWN) from problem
    return Collected(bundle, fetched.problems)
