"""The benchmark: it runs at tiny sizes, and the stored results are complete and agree with the code."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tools.lab import bench

# x-transformers and rotary-embedding-torch call it when they are imported.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning"),
]
ROOT = Path(__file__).resolve().parent.parent
STORED = {name: json.loads((bench.DATA / f"{name}.json").read_text(encoding="utf-8")) for name in ("speed", "accuracy")}
QUICK = [(build.__name__.removeprefix("with_"), build, sizes) for build, sizes in bench.cases(quick=True)]
FULL = [(build.__name__.removeprefix("with_"), sizes) for build, sizes in bench.cases(quick=False)]


def records(group: str, **fields: object) -> list[dict[str, Any]]:
    """Those of speed.json that have these fields."""
    return [record for record in STORED["speed"]["results"][group] if fields.items() <= record.items()]


# ── the tool ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_quick_run_tries_everything_and_writes_nothing() -> None:
    before = {path: path.stat().st_mtime_ns for path in bench.DATA.iterdir()}
    command = [sys.executable, bench.__file__, "--quick"]
    # Two threads that share one core with other tests must not spin while they wait.
    environment = os.environ | {"OMP_WAIT_POLICY": "passive", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    for threads in (1, 2):
        for number, (group, _, _) in enumerate(QUICK, start=1):
            assert f"speed with threads={threads}, {number} of {len(QUICK)}: {group}, " in done.stdout
    for part in ("memory, 1 of 1: alibi", "accuracy, 1 of 2: cos and sin", "accuracy, 1 of 2: alibi"):
        assert part in done.stdout
    stored = {record["candidate"] for file in STORED.values() for group in file["results"].values() for record in group}
    for candidate in stored - {bench.COMPILED}:
        assert f"  {candidate}" in done.stdout
    assert {path: path.stat().st_mtime_ns for path in bench.DATA.iterdir()} == before


def test_what_is_measured_has_a_process_of_its_own() -> None:
    assert os.getpid() == bench.apart(os.getpid, quick=True) != bench.apart(os.getpid, quick=False)


def test_a_race_takes_turns_and_times_each() -> None:
    """After one call of each to warm up, the candidates take turns."""
    order: list[str] = []
    times = bench.race({name: partial(order.append, name) for name in "abc"}, quick=True)
    assert order == [*"abc"] * 2
    assert list(times) == [*"abc"]
    assert all(spent > 0 for spent in times.values())


# ── what is stored ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("threads", [1, 2])
def test_every_case_is_stored_with_every_candidate(threads: int) -> None:
    """The names are those of a quick run; what is left out at a size is left out for a reason."""
    names: defaultdict[str, set[str]] = defaultdict(set)
    for group, build, sizes in QUICK:
        names[group] |= set(build(**sizes))
    for group, sizes in FULL:
        found = [record["candidate"] for record in records(group, threads=threads, **sizes)]
        missing = (
            {"alibi": {bench.READABLE}, "table": {"transformers Marian"}}.get(group, set()) if sizes_are_huge(sizes) else set()
        )
        assert set(found) - {bench.COMPILED} == names[group] - missing, (group, sizes)
        assert len(set(found)) == len(found)
    assert len(records("rope", threads=threads, candidate=bench.COMPILED)) in (0, 8)


def sizes_are_huge(sizes: dict[str, Any]) -> bool:
    return sizes.get("length", 0) > bench.READABLE_UP_TO


def test_every_ratio_is_that_of_two_stored_times() -> None:
    for group, sizes in FULL:
        for threads in (1, 2):
            reference, *others = records(group, threads=threads, **sizes)
            assert reference["ratio"] == 1
            assert reference["milliseconds"] > 0
            for record in others:
                assert record["ratio"] == pytest.approx(record["milliseconds"] / reference["milliseconds"], rel=1e-3)


def test_memory_is_stored_for_every_length() -> None:
    stored = {(record["length"], record["candidate"]): record["mebibytes"] for record in records("alibi_memory")}
    lengths = bench.alibi_lengths(quick=False)
    names = ["no bias", "alibi_attention", "dense bias"]
    assert set(stored) == {(n, name) for n in lengths for name in names} | {(n, bench.READABLE) for n in lengths[:3]}
    assert all(growth >= 0 for growth in stored.values())
    assert stored[8192, "dense bias"] >= 8 * 8192**2 * 4 / 2**20  # at least the bias itself, eight heads in float32


def test_errors_of_the_tables_are_what_the_code_gives_now() -> None:
    """To one digit, since processors differ in how they round a product; what is rounded once has no more to differ in."""
    positions = bench.some_positions(bench.LIMITS)
    stored = {
        (record["base"], record["candidate"], record["positions_to"]): record["error"]
        for record in STORED["accuracy"]["results"]["angles"]
    }
    now = {}
    for base in (10_000, 500_000):
        found = bench.our_angles(positions, base) | bench.peer_angles(positions, base)
        for record in bench.angle_errors(found, positions, base, bench.LIMITS):
            now[base, record["candidate"], record["positions_to"]] = record["error"]
    assert now.keys() == stored.keys()
    for key, error in now.items():
        factor = 1.05 if key[1] in ("rope_tables", "sinusoidal_table") else 1.5
        assert stored[key] / factor <= error <= stored[key] * factor, key


def test_errors_of_alibi_are_what_the_code_gives_now() -> None:
    """Within a factor of 3 at 1024 tokens, the quickest; sums in float32 are ordered as each processor likes."""
    stored = STORED["accuracy"]["results"]["alibi"]
    assert {(record["length"], record["heads"]) for record in stored} == {
        (length, heads) for length in bench.alibi_lengths(quick=False) for heads in (8, 12)
    }
    for new in bench.alibi_errors(1024, 8):
        (old,) = (
            record for record in stored if {"length": 1024, "heads": 8, "candidate": new["candidate"]}.items() <= record.items()
        )
        for field in ("error", "gradient_error"):
            assert old[field] / 3 < new[field] < old[field] * 3
