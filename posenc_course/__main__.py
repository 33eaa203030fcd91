"""The package's command line: python -m posenc_course inspect."""

import sys

from posenc_course._system import Parser, on_any_terminal
from posenc_course.inspector import inspect, inspect_model, load_configurations, read_config
from posenc_course.models import load_models

ENDING = """exit status: 0 if nothing is wrong; 1 if a fault is proved, because the class does something different from what
the file states, or the file contradicts itself, and, with --strict, for every note; 2 if there is no configuration to read;
3 if something that matters isn't known"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit status, or exit with 2 for invalid input."""
    on_any_terminal()
    parser = Parser(prog="python -m posenc_course", description="Tools of the course on positional encoding.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    tool = commands.add_parser("inspect", help="say what each layer of a model knows about position", epilog=ENDING)
    tool.add_argument("config", help="a config.json or its folder, a GGUF file, a model's name, or - for standard input")
    tool.add_argument("--json", action="store_true", help="print the report for programs")
    tool.add_argument("--strict", action="store_true", help="exit with 1 for notes, too")
    tool.add_argument("--length", type=int, help="the training length in tokens, if you know better than the configuration")
    tool.add_argument("--no-run", action="store_true", help="read the configuration only; don't build the class in small")
    options = parser.parse_args(arguments)
    released = load_configurations().get(options.config)
    try:
        if not released and options.config in {model.name for model in load_models()}:
            report = inspect_model(options.config)
        else:
            name, config = (options.config, released["config"]) if released else ("", read_config(options.config))
            report = inspect(config, name=name, length=options.length, run=not options.no_run)
    except OSError as error:
        parser.error(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except ValueError as error:
        parser.error(" ".join(str(error).split()))
    print(report.as_json() if options.json else report.text())
    return report.status() or int(options.strict and bool(report.findings))


if __name__ == "__main__":
    sys.exit(main())
