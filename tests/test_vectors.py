"""The test vectors: made again, against the package, and against the libraries that people port from."""

import json
import math
import re
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import torch
from torch import Tensor

from posenc_course.alibi import alibi_slopes
from posenc_course.nope import NoPositions
from posenc_course.relative import WindowedPositions, shaw_bias, t5_buckets
from posenc_course.rope import apply_rope, mrope_axes, mrope_tables, proportional_frequencies, rope_tables
from posenc_course.rope_scaling import dynamic_ntk, llama3, position_interpolation, yarn, yarn_attention_factor
from posenc_course.sinusoidal import frequencies
from tools import vectors as tool

README = (tool.FOLDER / "README.md").read_text(encoding="utf-8")
FILES = {name: json.loads((tool.FOLDER / f"{name}.json").read_text()) for name in ("rope", "rotations", "biases")}
ROPE, ROTATIONS, BIASES = ({vector["name"]: vector for vector in file["vectors"]} for file in FILES.values())

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")  # x-transformers warns


def exact(values: Any) -> Tensor:
    """In double precision."""

    def numbers(part: Any) -> Any:
        return [numbers(each) for each in part] if isinstance(part, list) else float(part)

    return torch.tensor(numbers(values["exact"]), dtype=torch.float64)


def single(values: Any) -> Tensor:
    return torch.tensor(values["float32"], dtype=torch.float32)


# ── the files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "make"),
    [("rope", tool.frequency_vectors), ("rotations", tool.rotation_vectors), ("biases", tool.bias_vectors)],
)
def test_the_tool_makes_them_again(name: str, make: Callable[[], Any]) -> None:
    assert FILES[name] == {"made": tool.MADE, "vectors": json.loads(json.dumps(make()))}


@pytest.mark.parametrize("name", FILES)
def test_they_have_the_form_of_the_schema(name: str) -> None:
    schema = json.loads((tool.FOLDER / "schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(FILES[name], schema)
    names = [vector["name"] for vector in FILES[name]["vectors"]]
    assert len(names) == len({*names})
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"made": {}, "vectors": [{"name": "none", "given": {}, "frequency": 1}]}, schema)


def test_float32_is_the_nearest() -> None:
    for vector in ROPE.values():
        for field in ("frequencies", "cos", "sin"):
            assert torch.equal(single(vector[field]), exact(vector[field]).float()) or torch.allclose(
                single(vector[field]), exact(vector[field]).float(), rtol=1.2e-7, atol=0
            )


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
    if kind == "dynamic":
        return dynamic_ntk(omega, given["length"], original, factor), 1.0
    if kind == "yarn":
        turns = {"fast": given["beta_fast"], "slow": given["beta_slow"]}
        sharper = given.get("attention_factor", yarn_attention_factor(factor))
        if "mscale" in given:
            one, all_dim = (0.1 * given[name] * math.log(factor) + 1 for name in ("mscale", "mscale_all_dim"))
            sharper = one / all_dim
        return yarn(omega, factor, original, truncate=given["truncate"], **turns), sharper
    if kind == "llama3":
        turns = {"fast": given["high_freq_factor"], "slow": given["low_freq_factor"]}
        return llama3(omega, factor, original, **turns), 1.0
    if kind == "longrope":
        divisors = given["long_factor" if given["length"] > original else "short_factor"]
        return omega / torch.tensor(divisors, dtype=torch.float64), math.sqrt(1 + math.log(factor) / math.log(original))
    if kind == "proportional":
        return proportional_frequencies(given["head_width"], width / given["head_width"], given["base"]), 1.0
    return omega, 1.0


@pytest.mark.parametrize("name", ROPE)
def test_package_computes_the_frequencies(name: str) -> None:
    vector = ROPE[name]
    omega, factor = by_the_package(vector["given"])
    torch.testing.assert_close(omega, exact(vector["frequencies"]), rtol=1e-12, atol=0)
    assert factor == pytest.approx(float(vector["attention_factor"]["exact"]), rel=1e-12)
    for table, field in zip(rope_tables(vector["positions"], omega), ("cos", "sin"), strict=True):
        torch.testing.assert_close(table, single(vector[field]), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ROTATIONS)
