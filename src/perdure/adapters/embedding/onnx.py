"""A BERT model from a folder, run by onnxruntime on the processor. Needs the extra `local`; never torch.

The folder holds `model.onnx`, `vocab.txt` and `manifest.json`, which gives the model's name, its bound in tokens and the
sha256 of the two files. `tools/build_onnx.py` makes such a folder from all-MiniLM-L6-v2.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from perdure.adapters.embedding.static import unit
from perdure.adapters.embedding.wordpiece import WordPiece
from perdure.domain.errors import InvalidInput, Unsupported
from perdure.domain.values import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perdure.ports.models import TextKind, Vectors

FORMAT = 1
CHARS_PER_TOKEN_MAX = 16
"""A text is cut at this many characters per token before it is split, so that a long one costs no more than a short one."""
FILES = ("model.onnx", "vocab.txt")
INPUTS = {"input_ids", "attention_mask"}
TOKENS_MIN = 8
SPECIAL = ("[UNK]", "[CLS]", "[SEP]")


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the folder says of itself."""

    name: str
    tokens_max: int
    sha256: dict[str, str]


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A model that is ready to run."""

    session: Any  # an onnxruntime.InferenceSession, which has no types of its own
    pieces: WordPiece
    unknown: int
    first: int
    last: int
    dims: int


class OnnxEmbedder:
    """Embeds some hundred short texts a second on one core. Safe to share between threads.

    The folder is looked at when the embedder is made; the model is read at first use. A text is read up to the number of
    tokens that the manifest names. Texts are run one by one: what flows through the model is rounded in steps that depend
    on everything in a batch, so that in a batch the same text would not always get the same row.
    """

    def __init__(self, folder: str | Path, *, threads: int = 1) -> None:
        self._folder = Path(folder).expanduser()
        self._manifest = _manifest(self._folder)
        self._threads = threads
        self._lock = Lock()
        self._loaded: OnnxModel | None = None

    @property
    def name(self) -> str:
        return self._manifest.name

    @property
    def version(self) -> str:
        """The first twelve digits of the sha256 of both files' sha256."""
        return hashlib.sha256(json.dumps(self._manifest.sha256, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def dims(self) -> int:
        return self._ready().dims

    def embed(self, texts: Sequence[str], *, kind: TextKind = "passage") -> Vectors:
        """As the port says; `kind` makes no difference. `Unsupported` without the extra, `InvalidInput` for altered files."""
        import numpy as np

        model = self._ready()
        vectors = np.zeros((len(texts), model.dims), np.float32)
        for row, text in enumerate(texts):
            ids = self._ids(model, text)
            if any(at != model.unknown for at in ids[1:-1]):
                vectors[row] = _run(model.session, np.array([ids], np.int64))
        return unit(vectors)

    def _ids(self, model: OnnxModel, text: str) -> list[int]:
        room = self._manifest.tokens_max - 2
        return [model.first, *model.pieces.ids(text[: room * CHARS_PER_TOKEN_MAX])[:room], model.last]

    def _ready(self) -> OnnxModel:
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    self._loaded = _load(self._folder, self._manifest, self._threads)
        return self._loaded


def _run(session: Any, ids: NDArray[np.int64]) -> NDArray[np.float32]:
    import numpy as np

    with translated():
        row: NDArray[np.float32] = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0][0]
    return row


def _manifest(folder: Path) -> Manifest:
    try:
        said = json.loads((folder / "manifest.json").read_bytes())
        known = said["format"] == FORMAT
        manifest = Manifest(str(said["name"]), int(said["tokens_max"]), {name: str(said["sha256"][name]) for name in FILES})
    except OSError as error:
        raise InvalidInput(
            f"no embedder in {folder}: manifest.json cannot be read ({error.strerror}); make it with `tools/build_onnx.py`"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"manifest.json in {folder} is no embedder's; make the folder with `tools/build_onnx.py`") from error
    if not known or not manifest.name or manifest.tokens_max < TOKENS_MIN:
        raise InvalidInput(f"manifest.json in {folder} is of another format than {FORMAT}; make the folder again")
    return manifest


def _load(folder: Path, manifest: Manifest, threads: int) -> OnnxModel:
    runtime = _runtime()
    content, vocabulary = (_checked(folder / name, manifest.sha256[name]) for name in FILES)
    ids = {piece: at for at, piece in enumerate(vocabulary.decode("utf-8", "replace").split("\n"))}
    missing = [piece for piece in SPECIAL if piece not in ids]
    if missing:
        raise InvalidInput(f"vocab.txt in {folder} has no {', '.join(missing)}; make the folder again")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only: they are raised as well, and nothing else is for our users
    with translated():
        session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    dims = session.get_outputs()[0].shape[-1]
    if {one.name for one in session.get_inputs()} != INPUTS or not isinstance(dims, int):
        raise InvalidInput(f"model.onnx in {folder} does not turn {', '.join(sorted(INPUTS))} into one row a text")
    unknown, first, last = (ids[piece] for piece in SPECIAL)
    return OnnxModel(
        session=session, pieces=WordPiece(ids, unknown=unknown), unknown=unknown, first=first, last=last, dims=dims
    )


def _checked(path: Path, wanted: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read ({error.strerror}); make the folder again") from error
    if hashlib.sha256(content).hexdigest() != wanted:
        raise InvalidInput(f"{path} is not the file that manifest.json names; make the folder again, or fetch it again")
    return content


def _runtime() -> Any:
    try:
        # By name: it brings no types, and it need not be there where types are checked.
        return import_module("onnxruntime")
    except ImportError as error:
        raise Unsupported("a local model needs onnxruntime; install `perdure[local]`, or use the built-in embedder") from error


@contextmanager
def translated() -> Iterator[None]:
    """Everything onnxruntime raises inside leaves as `InvalidInput`, with the cause kept: the files are those that were
    made, so that the model itself cannot be run here."""
    state = _runtime().capi.onnxruntime_pybind11_state
    errors: tuple[type[Exception], ...] = (
        RuntimeError,
        *(one for one in vars(state).values() if isinstance(one, type) and issubclass(one, Exception)),
    )
    try:
        yield
    except errors as error:
        raise InvalidInput(
            f"onnxruntime cannot run the embedder's model ({type(error).__name__}); update it, or make the folder again"
        ) from error
