"""Room: evaluator. A checked folder as what travels: `public.tar`, `sealed.age`, `manifest.json`, `digest`; and back.

The digest names the plain content (manifest, public tree, hidden tree), so sealing twice gives the same one.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator.manifest import Manifest, manifest_from_json
from evaluator.seal import SealBroken, seal_stream, unseal_stream
from evaluator.tars import TarLimits, TarRefused, tar_unpack
from evaluator.trees import Entry, tar_write, tree_digest, tree_entries

PUBLIC = ("task_description.md", "hint.md")
_CARD = "package.json"


@dataclass(frozen=True)
class Packed:
    """What `pack` wrote, by digest of the plain content and SHA-256 of the sealed file."""

    digest: str
    sealed_sha256: str
    public_bytes: int
    sealed_bytes: int


@dataclass(frozen=True)
class Hidden:
    """An opened hidden part: its manifest, and the folder that holds `evaluation/` and `solutions/`."""

    manifest: Manifest
    folder: Path
    digest: str


def public_entries(folder: Path) -> list[Entry]:
    """What the site may see: description, hint (the site keeps it hidden until viewed) and workspace."""
    files = [Entry(name, folder / name) for name in PUBLIC if (folder / name).is_file()]
    return [*files, *tree_entries(folder / "workspace", "workspace/")]


def hidden_entries(folder: Path) -> list[Entry]:
    """What only the evaluator may see."""
    return [*tree_entries(folder / "evaluation", "evaluation/"), *tree_entries(folder / "solutions", "solutions/")]


def package_digest(manifest: Manifest, public_tree: str, hidden_tree: str) -> str:
    """The task digest: SHA-256 over the manifest and the digests of both trees."""
    manifest_sha256 = hashlib.sha256(manifest.to_json().encode()).hexdigest()
    card = {"schema": 1, "manifest": manifest_sha256, "public": public_tree, "hidden": hidden_tree}
    return hashlib.sha256(json.dumps(card, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def pack(folder: Path, manifest: Manifest, recipients: Sequence[str], out: Path) -> Packed:
    """Write the four files into `out`. The folder must have passed `check`."""
    out.mkdir(parents=True, exist_ok=True)
    public, hidden = public_entries(folder), hidden_entries(folder)
    public_tree = tree_digest(public)
    digest = package_digest(manifest, public_tree, tree_digest(hidden))
    with (out / "public.tar").open("wb") as stream:
        tar_write(public, stream)
    card = json.dumps({"schema": 1, "public": public_tree, "digest": digest}, sort_keys=True).encode()
    own = [Entry("manifest.json", manifest.to_json().encode()), Entry(_CARD, card)]
    with tempfile.TemporaryFile() as plain:
        tar_write([*own, *hidden], plain)
        plain.seek(0)
        sealed_sha256 = seal_stream(plain, out / "sealed.age", recipients)
    (out / "manifest.json").write_text(manifest.to_json() + "\n")
    (out / "digest").write_text(digest + "\n")
    sizes = [(out / name).stat().st_size for name in ("public.tar", "sealed.age")]
    return Packed(digest, sealed_sha256, *sizes)


def open_sealed(sealed: Path, identities: Sequence[str], into: Path, *, digest: str | None = None) -> Hidden:
    """Open a sealed file into the fresh folder `into` and check it against the task digest. Raises `SealBroken`."""
    with tempfile.TemporaryFile() as plain:
        with sealed.open("rb") as source:
            unseal_stream(source, plain, identities)
        plain.seek(0)
        try:
            tar_unpack(plain, into, TarLimits(entries=200_000, total=64 * 1024**3))
        except TarRefused as error:
            raise SealBroken(f"the sealed part is refused: {error}") from error
    try:
        card = json.loads((into / _CARD).read_text())
        manifest = manifest_from_json((into / "manifest.json").read_text())
        public_tree = str(card["public"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SealBroken("the sealed part lacks its manifest or card; pack the task again") from error
    found = package_digest(manifest, public_tree, tree_digest(hidden_entries(into)))
    if digest is not None and found != digest:
        raise SealBroken(f"the sealed part belongs to the digest {found[:16]}..., asked was {digest[:16]}...")
    return Hidden(manifest, into, found)
