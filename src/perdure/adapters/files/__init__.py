"""Files and folders that people may read: documents, lessons, agents, transcripts."""
