"""Small files that claim much: each made an earlier version crash, hang or take gigabytes."""

import json
import re
import struct

from fuzz.corpus import corpus


def sealed(header, tensors=b""):
    """A safetensors file with this header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + tensors


def metadata(body=None):
    """The metadata of a `.qwyc` file whose checksum is wrong."""
    return {"qwyc": json.dumps({"format": 2, "sha256": "", "body": body or {}})}


def many_axes():
    """A tensor of 100,000 axes: their product has millions of digits."""
    tensor = {"dtype": "U8", "shape": [2**61] * 100_000, "data_offsets": [0, 0]}
    return sealed({"__metadata__": metadata(), "a": tensor})


def many_tensors():
    """Tensors that all lie in the same bytes: 1 MB of them would be 10 GB of copies."""
    tensor = {"dtype": "U8", "shape": [1 << 20], "data_offsets": [0, 1 << 20]}
    names = {f"t{i}": tensor for i in range(10_000)}
    return sealed({"__metadata__": metadata(), **names}, bytes(1 << 20))


def many_lists():
    """A header of empty lists, which take 20 times as much in memory."""
    return sealed({"__metadata__": metadata([[] for _ in range(500_000)])})


def many_features():
    """A model of three trees that claims 2^27 - 1 features."""
    document = json.loads(corpus("xgboost-json")[2])
    document["learner"]["learner_model_param"]["num_feature"] = str(2**27 - 1)
    document["learner"] |= {"feature_names": [], "feature_types": []}
    return json.dumps(document).encode()


def many_categories():
    """129 categorical features, each with a category of code 2^24 - 1: offsets past 32 bits."""
    n = 129
    document = json.loads(corpus("xgboost-json")[0])
    model = document["learner"]["gradient_booster"]["model"]
    tree = {
        "tree_param": {"num_nodes": str(2 * n + 1), "num_feature": str(n), "size_leaf_vector": "1"},
        "id": 0,
    }
    left, right, feature = [], [], []
    for i in range(n):  # node 2i splits; 2i + 1 is a leaf, and 2i + 2 the next split
        left += [2 * i + 1, -1]
        right += [2 * i + 2, -1]
        feature += [i, 0]
    size = 2 * n + 1
    tree |= {
        "left_children": [*left, -1],
        "right_children": [*right, -1],
        "split_indices": [*feature, 0],
        "split_conditions": [0.5] * size,
        "default_left": [0] * size,
        "split_type": [int(x >= 0) for x in [*left, -1]],
        "categories_nodes": list(range(0, 2 * n, 2)),
        "categories_segments": list(range(n)),
        "categories_sizes": [1] * n,
        "categories": [2**24 - 1] * n,
        "base_weights": [0.0] * size,
        "sum_hessian": [1.0] * size,
        "parents": [0] * size,
        "loss_changes": [0.0] * size,
    }
    model |= {"trees": [tree], "tree_info": [0], "iteration_indptr": [0, 1], "cats": {"enc": []}}
    model["gbtree_model_param"]["num_trees"] = "1"
    document["learner"]["learner_model_param"]["num_feature"] = str(n)
    document["learner"] |= {"feature_names": [], "feature_types": []}
    return json.dumps(document).encode()


def shared_categories():
    """7,500 nodes of a LightGBM tree that share one set of 1.6 million categories."""
    n_nodes, n_words = 7_500, 50_000

    def repeated(value, n=n_nodes):
        return " ".join([value] * n)

    lines = {
        "num_leaves": n_nodes + 1,
        "num_cat": 1,
        "split_feature": repeated("0"),
        "threshold": repeated("0"),
        "decision_type": repeated("1"),
        "left_child": " ".join(str(i + 1 if i + 1 < n_nodes else -1) for i in range(n_nodes)),
        "right_child": " ".join(str(~(i + 1)) for i in range(n_nodes)),
        "leaf_value": repeated("0.1", n_nodes + 1),
        "cat_boundaries": f"0 {n_words}",
        "cat_threshold": repeated("4294967295", n_words),
    }
    text = corpus("lightgbm")[2].decode()
    head, tail = text[: text.index("\nTree=")], text[text.index("\nend of trees") :]
    tree = "\nTree=0\n" + "\n".join(f"{key}={value}" for key, value in lines.items()) + "\n"
    return (re.sub("tree_sizes=.*", "tree_sizes=1", head) + tree + tail).encode()


def shared_statistics():
    """A CatBoost document with 2,000 statistics, each of 20 borders, of one table of 5,000 categories."""
    document = json.loads(corpus("catboost-json")[0])
    features = document["features_info"]
    ctr = next(ctr for ctr in features["ctrs"] if len(ctr["elements"]) == 1)
    table = document["ctr_data"][ctr["identifier"]]
    stride = table["hash_stride"]
    n_keys = 5_000
    table["hash_map"] = [str(k) if at == 0 else 1 for k in range(n_keys) for at in range(stride)]
    features["ctrs"] += [ctr | {"borders": [i / 20 for i in range(20)]}] * 2_000
    return json.dumps(document, separators=(",", ":")).encode()


def empty_table():
    """A CatBoost document with a table that holds nothing, in entries of 2^27 numbers."""
    document = json.loads(corpus("catboost-json")[0])
    for table in document["ctr_data"].values():
        table |= {"hash_map": [], "hash_stride": 1 << 27}
    return json.dumps(document, separators=(",", ":")).encode()


def cyclic_graph():
    """An ONNX graph of trees whose rows come from an Identity that is fed with its own output."""

    def field(number, content):
        return bytes([number << 3 | 2, len(content)]) + content

    identity = field(1, b"l") + field(2, b"l") + field(4, b"Identity")
    trees = field(1, b"l") + field(2, b"y") + field(4, b"TreeEnsembleRegressor")
    return b"\x08\x08" + field(7, field(1, identity) + field(1, trees))


def deep_document():
    """UBJSON of 100,000 levels."""
    return b"{L" + struct.pack(">q", 7) + b"learner" + b"[" * 100_000


FILES = {
    "qwyc": [many_axes, many_tensors, many_lists],
    "xgboost": [many_features, many_categories, deep_document],
    "lightgbm": [shared_categories],
    "catboost": [shared_statistics, empty_table],
    "onnx": [cyclic_graph],
}
