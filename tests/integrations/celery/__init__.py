"""Tests of Celery's transport; all of them need Celery."""

import pytest

pytest.importorskip("celery", reason="needs Celery: pip install 'sprocketmq[celery]'")
