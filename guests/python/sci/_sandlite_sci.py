"""What is particular to the scientific interpreter: libraries that are part of the image, and what of them must be fresh."""

import importlib
import sys
import zipimport

LIBRARY = "/usr/local/lib/python315.zip"
DATA = "/usr/local/lib/python3.15"

# Importing these takes seconds; in the image they are there. Ordered by what needs what.
IMAGED = (
    "random",
    "numpy",
    "numpy.random",
    "numpy.linalg",
    "numpy.fft",
    "pandas",
    "matplotlib.pyplot",
    "matplotlib.backends.backend_agg",
    "scipy.stats",
    "scipy.optimize",
    "scipy.signal",
    "scipy.interpolate",
    "scipy.integrate",
    "sklearn.cluster",
    "sklearn.datasets",
    "sklearn.ensemble",
    "sklearn.linear_model",
    "sklearn.metrics",
    "sklearn.model_selection",
    "sklearn.pipeline",
    "sklearn.preprocessing",
    "sklearn.tree",
)


class DataBeside:
    """Matplotlib looks for its data beside itself, where a zip has no files: this sets the path to where they are."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "matplotlib":
            return None
        spec = zipimport.zipimporter(LIBRARY).find_spec(name)
        spec.origin = f"{DATA}/matplotlib/__init__.py"
        return spec


def settle():
    """Import what should be part of the image."""
    sys.meta_path.insert(0, DataBeside)
    for name in IMAGED:
        importlib.import_module(name)


def begin():
    """What the image has from its making and each process must have of its own: randomness."""
    sys.modules["random"].seed()
    sys.modules["numpy.random"].seed()
