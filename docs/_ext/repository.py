"""Replace links to folders of the repository, which the site does not have, with their text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform


class FoldersAsText(SphinxPostTransform):
    """Replace links to folders with their text, before MyST looks for pages of that name."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        """Replace the links of one page."""
        folder = Path(self.env.doc2path(self.env.docname)).parent
        for node in list(self.document.findall(addnodes.pending_xref)):
            if node["reftype"] == "myst" and (folder / node["reftarget"]).is_dir():
                node.replace_self(node.children)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform."""
    app.add_post_transform(FoldersAsText)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
