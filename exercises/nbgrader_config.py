"""The course's settings for nbgrader; every nbgrader command that runs in this folder reads them."""

from nbgrader.converters.autograde import Autograde
from nbgrader.preprocessors import LimitOutput, NbGraderPreprocessor
from traitlets.config import get_config


class LimitCharacters(NbGraderPreprocessor):
    """Cut long outputs of cells. nbgrader's own limit counts lines, and a single line may have ten million characters."""

    def preprocess_cell(self, cell, resources, index):
        for output in cell.get("outputs", []):
            if len(output.get("text", "")) > 20_000:
                output.text = output.text[:20_000] + "\n... Output truncated ..."
        return cell, resources


c = get_config()

c.CourseDirectory.course_id = "where-is-a-token"
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError  # your turn"}
c.ClearSolutions.text_stub = "*Your answer.*"

# Otherwise, a posenc_course.py that a student hands in beside the notebook would replace the package.
c.Execute.extra_arguments = ["--HistoryManager.hist_file=:memory:", "--InteractiveShellApp.ignore_cwd=True"]
c.Execute.timeout = 60  # seconds per cell: a loop that never ends costs only its author, and only this cell
c.LimitOutput.max_lines = 500
c.LimitOutput.max_traceback = 20
steps = list(Autograde.autograde_preprocessors.default_args[0])
steps.insert(steps.index(LimitOutput), LimitCharacters)
c.Autograde.autograde_preprocessors = steps
