"""The tutorial notebook, executed in a kernel as Jupyter does."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parent / "tutorial.ipynb"


def test_every_cell_of_the_tutorial_runs(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in code:
        assert not cell.outputs and cell.execution_count is None, "strip the outputs"
    client = NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute()
    shown = [output for cell in code for output in cell.outputs]
    pages = [found["data"]["text/html"] for found in shown if "text/html" in found.get("data", {})]
    # The link, its report and its log.
    assert len(pages) == 3 and all("<svg" in page for page in pages)
    text = "".join(found["text"] for found in shown if found.output_type == "stream")
    assert "the same frames, live and simulated" in text
