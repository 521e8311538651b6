"""What becomes of a proposal, of doubles and of clashes: committer, curator, audit, redaction."""
