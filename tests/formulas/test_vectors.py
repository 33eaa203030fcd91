"""The test vectors: made again, against the package, and against the libraries that people port from."""

import json
import math
import re
from importlib.metadata import version
from typing import Any

import jsonschema
import pytest
import torch
from torch import Tensor

from posenc_course.alibi import alibi_bias, alibi_slopes
from posenc_course.nope import NoPositions
from posenc_course.relative import WindowedPositions, shaw_bias, t5_buckets
from posenc_course.rope import apply_rope, mrope_axes, mrope_tables, proportional_frequencies, rope_tables
from posenc_course.rope_scaling import dynamic_ntk, llama3, ntk_aware, position_interpolation, yarn, yarn_attention_factor
from posenc_course.sinusoidal import frequencies, sinusoidal_table
from tools.lab import vectors as tool

README = (tool.FOLDER / "README.md").read_text(encoding="utf-8")
FILES = {name: json.loads((tool.FOLDER / f"{name}.json").read_text()) for name in ("rope", "rotations", "biases")}
ROPE, ROTATIONS, BIASES = ({vector["name"]: vector for vector in file["vectors"]} for file in FILES.values())


def exact(values: Any) -> Tensor:
    """In double precision."""

    def numbers(part: Any) -> Any:
        return [numbers(each) for each in part] if isinstance(part, list) else float(part)

    return torch.tensor(numbers(values["exact"]), dtype=torch.float64)


def single(values: Any) -> Tensor:
    return torch.tensor(values["float32"], dtype=torch.float32)


# ── the files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", FILES)
def test_the_tool_makes_them_again(name: str) -> None:
    for vector in FILES[name]["vectors"]:
        assert tool.computed(vector) == vector


@pytest.mark.parametrize("name", FILES)
def test_they_have_the_form_of_the_schema(name: str) -> None:
    schema = json.loads((tool.FOLDER / "schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(FILES[name], schema)
    names = [vector["name"] for vector in FILES[name]["vectors"]]
    assert len(names) == len({*names})
    given = FILES[name]["vectors"][0]["given"]
    for wrong in ({"frequency": 1}, {"given": {**given, "theta": 1}}, {"given": {"type": given["type"]}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"made": FILES[name]["made"], "vectors": [FILES[name]["vectors"][0] | wrong]}, schema)
    for vectors in ([], [{"name": "none", "given": given}]):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"made": FILES[name]["made"], "vectors": vectors}, schema)


def test_float32_is_the_nearest() -> None:
    for vector in ROPE.values():
        for field in ("frequencies", "cos", "sin"):
            torch.testing.assert_close(single(vector[field]), exact(vector[field]).float(), rtol=1.2e-7, atol=0)


