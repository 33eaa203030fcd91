"""nbgrader's settings for this course; every nbgrader command that is run in this folder reads them."""

from traitlets.config import get_config

c = get_config()

c.CourseDirectory.course_id = "where-is-a-token"
# Of what is handed in, only the notebook counts: a posenc_course.py beside it would stand in for the package.
c.CourseDirectory.ignore = [
    ".ipynb_checkpoints",
    "__pycache__",
    "feedback",
    "*.py",
    "*.pyc",
    "*.so",
    "*.pyd",
    "*.zip",
]
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError  # your turn"}
c.ClearSolutions.text_stub = "*Your answer.*"
c.Execute.timeout = 60  # seconds for a cell: a loop that never ends costs its author the cell, and nobody else anything
c.LimitOutput.max_lines = 500
c.LimitOutput.max_traceback = 20
