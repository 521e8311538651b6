"""The shared store: PostgreSQL through psycopg 3, with row-level security and deadlines that hold on our side too."""
