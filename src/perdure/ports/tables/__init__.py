"""The parts of a store, a module for each family of tables: what a transaction can do with them, and the form of their rows."""
