# Counting accesses of kernels: a target compiled with twinbench_counted has the hooks of `-fsanitize=thread` before each
# access (not that sanitizer: its runtime is not linked), and debug lines that say where each stands.

# libbacktrace is part of Debian's and Ubuntu's GCC packages.
twinbench_engine(simt/counting LIBRARIES twinbench_simt backtrace ${CMAKE_DL_LIBS})
add_library(twinbench_hooked INTERFACE)
add_library(twinbench_counted INTERFACE)
target_link_libraries(twinbench_hooked INTERFACE twinbench_simt_counting)
target_link_libraries(twinbench_counted INTERFACE twinbench_hooked)
# The sanitizers exclude one another: a build with theirs counts nothing.
if(NOT TWINBENCH_SANITIZE AND NOT TWINBENCH_SANITIZE_THREADS)
  # What would join, split or replace accesses as no card does is off; structs stay whole, so that a 16-byte copy is one
  # access of 16 bytes.
  target_compile_options(twinbench_hooked INTERFACE -fsanitize=thread --param=tsan-instrument-func-entry-exit=0 -g1
    -fno-tree-sra -fno-ipa-sra -fno-tree-vectorize -fno-tree-slp-vectorize -fno-store-merging
    -fno-tree-loop-distribute-patterns)
  # Counts are pinned, so the level is the same in every build. The lowest is the nearest to the source: -O2 splits some
  # stores among branches, so that a warp makes more requests than it would (seen at Cayley's backward pass).
  target_compile_options(twinbench_counted INTERFACE -O1)

  set(levels "")
  foreach(level 1 2 3)
    add_library(counted_level_${level} OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/testing/counted_run.cpp)
    target_link_libraries(counted_level_${level} PRIVATE twinbench_hooked)
    target_compile_options(counted_level_${level} PRIVATE -O${level})
    target_compile_definitions(counted_level_${level} PRIVATE TWINBENCH_LEVEL=level_${level})
    list(APPEND levels counted_level_${level})
  endforeach()
  twinbench_test(counted_kernels_tests SOURCES ${CMAKE_CURRENT_LIST_DIR}/testing/launch_counter_test.cpp
    LIBRARIES ${levels} twinbench_simt_counting LABELS simt)
endif()
