"""What ci/bundle is made of: programs made relocatable, the files of a bundle, and the archive."""
