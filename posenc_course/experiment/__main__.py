"""The lab's command line: python -m posenc_course.experiment run | report."""

import argparse
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import torch

from posenc_course._system import Parser, on_any_terminal
from posenc_course.experiment._parts import PARTS
from posenc_course.experiment.config import ALL_SCHEMES, PRESETS, preset
from posenc_course.experiment.folder import load_results, run_experiment, save_report
from posenc_course.experiment.report import tables


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return 0 for success and 130 after Ctrl-C, and exit with 2 for invalid input."""
    on_any_terminal()
    parser = Parser(
        prog="python -m posenc_course.experiment", description="Train position schemes, and test them beyond their length."
    )
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    run = commands.add_parser("run", help="train and measure the runs that the folder does not hold yet")
    run.add_argument("--preset", default="quick", help=f"{', '.join(PRESETS)} (default: %(default)s)")
    run.add_argument("--folder", type=Path, help="folder for the runs, one file each (default: experiment-PRESET)")
    run.add_argument("--schemes", type=_names, help=f"one or more of {','.join(ALL_SCHEMES)}")
    run.add_argument("--parts", type=_names, help=f"one or more of {','.join(PARTS)}")
    run.add_argument("--seeds", type=_numbers, help="one or more seeds, for example 0,1,2")
    run.add_argument(
        "--set", action="append", default=[], type=_change, metavar="FIELD=VALUE", help="change a field of the preset"
    )
    run.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ... (default: %(default)s)")
    run.add_argument(
        "--jobs", type=int, help="number of parallel processes (default: one per core, and one for a graphics card)"
    )
    report = commands.add_parser(
        "report", help="print tables of the results in a folder or a file, or of those that come with the package"
    )
    report.add_argument("results", help=f"a folder, a file, or {', '.join(PRESETS)}")
    report.add_argument("--json", type=Path, help="also write all runs of the folder to this file")
    options = parser.parse_args(arguments)
    try:
        if options.command == "run":
            run_experiment(
                preset(options.preset, **dict(options.set)),
                options.folder or Path(f"experiment-{options.preset}"),
                schemes=options.schemes,
                seeds=options.seeds,
                parts=options.parts,
                device=options.device,
                jobs=(1 if options.device != "cpu" else os.cpu_count() or 1) if options.jobs is None else options.jobs,
                say=partial(print, flush=True),
            )
        else:
            lines = tables(load_results(options.results))
            if options.json:
                save_report(options.results, options.json)
            print("\n".join(lines))
    except OSError as error:
        parser.error(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))
    except torch.OutOfMemoryError as error:
        parser.error(f"{str(error).partition(' GPU ')[0]} Use fewer --jobs or smaller models: finished runs are kept.")
    except ValueError as error:
        parser.error(" ".join(str(error).split()))
    except KeyboardInterrupt:
        print("interrupted: finished runs are kept, and the same command continues from there", file=sys.stderr)
        return 130
    return 0


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers: give 0,1,2, for example") from None


def _change(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    try:
        parsed = json.loads(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form FIELD=VALUE: give steps=100, for example") from None
    return name, tuple(parsed) if isinstance(parsed, list) else parsed


if __name__ == "__main__":
    sys.exit(main())
