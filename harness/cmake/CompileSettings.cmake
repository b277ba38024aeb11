# Flags every C++ target shares (one set, so that one precompiled header serves all), ccache, and the test helper.

# -Wno-restrict: g++ 12 reports every std::string concatenation (GCC bug 105651).
# No fast-math and no contraction: host and device evaluate the same expressions (energy-flow specification 0.2).
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wno-restrict;-ffp-contract=off;-fno-math-errno;-fno-trapping-math>")
include_directories(${PROJECT_SOURCE_DIR})
if(TWINBENCH_SANITIZE)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined;-fno-sanitize-recover=undefined;-fno-omit-frame-pointer;-g1>")
  # Torch's shared objects are not instrumented and throw vptr and alignment reports of their own.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=vptr>")
  add_link_options(-fsanitize=address,undefined)
endif()

# For what is never timed and computes little: the specifications and the tests. A third less to compile than -O3.
set(TWINBENCH_CHEAP "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>")

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # What the keys hold: paths below the checkout as relative ones, the compilers' contents instead of their dates (one in
  # .venv is as old as the checkout). So another checkout, another preset and another .venv find the same objects.
  # The inode cache remembers the precompiled header's checksum: 390 MB read anew are 0.4 s of each 0.45 s that a hit takes.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_COMPILERCHECK=content CCACHE_INODECACHE=1
      ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${launcher})
endif()
find_program(MOLD mold)
if(MOLD)
  # Every segment on pages of its own: otherwise mold 1.10 (Debian 12) may begin the RELRO segment, at .tbss, on a page
  # that nothing maps, depending on the size of the code, and the loader refuses the program ("cannot apply additional
  # memory protection"). Without RELRO it may not end at all.
  add_link_options(-fuse-ld=mold -Wl,-z,separate-code)
endif()

# What every test's environment says about waiting OpenMP threads, however ctest is called: they sleep. Two tests at once
# whose threads spin for each other take three times as long.
set(TWINBENCH_WAITING_THREADS_SLEEP "OMP_WAIT_POLICY=set:PASSIVE;GOMP_SPINCOUNT=unset:")

# twinbench_test(<target> SOURCES ... LIBRARIES ... [LABELS ...]): a GoogleTest program, registered case by case.
include(GoogleTest)
function(twinbench_test target)
  cmake_parse_arguments(arg "TORCH" "" "SOURCES;LIBRARIES;LABELS" ${ARGN})
  # An object library first: an executable's own sources get -fPIE, which would not match the precompiled header.
  add_library(${target}_objects OBJECT ${arg_SOURCES})
  target_link_libraries(${target}_objects PRIVATE ${arg_LIBRARIES} GTest::gtest)
  target_compile_options(${target}_objects PRIVATE ${TWINBENCH_CHEAP})
  if(arg_TORCH)
    target_precompile_headers(${target}_objects REUSE_FROM twinbench_precompiled)
  endif()
  add_executable(${target} $<TARGET_OBJECTS:${target}_objects>)
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES} GTest::gtest GTest::gtest_main)
  add_test(NAME unit.${target} COMMAND ${target})
  set_tests_properties(unit.${target} PROPERTIES LABELS "cpu;unit;${arg_LABELS}" TIMEOUT 300
    ENVIRONMENT_MODIFICATION "${TWINBENCH_WAITING_THREADS_SLEEP}")
endfunction()
find_package(GTest REQUIRED)
find_package(Boost REQUIRED COMPONENTS context)
find_package(Threads REQUIRED)
