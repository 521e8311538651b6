"""Lesson books: their lines, their order, and whom a lesson reaches."""
