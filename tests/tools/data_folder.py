"""What tests need of the folder of real data."""

import os

import pytest

DATA = os.environ.get("CREDENCE_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="CREDENCE_DATA is not set")
