"""What tests of the studio share."""

import pytest

from studio_tasks import InPlace


@pytest.fixture
def in_place(session):
    """Do the jobs of a session in this process, where faults can be planted and nothing starts."""
    session.__dict__["jobs"] = InPlace(session.folder)
    return session.jobs
