"""The package's command line: python -m posenc_course inspect."""

import sys

from posenc_course._command import Parser, on_any_terminal
from posenc_course.inspector import inspect, inspect_model, load_configurations, read_config
from posenc_course.models import load_models

ENDING = """exit status: 0 if nothing is wrong; 1 if a written value isn't used or contradicts another one, and, with --strict,
for every warning; 2 if there is no configuration to read"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return 0 if nothing is wrong and 1 if something is, and exit with 2 for invalid input."""
    on_any_terminal()
    parser = Parser(prog="python -m posenc_course", description="Tools of the course on positional encoding.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    tool = commands.add_parser("inspect", help="say what each layer of a model knows about position", epilog=ENDING)
    tool.add_argument("config", help="a config.json, a GGUF file, or the name of a model, from the table or as in the page")
    tool.add_argument("--json", action="store_true", help="print the report for programs")
    tool.add_argument("--strict", action="store_true", help="exit with 1 for warnings, too")
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
    levels = {finding.level for finding in report.findings}
    return int("wrong" in levels or (options.strict and "warning" in levels))


if __name__ == "__main__":
    sys.exit(main())
