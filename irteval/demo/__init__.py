"""``irteval demo``: the whole story on real classifiers and real images, without network or download."""

from irteval.demo.story import DemoResult, DemoRow, run_demo

__all__ = ["DemoResult", "DemoRow", "run_demo"]
