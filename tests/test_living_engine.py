"""The figures' own arithmetic, in a real browser: its formulas are the package's, and its decoder computes what torch computes."""

from __future__ import annotations

import base64
import random
import re
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from tests.commands import ROOT

sys.path.insert(0, str(ROOT / "tools/sphinx"))

LIVING = """window.living = {
  factories: {}, modules: {}, values: {},
  define(name, needs, make) {
    this.factories[name] = [needs, make];
    this.modules[name] = make(Object.assign({}, ...needs.map((need) => this.modules[need])));
  },
  load(name) { return this.values[name] ? Promise.resolve(this.values[name]) : Promise.reject(new Error(`no ${name}`)); },
  source(name) {
    return `const living = { modules: {}, define(name, needs, make) {
      this.modules[name] = make(Object.assign({}, ...needs.map((need) => this.modules[need])));
    } };` + Object.entries(this.factories).filter(([other]) => other !== "models").map(
      ([other, [needs, make]]) => `living.define(${JSON.stringify(other)}, ${JSON.stringify(needs)}, ${make});`,
    ).join("\\n");
  },
};
window.packed = (numbers) => {
  const bytes = new Uint8Array(new Float64Array(numbers).buffer);
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
};"""


def classic(name: str) -> str:
    """The module as a classic script."""
    source = (ROOT / "book/living" / f"{name}.js").read_text(encoding="utf-8")
    imports = re.findall(r'^import \{ (.*) \} from "\./(.*)\.js";\n', source, re.MULTILINE)
    source = re.sub(r"^import .*\n", "", source, flags=re.MULTILINE)
    exported = re.findall(r"^export (?:async )?(?:function|const|class) (\w+)", source, re.MULTILINE)
    source = re.sub(r"^export ", "", source, flags=re.MULTILINE)
    needs = [module for _, module in imports]
    names = ", ".join(names for names, _ in imports)
    return f"living.define({name!r}, {needs!r}, ({{ {names} }}) => {{\n{source}\nreturn {{ {', '.join(exported)} }};\n}});"


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_page() as page:
        page.evaluate(LIVING)
        for name in ("formulas", "decoder", "models"):
            page.add_script_tag(content=classic(name))
        page.evaluate("window.ready = {}")
        yield page


def unpacked(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=np.float64)


DRAWN = random.Random(0)
