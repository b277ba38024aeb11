"""What the specifications document, read from a source tree, beside what a record measured of it."""
