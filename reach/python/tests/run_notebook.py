"""Runs a notebook's code, and says what each cell prints.

    run_notebook.py NOTEBOOK [RENEWED]

Cells run in order in one namespace, as "Restart and run all" does. What a cell prints has to be what the notebook shows;
RENEWED is a copy with what was printed in its place. Nothing but Python and the package is needed.
"""

import contextlib
import io
import json
import re
import sys
from pathlib import Path


def check_form(book):
    """Checks what every reader of notebooks of format 4.5 relies on (https://nbformat.readthedocs.io)."""
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    names = [cell["id"] for cell in book["cells"]]
    assert len(set(names)) == len(names), "identifiers of cells differ"
    for cell in book["cells"]:
        expected = {"cell_type", "id", "metadata", "source"}
        if cell["cell_type"] == "code":
            expected |= {"execution_count", "outputs"}
        assert set(cell) == expected, cell["id"]
        assert re.fullmatch("[A-Za-z0-9_-]{1,64}", cell["id"])
        assert all(isinstance(line, str) for line in cell["source"])


def shown(cell):
    """Returns what a cell shows as its output."""
    return "".join("".join(output["text"]) for output in cell["outputs"])


def main():
    path = Path(sys.argv[1])
    book = json.loads(path.read_text(encoding="utf-8"))
    check_form(book)
    namespace = {"__name__": "__main__"}
    differing = []
    cells = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert cells, "a notebook has code"
    for number, cell in enumerate(cells, 1):
        printed = io.StringIO()
        code = compile("".join(cell["source"]), f"{path.name}, {cell['id']}", "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        text = printed.getvalue()
        if text != shown(cell):
            differing.append(f"{cell['id']} shows\n{shown(cell)}and prints\n{text}")
        lines = text.splitlines(keepends=True)
        stream = {"name": "stdout", "output_type": "stream", "text": lines}
        cell["execution_count"] = number
        cell["outputs"] = [stream] if lines else []
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    elif differing:
        sys.exit(f"{path.name}: " + "\n".join(differing))
    print(f"{path.stem}: {len(cells)} cells")


if __name__ == "__main__":
    main()