def test_ten_lines_of_python_run(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    monkeypatch.chdir(tool.FOLDER)
    exec(code.replace('json.load(open("rope.json"))', "FILE"), {"FILE": FILES["rope"]})
    with pytest.raises(AssertionError, match="default, base 10000"):
        exec(code.replace('json.load(open("rope.json"))', "FILE").replace("-2 * i", "-4 * i"), {"FILE": FILES["rope"]})


# ── the package ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def by_the_package(given: dict[str, Any]) -> tuple[Tensor, float]:
    """The frequencies in double precision, and the attention factor."""
    kind, width, factor = given["type"], given["rotary_width"], given.get("factor", 1)
    omega, original = frequencies(width, base=given["base"]), given.get("original_length", 0)
    if kind == "linear":
        return position_interpolation(omega, factor), 1.0
    if kind == "ntk":
        return ntk_aware(omega, factor), 1.0
    if kind == "axial":
        return torch.cat(2 * [frequencies(width // 2, base=given["base"])]), 1.0
    if kind == "dynamic":
        return dynamic_ntk(omega, given["length"], original, factor), 1.0
    if kind == "yarn":
        turns = {"fast": given["beta_fast"], "slow": given["beta_slow"]}
        sharper = yarn_attention_factor(factor)
        if "mscale_all_dim" in given:
            one, all_dim = (0.1 * given[name] * math.log(factor) + 1 for name in ("mscale", "mscale_all_dim"))
            sharper = one / all_dim
        sharper = given.get("attention_factor", sharper)
        return yarn(omega, factor, original, truncate=given["truncate"], **turns), sharper
    if kind == "llama3":
        turns = {"fast": given["high_freq_factor"], "slow": given["low_freq_factor"]}
        return llama3(omega, factor, original, **turns), 1.0
    if kind == "longrope":
        divisors = given["long_factor" if given["length"] > original else "short_factor"]
        sharper = given.get("attention_factor", math.sqrt(1 + math.log(max(factor, 1)) / math.log(original)))
        return omega / torch.tensor(divisors, dtype=torch.float64), sharper
    if kind == "proportional":
        return proportional_frequencies(given["head_width"], width / given["head_width"], given["base"]), 1.0
    return omega, 1.0


@pytest.mark.parametrize("name", ROPE)
def test_package_computes_the_frequencies(name: str) -> None:
    vector = ROPE[name]
    if vector["given"]["type"] == "yarn" and vector["given"]["factor"] < 1:
        with pytest.raises(ValueError, match="factor"):  # a text that gets shorter isn't stretched
            by_the_package(vector["given"])
        return
    omega, factor = by_the_package(vector["given"])
    torch.testing.assert_close(omega, exact(vector["frequencies"]), rtol=1e-12, atol=0)
    assert factor == pytest.approx(float(vector["attention_factor"]["exact"]), rel=1e-12)
    for table, field in zip(rope_tables(vector["positions"], omega, dtype=torch.float64), ("cos", "sin"), strict=True):
        torch.testing.assert_close(table, exact(vector[field]), rtol=0, atol=1e-10)


def excess(vector: dict[str, Any], omega: Tensor, share: float) -> float:
    """How far cosines and sines of angles in single precision go beyond 1e-6 + share·m·ω, at most."""
    positions = torch.tensor(vector["positions"])[:, None]
    angles = positions.float() * omega
    tolerance = 1e-6 + share * positions * exact(vector["frequencies"])
    errors = [(table.double() - exact(vector[field])).abs() for field, table in (("cos", angles.cos()), ("sin", angles.sin()))]
    return max(float((error - tolerance).max()) for error in errors)


@pytest.mark.parametrize("name", ROPE)
def test_angles_in_single_precision_are_within_the_tolerance(name: str) -> None:
    """From the vector's own frequencies, which are correctly rounded; the README says so."""
    assert excess(ROPE[name], single(ROPE[name]["frequencies"]), 1.2e-7) <= 0


@pytest.mark.parametrize("name", ROTATIONS)
def test_package_rotates_and_scores(name: str) -> None:
    vector = ROTATIONS[name]
    given = vector["given"]
    width = given["head_width"]
    omega, factor = by_the_package(given)
    rotary = 2 * len(omega)
    if "mrope" in given:
        axes = mrope_axes(given["sections"], interleaved=given["mrope"] == "interleaved")
        assert axes.tolist() == vector["axes"]
        cos, sin = mrope_tables(vector["positions"], omega, axes, dtype=torch.float64)
    elif given["type"] == "axial":
        cos, sin = mrope_tables(vector["positions"], omega, torch.tensor(vector["axes"]), dtype=torch.float64)
    else:
        cos, sin = rope_tables(vector["positions"], omega, dtype=torch.float64)
    rotated = []
    for letter in "qk":
        if letter == "q" and "query_positions" in vector:
            tables = rope_tables(vector["query_positions"], omega, dtype=torch.float64)
        else:
            tables = cos, sin
        x = torch.tensor(vector[letter], dtype=torch.float64)
        start = 0 if given["side"] == "first" else width - rotary
        part = apply_rope(x[None, None, :, start : start + rotary], *tables, interleaved=given["layout"] == "interleaved")
        x[:, start : start + rotary] = factor * part[0, 0]
        torch.testing.assert_close(x, exact(vector[f"rotated_{letter}"]), rtol=0, atol=1e-12)
        rotated.append(x)
    torch.testing.assert_close(rotated[0] @ rotated[1].T / math.sqrt(width), exact(vector["scores"]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", [name for name, vector in BIASES.items() if vector["given"]["type"] != "inkling"])
def test_package_computes_biases_and_windows(name: str) -> None:
    vector = BIASES[name]
    given = vector["given"]
    if "bias" in vector:
        m, n, slopes = torch.tensor(given["queries"]), torch.arange(given["tokens"]), alibi_slopes(given["heads"])
        bias = alibi_bias(m, n, slopes, dtype=torch.float64)[0]
        torch.testing.assert_close(bias, exact(vector["bias"]), rtol=1e-6, atol=0)
    elif given["type"] == "sinusoidal":
        positions = [m + given["first_position"] for m in vector["positions"]]
        table = sinusoidal_table(positions, given["width"], given["base"], interleaved=given["layout"] == "interleaved")
        torch.testing.assert_close(table, exact(vector["embedding"]), rtol=0, atol=1e-12)
    elif given["type"] == "alibi":
        torch.testing.assert_close(alibi_slopes(given["heads"]).double(), exact(vector["slopes"]), rtol=1e-12, atol=0)
    elif given["type"] == "t5":
        delta = [-offset for offset in vector["offsets"]]  # the package subtracts the key's position from the query's
        found = t5_buckets(delta, given["buckets"], given["max_distance"], causal=given["causal"])
        assert found.tolist() == vector["buckets"]
    elif given["type"] == "shaw":
        far = max(vector["offsets"])
        table = torch.arange(2.0 * given["max_distance"] + 1)[:, None]  # each row is its number
        keys = torch.arange(2 * far + 1)
        bias = shaw_bias(torch.ones(1, 1, 1, 1), table, torch.tensor([far]), keys)
        assert bias.flatten().tolist() == vector["rows"][::-1]  # its rows count the other way, as its offsets do
    else:
        n = torch.arange(given["tokens"])
        m = torch.tensor(given.get("queries", n.tolist()))
        near = WindowedPositions(NoPositions(), given["window"]).bias(torch.zeros(1, 1, len(m), 2), m, n)[0, 0] == 0
        seen = near & (n <= m[:, None]) if given["causal"] else near
        assert seen.tolist() == vector["seen"]


# ── the libraries ────────────────────────────────────────────────────────────────────────────────────────────────────────


def config_of_transformers(given: dict[str, Any]) -> Any:
    from transformers import GPTNeoXConfig

    kind = {"partial": "default"}.get(given["type"], given["type"])
    width = given.get("head_width", given["rotary_width"])
    names = {"original_length": "original_max_position_embeddings", "base": "rope_theta"}
    others = ("type", "head_width", "rotary_width", "length", "layout", "side")
    parameters = {names.get(name, name): value for name, value in given.items() if name not in others}
    parameters |= {"rope_type": kind, "partial_rotary_factor": given["rotary_width"] / width}
    if kind == "longrope":
        parameters["factor"] = float(given["factor"])
    return GPTNeoXConfig(
        hidden_size=4 * width,
        num_attention_heads=4,
        max_position_embeddings=given.get("original_length", 2048),
        rope_parameters=parameters,
    )


def by_transformers(given: dict[str, Any]) -> tuple[Tensor, float]:
    from transformers import HunYuanDenseV1Config
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
    from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXRotaryEmbedding
    from transformers.models.hunyuan_v1_dense.modeling_hunyuan_v1_dense import HunYuanDenseV1RotaryEmbedding

    if given["type"] == "ntk":
        rope = {"rope_type": "dynamic", "alpha": given["factor"], "factor": 1.0, "rope_theta": given["base"]}
        config: Any = HunYuanDenseV1Config(head_dim=given["rotary_width"], rope_parameters=rope)
        return HunYuanDenseV1RotaryEmbedding.compute_ntk_alpha_rope_parameters(config)
    config = config_of_transformers(given)
    kind = config.rope_parameters["rope_type"]
    if kind == "default":
        omega, factor = GPTNeoXRotaryEmbedding.compute_default_rope_parameters(config)
    else:
        omega, factor = ROPE_INIT_FUNCTIONS[kind](config, seq_len=given.get("length"))
    return omega, factor


@pytest.mark.parametrize("name", ROPE)
def test_transformers_computes_the_frequencies(name: str) -> None:
    """In single precision, within the tolerances that the README gives."""
    vector = ROPE[name]
    omega, factor = by_transformers(vector["given"])
    assert omega.dtype == torch.float32
    torch.testing.assert_close(omega.double(), exact(vector["frequencies"]), rtol=2e-6, atol=0)
    assert excess(vector, omega, 2.1e-6) <= 0
    assert factor == pytest.approx(float(vector["attention_factor"]["exact"]), rel=1e-6)


def tables_of_transformers(given: dict[str, Any], positions: list[Any]) -> Any:
    """Cosines and sines, times the attention factor; Qwen2-VL's and Qwen3-VL's classes choose each pair's axis."""
    from transformers import Qwen2VLConfig, Qwen3VLTextConfig
    from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXRotaryEmbedding
    from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLVisionConfig
    from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLRotaryEmbedding, Qwen2VLVisionRotaryEmbedding
    from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextRotaryEmbedding

    if given["type"] == "axial":
        rope = {"rope_type": "axial", "rope_theta": given["base"]}
        vision = Qwen2VLVisionConfig(embed_dim=given["head_width"], num_heads=1, rope_parameters=rope)
        return Qwen2VLVisionRotaryEmbedding(vision)(torch.zeros(1), torch.tensor(positions)[None])
    if "mrope" not in given:
        return GPTNeoXRotaryEmbedding(config_of_transformers(given))(torch.zeros(1), torch.tensor(positions)[None])
    rope = {"rope_type": "default", "rope_theta": given["base"], "mrope_section": given["sections"]}
    if given["mrope"] == "interleaved":
        module: Any = Qwen3VLTextRotaryEmbedding(Qwen3VLTextConfig(head_dim=given["rotary_width"], rope_parameters=rope))
    else:
        text = {"hidden_size": given["rotary_width"], "num_attention_heads": 1, "rope_parameters": rope}
        module = Qwen2VLRotaryEmbedding(Qwen2VLConfig(text_config=text).text_config)
    return module(torch.zeros(1), torch.tensor(positions)[:, None])


@pytest.mark.parametrize("name", ROTATIONS)
def test_transformers_rotates(name: str) -> None:
    """In single precision; where the last channels rotate, the library gets only these, and otherwise the whole head."""
    from transformers.models.glm.modeling_glm import apply_rotary_pos_emb as neighbours
    from transformers.models.gpt_neox.modeling_gpt_neox import apply_rotary_pos_emb as halves

    vector = ROTATIONS[name]
    given = vector["given"]
    start = 0 if given["side"] == "first" else given["head_width"] - given["rotary_width"]
    rotated = []
    for letter in "qk":
        x = torch.tensor(vector[letter])[None, None]
        positions = vector.get("query_positions", vector["positions"]) if letter == "q" else vector["positions"]
        rotate = halves if given["layout"] == "halves" else neighbours
        part = x[..., start:].clone()
        x[..., start:] = rotate(part, part, *tables_of_transformers(given, positions))[0]
        torch.testing.assert_close(x[0, 0].double(), exact(vector[f"rotated_{letter}"]), rtol=0, atol=1e-5)
        rotated.append(x[0, 0].double())
    scores = rotated[0] @ rotated[1].T / math.sqrt(given["head_width"])
    torch.testing.assert_close(scores, exact(vector["scores"]), rtol=0, atol=1e-5)


def test_transformers_computes_inkling_s_bias() -> None:
    from transformers.models.inkling.modeling_inkling import InklingRelativeLogits

    (vector,) = (vector for vector in BIASES.values() if vector["given"]["type"] == "inkling")
    given = vector["given"]
    theirs = InklingRelativeLogits(len(given["table"]), given["extent"])
    theirs.proj.data = torch.tensor(given["table"])
    m = torch.arange(len(given["r"]))
    bias = theirs(torch.tensor(given["r"])[None, :, None], m, m)[0, 0]
    torch.testing.assert_close(bias.detach().double(), exact(vector["bias"]), rtol=0, atol=1e-5)


def test_transformers_counts_a_window_in_two_ways() -> None:
    """A causal one contains the query's own token; one in both directions doesn't count it."""
    from transformers.masking_utils import sliding_window_bidirectional_overlay, sliding_window_causal_mask_function

    n = torch.arange(6)
    for vector in BIASES.values():
        if vector["given"]["type"] == "window":
            window, causal = vector["given"]["window"], vector["given"]["causal"]
            m = torch.tensor(vector["given"].get("queries", n.tolist()))
            masks = {w: sliding_window_bidirectional_overlay(w) for w in (window, window - 1)}
            see = sliding_window_causal_mask_function(window) if causal else masks[window - 1]
            assert see(0, 0, m[:, None], n).tolist() == vector["seen"]
            assert causal or masks[window](0, 0, m[:, None], n).tolist() != vector["seen"]


def test_readme_says_who_passes() -> None:
    """Each number is that of tests above, or of vectors; the README has them, and the version."""
    lines = [line.strip("| ").split(" | ") for line in README.partition("## Who differs")[2].splitlines() if line[:1] == "|"]
    assert lines[0][2] == f"transformers {version('transformers')}"
    table = {what: [int((re.findall(r"\d+", cell) or [0])[0]) for cell in cells] for what, *cells in lines[2:]}
    kinds = [vector["given"]["type"] for vector in BIASES.values()]
    causal = sum(vector["given"].get("type") == "window" and vector["given"]["causal"] for vector in BIASES.values())
    assert table == {
        "frequencies, attention factors": [len(ROPE) - 1, len(ROPE)],  # one factor is below 1
        "rotations and scores": 2 * [len(ROTATIONS)],
        "ALiBi": [kinds.count("alibi"), sum("slopes" in vector for vector in BIASES.values())],
        "T5": 2 * [kinds.count("t5")],
        "Inkling": [0, kinds.count("inkling")],
        "Shaw": [kinds.count("shaw"), 0],
        "sinusoidal": [kinds.count("sinusoidal"), 0],
        "windows": [kinds.count("window"), causal],
    }


@pytest.mark.parametrize("name", [name for name, vector in BIASES.items() if vector["given"]["type"] == "t5"])
def test_transformers_computes_the_buckets(name: str) -> None:
    from transformers.models.t5.modeling_t5 import T5Attention

    vector, offsets = BIASES[name], torch.tensor(BIASES[name]["offsets"])
    sizes = {"num_buckets": vector["given"]["buckets"], "max_distance": vector["given"]["max_distance"]}
    assert (
        T5Attention._relative_position_bucket(offsets, bidirectional=not vector["given"]["causal"], **sizes).tolist()
        == vector["buckets"]
    )


@pytest.mark.parametrize("heads", [1, 6, 8, 12, 16, 20])
def test_transformers_computes_the_slopes(heads: int) -> None:
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    expected = exact(BIASES[f"ALiBi, {heads} heads"]["slopes"])
    theirs = build_alibi_tensor(torch.ones(1, 2), heads, torch.float32)[:, 0, 1].double()
    torch.testing.assert_close(theirs, expected, rtol=1e-6, atol=0)
