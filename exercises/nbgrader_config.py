"""The course's settings for nbgrader; every nbgrader command that runs in this folder reads them."""

import re

from nbclient.exceptions import DeadKernelError
from nbformat.v4 import new_output
from nbgrader.converters.autograde import Autograde
from nbgrader.converters.generate_assignment import GenerateAssignment
from nbgrader.converters.generate_feedback import GenerateFeedback
from nbgrader.plugins import FileNameCollectorPlugin
from nbgrader.preprocessors import ClearMarkScheme, Execute, LimitOutput, NbGraderPreprocessor
from traitlets import Unicode

# nbgrader gives this function to the file; the one of the same name in traitlets makes settings that some commands don't read.
c = get_config()  # noqa: F821


class StandAlone(NbGraderPreprocessor):
    """Make a notebook readable outside the book: links to the course's site, or none."""

    site = Unicode("", help="the address of the course's site, such as https://example.org/course").tag(config=True)

    def preprocess_cell(self, cell, resources, index):
        site = self.site.rstrip("/")
        if cell.cell_type == "markdown":
            page = rf"[\1]({site}/\2.html\3)" if site else r"\1"
            cell.source = re.sub(r"\[([^\]]+)\]\((?:\.\./)+(book/[\w/]+)\.(?:ipynb|md)(#[\w-]+)?\)", page, cell.source)
        elif site:
            cell.source = re.sub(r"(# %pip install .*)(?=posenc_course-)", rf"\1{site}/", cell.source)
        return cell, resources


def fail(cell, sentence):
    """Give a cell that wasn't run to its end the output of an error, which gets no points."""
    cell.outputs = [new_output("error", ename="Not run", evalue=sentence, traceback=[sentence])]


class Patient(Execute):
    """Go on if a cell ends Python, and don't wait again for a function that hasn't returned."""

    def preprocess(self, nb, resources, **kwargs):
        self.ended, self.checked, self.stuck = False, set(), set()
        return super().preprocess(nb, resources, **kwargs)

    def preprocess_cell(self, cell, resources, index):
        about, names = cell.metadata.get("nbgrader", {}), {*re.findall(r"\w+", cell.source)}
        shows = about.get("locked") and not about.get("grade")
        if cell.cell_type != "code":
            return cell, resources
        if self.ended:
            fail(cell, "Not run, because a cell above has ended Python.")
        elif shows and self.stuck & names:
            fail(cell, f"Not run, because {min(self.stuck & names)} didn't return in time in a cell above.")
        else:
            try:
                super().preprocess_cell(cell, resources, index)
            except DeadKernelError:
                self.ended = True
                fail(cell, "This cell has ended Python. Does it call something like os._exit, or use too much memory?")
        if about.get("grade"):
            answers = {*re.findall(r"\w+", re.search(r"\(checks\.[\w.]+\(([\w, ]*)", cell.source)[1])}
            self.checked |= answers
            if any("didn't return within" in output.get("text", "") for output in cell.outputs):
                self.stuck |= answers
        elif shows and any(output.get("ename") == "CellTimeoutError" for output in cell.outputs):
            self.stuck |= self.checked & names
        return cell, resources


class LimitCharacters(NbGraderPreprocessor):
    """Cut long outputs of cells. nbgrader's own limit counts lines, and a single line may have ten million characters."""

    def preprocess_cell(self, cell, resources, index):
        for output in cell.get("outputs", []):
            if len(output.get("text", "")) > 20_000:
                output.text = output.text[:20_000] + "\n... Output truncated ..."
        return cell, resources


class Readable(NbGraderPreprocessor):
    """Give a student's page the assignment's title instead of the file's name, and lines that don't end outside it."""

    def preprocess(self, nb, resources):
        title = re.search(r"^# (.*)", nb.cells[0].source if nb.cells else "")
        if title:
            resources["nbgrader"]["notebook"] = title[1]
        resources["inlining"]["css"] += [
            "pre { white-space: pre-wrap !important }",
            "summary { display: list-item !important }",
        ]
        return nb, resources


class Platform(FileNameCollectorPlugin):
    """Say whose notebook this is, by the name that Canvas or Moodle gave it when a teacher downloaded the whole class's work.

    In Canvas, that's `lovelaceada_LATE_1843_56789_01_order.ipynb`, in Moodle `Ada Lovelace_1843_assignsubmission_file/a.ipynb`:
    a name and a number, which stay the same for all assignments. An assignment is one notebook, so its own name doesn't matter.
    """

    def collect(self, submitted_file):
        whose = re.search(r"/([^/_]+)_(?:LATE_)?(\d+)_(?:\d+_|assignsubmission_file)(?!.*/\.)", submitted_file)
        if not whose or not submitted_file.endswith(".ipynb"):
            return None
        return {"student_id": "_".join(whose.groups()), "file_id": self.parent.coursedir.assignment_id}


def replaced(steps, old, *new):
    return [each for step in steps for each in (new if step is old else [step])]


c.CourseDirectory.course_id = "where-is-a-token"
# Not the folder `release`, whose notebooks are pages of the book.
c.CourseDirectory.release_directory = "handout"
c.ZipCollectApp.collector_plugin = Platform
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError  # your turn"}
c.ClearSolutions.text_stub = "*Your answer.*"
# The rubric stands in the cell with the question, and the key of a student's own numbers in a cell that earns no points.
# nbgrader takes both out of what students get, and puts them back when it grades, but expects them in cells of other kinds.
c.ClearMarkScheme.enforce_metadata = False
c.ClearHiddenTests.enforce_metadata = False
c.GenerateAssignment.preprocessors = [StandAlone, *GenerateAssignment.preprocessors.default_args[0]]

c.Execute.extra_arguments = [
    "--HistoryManager.hist_file=:memory:",
    # Otherwise, a posenc_course.py that a student hands in beside the notebook would replace the package.
    "--InteractiveShellApp.ignore_cwd=True",
]
c.Execute.timeout = 60  # seconds per cell: a loop that never ends costs only its author, and only this cell
c.Execute.iopub_timeout = 30  # on a busy machine, the last words of a cell can take a while,
c.Execute.raise_on_iopub_timeout = False  # and without them, a notebook is still graded
c.LimitOutput.max_lines = 500
c.LimitOutput.max_traceback = 20
steps = replaced(Autograde.autograde_preprocessors.default_args[0], Execute, Patient)
c.Autograde.autograde_preprocessors = replaced(steps, LimitOutput, LimitCharacters, LimitOutput)
# The questions to ask in person stand beside the rubric.
c.GenerateFeedback.preprocessors = [ClearMarkScheme, *GenerateFeedback.preprocessors.default_args[0], Readable]
