"""The worker, its leases, and requests that are carried out once. Writes the queue; what a job does is its handler's."""
