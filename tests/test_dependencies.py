"""Interfaces of other packages that are private, or that change: each has a test, so that a break says what broke.

docs/dependencies.md lists them. A release of a package that changes an interface turns one test red that has its name.
"""

import ast
import inspect
import io
import re
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from _trees import nodes_of
from PIL import GifImagePlugin, Image, ImageFile, PngImagePlugin, TiffImagePlugin

import finc_eval
from finc_eval.extractors.catalog import available_cards, load_card

PACKAGE = Path(finc_eval.__file__).parent
DOCS = Path(__file__).parent.parent / "docs" / "dependencies.md"


def check_h5py():
    """A file in a Python file, as 1.10 writes it: groups in the order of writing, texts of fixed length."""
    stream = io.BytesIO()
    access, made = h5py.h5p.create(h5py.h5p.FILE_ACCESS), h5py.h5p.create(h5py.h5p.FILE_CREATE)
    access.set_libver_bounds(h5py.h5f.LIBVER_V110, h5py.h5f.LIBVER_V110)
    access.set_fileobj_driver(h5py.h5fd.fileobj_driver, stream)
    made.set_obj_track_times(False)
    made.set_link_creation_order(h5py.h5p.CRT_ORDER_TRACKED | h5py.h5p.CRT_ORDER_INDEXED)
    layout, cache = h5py.h5p.create(h5py.h5p.DATASET_CREATE), h5py.h5p.create(h5py.h5p.DATASET_ACCESS)
    layout.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    layout.set_chunk((2,))
    layout.set_deflate(1)
    cache.set_chunk_cache(0, 0, 0.0)
    kind = h5py.h5t.py_create(h5py.string_dtype("utf-8", 3), logical=True)
    with h5py.File(h5py.h5f.create(b"x", h5py.h5f.ACC_TRUNC, fcpl=made, fapl=access)) as file:
        h5py.h5g.create(file.id, b"z", gcpl=h5py.h5p.create(h5py.h5p.GROUP_CREATE))
        space = h5py.h5s.create_simple((3,))
        dataset = h5py.Dataset(h5py.h5d.create(h5py.h5g.open(file.id, b"z"), b"a", kind, space, layout, dapl=cache))
        dataset[:] = np.array([b"a", b"\xc3\xa9", b""], "S3").view(dataset.dtype)
        file["b"] = 1
    assert stream.getvalue()[8] == 3  # version of the superblock: its structures have checksums
    with h5py.File(stream) as file:
        assert file.id.links.get_info(b"z").type == h5py.h5l.TYPE_HARD
        assert file["b"].id.get_create_plist().get_layout() != h5py.h5d.VIRTUAL
        assert list(file) == ["z", "b"] and file["z/a"].asstr()[:].tolist() == ["a", "é", ""]


def check_numpy():
    """The readers of headers of .npy, and the writer of a whole array."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.arange(6).reshape(2, 3), allow_pickle=False)
    stream.seek(0)
    assert np.lib.format.read_magic(stream) == (1, 0)
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    assert (shape, fortran, dtype) == ((2, 3), False, np.dtype(int))
    assert callable(np.lib.format.read_array_header_2_0)


def check_pillow():
    """The settings that decide what is read have the values of a fresh process; a tile's arguments can be replaced."""
    assert GifImagePlugin.LOADING_STRATEGY == GifImagePlugin.LoadingStrategy.RGB_AFTER_FIRST
    assert (ImageFile.LOAD_TRUNCATED_IMAGES, TiffImagePlugin.READ_LIBTIFF) == (False, False)
    assert PngImagePlugin.MAX_TEXT_CHUNK == ImageFile.SAFEBLOCK
    assert PngImagePlugin.MAX_TEXT_MEMORY == 64 * ImageFile.SAFEBLOCK
    stream = io.BytesIO()
    Image.new("RGB", (4, 4), "red").save(stream, "TIFF")
    with Image.open(stream) as image:
        (tile,) = image.tile
        image.tile = [tile._replace(args=("BGR", *tile.args[1:]))]
        assert image.getpixel((0, 0)) == (0, 0, 255)


def check_av():
    """The codecs by name, and one reformatter for all frames."""
    import av
    from av.video.reformatter import VideoReformatter

    assert "h264" in av.codecs_available and issubclass(av.FFmpegError, Exception)
    assert int(av.__version__.partition(".")[0]) >= 18
    frame = av.VideoFrame.from_ndarray(np.zeros((4, 4, 3), np.uint8), format="rgb24")
    assert VideoReformatter().reformat(frame, format="rgba", threads=1).to_ndarray().shape == (4, 4, 4)
    assert (int(frame.colorspace), int(frame.color_trc)) == (2, 2)
    assert hasattr(av.stream.Disposition, "attached_pic")


