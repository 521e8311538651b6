"""The store as a whole: backup, verification, health. Reads snapshots of everything."""