def test_package_rotates_and_scores(name: str) -> None:
    vector = ROTATIONS[name]
    given = vector["given"]
    width, rotary = given["head_width"], given["rotary_width"]
    omega = frequencies(rotary, base=given["base"])
    if "mrope" in given:
        axes = mrope_axes(given["sections"], interleaved=given["mrope"] == "interleaved")
        assert axes.tolist() == given["axes"]
        cos, sin = mrope_tables(given["positions"], omega, axes, dtype=torch.float64)
    else:
        cos, sin = rope_tables(given["positions"], omega, dtype=torch.float64)
    turned = []
    for letter in "qk":
        x = torch.tensor(vector[letter], dtype=torch.float64)
        start = 0 if given["side"] == "first" else width - rotary
        part = apply_rope(x[None, None, :, start : start + rotary], cos, sin, interleaved=given["layout"] == "interleaved")
        x[:, start : start + rotary] = part[0, 0]
        torch.testing.assert_close(x, exact(vector[f"rotated_{letter}"]), rtol=0, atol=1e-12)
        turned.append(x)
    torch.testing.assert_close(turned[0] @ turned[1].T / math.sqrt(width), exact(vector["scores"]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", BIASES)
def test_package_computes_biases_and_windows(name: str) -> None:
    vector = BIASES[name]
    given = vector["given"]
    if given["type"] == "alibi":
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
        m = torch.arange(given["tokens"])
        x = torch.zeros(1, 1, given["tokens"], 2)
        near = WindowedPositions(NoPositions(), given["window"]).bias(x, m, m)[0, 0] == 0
        assert (near & (m <= m[:, None])).tolist() == vector["seen"]


# ── the libraries ────────────────────────────────────────────────────────────────────────────────────────────────────────


def by_transformers(given: dict[str, Any]) -> tuple[Tensor, float]:
    from transformers import GPTNeoXConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
    from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXRotaryEmbedding

    kind = {"partial": "default"}.get(given["type"], given["type"])
    width = given.get("head_width", given["rotary_width"])
    names = {"original_length": "original_max_position_embeddings", "base": "rope_theta"}
    parameters = {names.get(name, name): value for name, value in given.items() if name not in ("rotary_width", "length")}
    parameters |= {"rope_type": kind, "partial_rotary_factor": given["rotary_width"] / width}
    if kind == "longrope":
        parameters["factor"] = float(given["factor"])
    for name in ("type", "head_width"):
        parameters.pop(name, None)
    config = GPTNeoXConfig(
        hidden_size=4 * width,
        num_attention_heads=4,
        max_position_embeddings=given.get("original_length", 2048),
        rope_parameters=parameters,
    )
    if kind == "default":
        omega, factor = GPTNeoXRotaryEmbedding.compute_default_rope_parameters(config)
    else:
        omega, factor = ROPE_INIT_FUNCTIONS[kind](config, seq_len=given.get("length"))
    return omega, factor


def by_x_transformers(given: dict[str, Any]) -> tuple[Tensor, float]:
    from x_transformers.x_transformers import RotaryEmbedding  # type: ignore[import-untyped]

    return RotaryEmbedding(given["rotary_width"], base=given["base"]).inv_freq, 1.0


def by_rotary_embedding_torch(given: dict[str, Any]) -> tuple[Tensor, float]:
    from rotary_embedding_torch import RotaryEmbedding  # type: ignore[import-untyped]

    return RotaryEmbedding(given["rotary_width"], theta=given["base"]).freqs.detach(), 1.0


PLAIN = [name for name, vector in ROPE.items() if vector["given"]["type"] in ("default", "partial")]
CASES = [
    *(("transformers", by_transformers, name) for name in ROPE),
    *(("x-transformers", by_x_transformers, name) for name in PLAIN),
    *(("rotary-embedding-torch", by_rotary_embedding_torch, name) for name in PLAIN),
]


@pytest.mark.parametrize(("library", "compute", "name"), CASES, ids=[f"{library}: {name}" for library, _, name in CASES])
def test_libraries_compute_the_frequencies(library: str, compute: Any, name: str) -> None:
    """In single precision, within the tolerance that the README gives."""
    vector = ROPE[name]
    omega, factor = compute(vector["given"])
    assert omega.dtype == torch.float32
    torch.testing.assert_close(omega.double(), exact(vector["frequencies"]), rtol=2e-6, atol=0)
    assert factor == pytest.approx(float(vector["attention_factor"]["exact"]), rel=1e-6)


def test_readme_says_who_passes() -> None:
    """Each of these is a test above; the README has their numbers, and the versions."""
    rows = re.findall(r"^\| ([\w-]+) (\S+?)(?: precision\))? \| (.*?) \| (.*?) \| (.*?) \|$", README, re.MULTILINE)
    found = {library: (version_there, *numbers) for library, version_there, *numbers in rows if library != "posenc_course"}
    assert {*found} == {library for library, *_ in CASES}
    slopes = sum(vector["given"]["type"] == "alibi" for vector in BIASES.values())
    for library, (written, omega, biases, _) in found.items():
        assert written == version(library)
        passed = sum(name == library for name, *_ in CASES)
        assert omega.startswith(f"all {passed}" if passed == len(ROPE) else f"the {passed} without")
        assert biases in (f"all {slopes}", "it has none")


def differing_buckets(bucket: Callable[..., Tensor], *, causal: bool) -> list[int]:
    vector = BIASES["T5, causal" if causal else "T5, both directions"]
    found = bucket(torch.tensor(vector["offsets"])).tolist()
    return [o for o, a, b in zip(vector["offsets"], found, vector["buckets"], strict=True) if a != b]


@pytest.mark.parametrize("causal", [True, False])
def test_libraries_compute_the_buckets(causal: bool) -> None:
    from transformers.models.t5.modeling_t5 import T5Attention
    from x_transformers.x_transformers import RelativePositionBias

    def theirs(offsets: Tensor) -> Tensor:
        return T5Attention._relative_position_bucket(offsets, bidirectional=not causal, num_buckets=32, max_distance=128)

    def others(offsets: Tensor) -> Tensor:
        return RelativePositionBias._relative_position_bucket(offsets, causal=causal, num_buckets=32, max_distance=128)

    assert differing_buckets(theirs, causal=causal) == []
    assert differing_buckets(others, causal=causal) == []


@pytest.mark.parametrize("heads", [1, 6, 8, 12, 16, 20])
def test_libraries_compute_the_slopes(heads: int) -> None:
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor
    from x_transformers.x_transformers import AlibiPositionalBias

    expected = exact(BIASES[f"ALiBi, {heads} heads"]["slopes"])
    theirs = build_alibi_tensor(torch.ones(1, 2), heads, torch.float32)[:, 0, 1].double()
    torch.testing.assert_close(theirs, expected, rtol=1e-6, atol=0)
    others = torch.tensor(AlibiPositionalBias._get_slopes(heads), dtype=torch.float64)
    torch.testing.assert_close(others, expected, rtol=1e-6, atol=0)