def check_torch():
    """Torch's switches for the rounding of products."""
    from finc_eval.numerics.precision import arithmetic

    with arithmetic():
        if hasattr(torch.backends.cuda.matmul, "fp32_precision"):  # newer versions refuse to read the older switches
            assert torch.backends.cuda.matmul.fp32_precision == torch.backends.cudnn.conv.fp32_precision == "ieee"
            assert torch.backends.mkldnn.matmul.fp32_precision in ("ieee", "bf16")
        else:
            assert torch.get_float32_matmul_precision() == "highest"
            assert isinstance(torch.backends.cudnn.allow_tf32, bool)


def check_torch_save(tmp_path):
    """Tensors of torch.save are mapped, with the sizes of their members as storages."""
    from finc_eval.core.files.tensors import tensors_in

    held = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.nn.Parameter(torch.ones(2)), "c": torch.ones(2).byte()}
    torch.save(held, tmp_path / "a.pt")
    found = tensors_in(tmp_path / "a.pt")
    assert all(torch.equal(found[name], one) for name, one in held.items())


def check_torchscript(tmp_path):
    """A network that was saved as TorchScript opens, and gives the same."""
    network = torch.nn.Linear(3, 2)
    torch.jit.save(torch.jit.trace(network, torch.ones(1, 3)), tmp_path / "a.pt")
    opened = torch.jit.load(tmp_path / "a.pt", map_location="cpu")
    assert torch.equal(opened(torch.ones(1, 3)), network(torch.ones(1, 3)))


def check_torchvision():
    """The blocks of Inception-v3, from which FID's network is derived, have their branches."""
    from torchvision.models import inception

    from finc_eval.extractors.networks.fid_inception import FidInception

    with torch.device("meta"):
        network = FidInception()
    assert isinstance(network, inception.Inception3)
    assert "Mixed_7c.branch3x3dbl_3b.conv.weight" in network.state_dict()
    assert network.fc.weight.shape == (1008, 2048)


def check_timm():
    """Each card's network has its name in timm, and the parts that embeddings are taken from."""
    import timm

    loaders = [load_card(name).loader for name in available_cards()]
    models = [loader.model for loader in loaders if loader.kind == "timm"]
    assert models and all(timm.is_model(model) for model in models)
    config = timm.get_pretrained_cfg("resnet18.a1_in1k")
    assert {"hf_hub_id", "url", "crop_pct", "interpolation", "crop_mode", "tag", "license"} <= set(dir(config))
    with torch.device("meta"):
        network = timm.create_model("resnet18", pretrained=False)
    assert all(hasattr(network, name) for name in ("forward_features", "forward_head", "num_classes"))


def check_typer():
    """The classes of commands have click's methods, which the verbs extend."""
    import typer
    from typer.core import TyperCommand, TyperGroup

    for name in ("make_parser", "parse_args", "get_params", "get_help_option", "format_help", "make_context", "invoke"):
        assert callable(getattr(TyperCommand, name))
    assert callable(TyperGroup.add_command) and callable(TyperGroup.main)
    holder = typer.Typer()
    holder.callback()(lambda: None)
    holder.command("verb")(lambda: None)
    group = typer.main.get_command(holder)
    assert [*group.commands] == ["verb"] and holder.registered_commands
    with pytest.raises(Exception) as wrong:
        group.make_context("x", ["verb", "--nothing"]) and group.commands["verb"].make_context("verb", ["--nothing"])
    assert hasattr(wrong.value, "format_message") and wrong.value.message


def check_rich():
    """The widths of texts in cells, and the columns of a bar."""
    from rich.cells import cell_len, chop_cells, set_cell_size
    from rich.progress import BarColumn, Progress, TextColumn

    assert (cell_len("日a"), chop_cells("日a", 2), set_cell_size("a", 3)) == (3, ["日", "a"], "a  ")
    assert Progress(TextColumn("{task.description}"), BarColumn(), disable=True).add_task("x", total=1) == 0


def check_fsspec():
    """A file system cuts the protocol off an address."""
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    assert store._strip_protocol("memory://a/b").strip("/") == "a/b"


def check_scikit_learn():
    """The checks of a classifier's arguments."""
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import validate_data

    class Own(BaseEstimator):
        pass

    assert validate_data(Own(), [[1.0, 2.0]]).shape == (1, 2)


