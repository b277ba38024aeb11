"""Turns a judged record into something to read: HTML, Markdown, a terminal table, JUnit, annotations."""
