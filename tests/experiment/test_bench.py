"""The benchmark: its candidates compute the same, and the stored results are complete and agree with the code."""

import json
from typing import Any

import pytest

from posenc_course.experiment.corpus import DATA
from tools.lab import bench

# x-transformers and rotary-embedding-torch call it when they are imported.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning"),
]
STORED: dict[str, dict[str, list[dict[str, Any]]]] = {
    name: json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))["results"] for name in ("speed", "accuracy")
}
TINY = {
    "shape": [1, 2, 16, 8], "dtype": "float32", "backward": True, "length": 32, "d_model": 16, "heads": 4, "batch": 2
}  # fmt: skip


@pytest.mark.parametrize("group", [group for group in STORED["speed"] if group != "alibi_memory"])
def test_what_is_stored_is_what_is_timed(group: str) -> None:
    """The names are those of small sizes; larger ones leave some out. Each candidate runs, and gets its time."""
    sizes = [sizes for build, sizes in bench.cases() if build.__name__ == f"with_{group}"]
    times = bench.race(getattr(bench, f"with_{group}")(**{name: TINY[name] for name in sizes[0]}), threads=1)
    assert all(spent > 0 for spent in times.values())
    for threads in (1, 2):
        for size in sizes:
            found = [record for record in STORED["speed"][group] if ({"threads": threads} | size).items() <= record.items()]
            names = {record["candidate"] for record in found} - {"apply_rope, half, compiled"}
            assert names <= times.keys(), size
            assert times.keys() - names <= {bench.READABLE, "transformers Marian"}
            for record in found:
                assert record["ratio"] == pytest.approx(record["milliseconds"] / found[0]["milliseconds"], rel=1e-3)


def test_errors_of_the_tables_are_what_the_code_gives_now() -> None:
    """To one digit, since processors differ in how they round a product; what is rounded once has no more to differ in."""
    positions, now = bench.some_positions(bench.LIMITS), []
    for base in (10_000, 500_000):
        found = bench.our_angles(positions, base) | bench.peer_angles(positions, base)
        now += bench.angle_errors(found, positions, base, bench.LIMITS)
    for new, old in zip(now, STORED["accuracy"]["angles"], strict=True):
        factor = 1.05 if new["candidate"] == "rope_tables" else 1.5
        assert old | {"error": None} == new | {"error": None}
        assert old["error"] / factor <= new["error"] <= old["error"] * factor, new


def test_errors_of_alibi_are_what_the_code_gives_now() -> None:
    """Within a factor of 3 at 1024 tokens, the quickest; sums in float32 are ordered as each processor likes."""
    for new, old in zip(bench.alibi_errors(1024, 12), STORED["accuracy"]["alibi"], strict=False):
        assert (old["length"], old["heads"], old["candidate"]) == (1024, 12, new["candidate"])
        assert old["error"] / 3 < new["error"] < old["error"] * 3
