"""The lane `make test-citus URL=…`. Without a cluster there is nothing to collect here."""

from __future__ import annotations

import citus_cluster

collect_ignore_glob = [] if citus_cluster.url() else ["test_*.py"]
