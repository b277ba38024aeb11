"""The statistics of the judge, one purpose a module. What the C++ harness computes too agrees with it to 1e-12."""