def check_scikit_network():
    """Louvain takes a seed and finds two cliques."""
    from scipy.sparse import csr_matrix
    from sknetwork.clustering import Louvain

    assert {"resolution", "random_state"} <= set(inspect.signature(Louvain.__init__).parameters)
    cliques = csr_matrix(np.kron(np.eye(2), 1 - np.eye(5)))
    assert len(set(Louvain(random_state=0).fit_predict(cliques).tolist())) == 2


def check_faiss():
    """k-means takes a seed, and GPUs are counted."""
    import faiss

    rows = np.repeat(np.eye(2, dtype=np.float32), 50, 0)
    fit = faiss.Kmeans(2, 2, seed=0, gpu=False)
    fit.train(rows)
    assert sorted(fit.centroids.argmax(1).tolist()) == [0, 1] and faiss.get_num_gpus() >= 0


def check_datasets():
    """The types of columns that Hugging Face sets have."""
    datasets = pytest.importorskip("datasets")
    assert all(hasattr(datasets, name) for name in ("Image", "ClassLabel", "Array2D", "Array3D", "load_from_disk"))
    made = datasets.Dataset.from_dict(
        {"a": [0, 1]}, features=datasets.Features({"a": datasets.ClassLabel(names=["x", "y"])})
    )
    assert made.features["a"].names == ["x", "y"]


def check_open_clip():
    """The configuration, the tokenizer and the towers of CLIP by name."""
    open_clip = pytest.importorskip("open_clip")
    assert {"embed_dim", "vision_cfg", "text_cfg"} <= set(open_clip.get_model_config("ViT-B-32"))
    assert "ViT-B-32" in open_clip.list_models() and callable(open_clip.CLIP) and callable(open_clip.get_tokenizer)


CHECKS = {name.removeprefix("check_"): one for name, one in list(globals().items()) if name.startswith("check_")}
ROW = re.compile(r"^\| ([\w-]+) \| (.*`.*) \| (.*\.py) \|$", re.MULTILINE)
LISTED = {
    package: (re.findall("`([^`]+)`", interfaces), files.split(", "))
    for package, interfaces, files in ROW.findall(DOCS.read_text(encoding="utf-8"))
}

CHANGING = re.compile(
    r"\._[a-z]|^h5py\.h5|^numpy\.lib\.|^PIL\.\w+(Plugin|File)\b|^typer\.(core|main)\b|^rich\.cells|^torch\.(cpu|backends|jit)\b|"
    r"^torchvision\.models\.inception|^sklearn\.utils|^av\.(video|stream|container|codec)\b"
)
"""Names that are private, or that their packages do not document as public."""


def uses_in(path):
    """Dotted names of what a module uses of imported modules."""
    known = {}
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            for one in node.names:
                known[one.asname or one.name.partition(".")[0]] = one.name if one.asname else one.name.partition(".")[0]
                yield one.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for one in node.names:
                known[one.asname or one.name] = f"{node.module}.{one.name}"
                yield f"{node.module}.{one.name}"
    for node in nodes_of(path):
        words = []
        while isinstance(node, ast.Attribute):
            words, node = [node.attr, *words], node.value
        if words and isinstance(node, ast.Name) and node.id in known:
            yield ".".join([known[node.id], *words])


@pytest.mark.parametrize("package", CHECKS)
def test_an_interface_that_may_change_is_as_it_is_used(package, tmp_path):
    check = CHECKS[package]
    check(tmp_path) if inspect.signature(check).parameters else check()


def test_the_list_has_a_test_for_each_row_and_says_where_it_is_used():
    assert {name.replace("-", "_") for name in LISTED} == set(CHECKS)
    for interfaces, files in LISTED.values():
        text = "".join((PACKAGE / file).read_text(encoding="utf-8") for file in files)
        missing = [name for name in interfaces if not name.endswith("/") and name.rpartition(".")[2] not in text]
        assert not missing


def test_private_interfaces_of_other_packages_are_listed():
    prefixes = tuple(name for interfaces, _ in LISTED.values() for name in interfaces)
    found = {
        (path.relative_to(PACKAGE).as_posix(), name)
        for path in sorted(PACKAGE.rglob("*.py"))
        for name in uses_in(path)
        if CHANGING.search(name) and name.partition(".")[0] not in {"finc_eval", *sys.stdlib_module_names}
    }
    assert found and not [one for one in sorted(found) if not one[1].startswith(prefixes)]
