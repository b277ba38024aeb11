# Flags every C++ target shares (one set, so that one precompiled header serves all), ccache, and the test helper.

# -Wno-restrict: g++ 12 reports every std::string concatenation (GCC bug 105651).
# No fast-math and no contraction: host and device evaluate the same expressions (energy-flow specification 0.2).
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wno-restrict;-ffp-contract=off;-fno-math-errno;-fno-trapping-math>")
include_directories(${PROJECT_SOURCE_DIR})
if(TWINBENCH_SANITIZE OR TWINBENCH_SANITIZE_THREADS)
  set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG")  # a third of the time that instrumented code takes to compile with -O3
endif()
if(TWINBENCH_SANITIZE)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined;-fno-sanitize-recover=undefined;-fno-omit-frame-pointer;-g1>")
  # Torch's shared objects are not instrumented and throw vptr and alignment reports of their own.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=vptr>")
  add_link_options(-fsanitize=address,undefined)
elseif(TWINBENCH_SANITIZE_THREADS)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=thread;-fno-omit-frame-pointer;-g1>")
  add_link_options(-fsanitize=thread)
endif()

# For what is never timed and computes little: the specifications and the tests. A third less to compile than -O3.
set(TWINBENCH_CHEAP "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>")

option(TWINBENCH_UNITE "Compile several sources as one; OFF for who edits one file again and again" ON)
# twinbench_names(<variable> <file>): what the file defines at the outermost level of its first namespace, by the look of
# its lines: "twinbench::experiments::speed/make_experiment".
function(twinbench_names variable file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  string(REGEX REPLACE "\\[\\[[a-z_]+\\]\\] *" "" text "${text}")  # attributes
  string(REGEX REPLACE "[];[]" " " text "${text}")
  string(REGEX MATCHALL "\n[a-zA-Z][^\n]*" lines "${text}")
  set(names "")
  set(namespace "")
  if(text MATCHES "\nnamespace ([a-z0-9_:]+) ")
    set(namespace ${CMAKE_MATCH_1})
  endif()
  foreach(line IN LISTS lines)
    if(line MATCHES "^.(namespace|using [a-z0-9_]+(::| )|using [A-Za-z0-9_]+ = [a-z0-9_]+::|TEST|INSTANTIATE|template|return)")
      continue()
    elseif(line MATCHES "^.(struct|class|enum class|enum|using) ([A-Za-z0-9_]+)")
      list(APPEND names ${CMAKE_MATCH_2})
    elseif(line MATCHES "[ &*]([A-Za-z0-9_]+)\\((const )?([A-Za-z0-9_:<>]*)")
      set(name ${CMAKE_MATCH_1})
      set(first ${CMAKE_MATCH_3})
      if(first AND NOT line MATCHES "=")
        string(APPEND name "(${first}")  # overloads may stand side by side, unless a default makes them ambiguous
      endif()
      list(APPEND names "${name}")
    else()
      string(REGEX MATCHALL "[A-Za-z0-9_]+ *[={]" variables "${line}")
      string(REGEX REPLACE " *[={]" "" variables "${variables}")
      list(APPEND names ${variables})
      if(NOT line MATCHES "=" AND line MATCHES " ([A-Za-z0-9_]+) *$")
        list(APPEND names ${CMAKE_MATCH_1})
      endif()
    endif()
  endforeach()
  list(REMOVE_ITEM names const "")
  list(TRANSFORM names PREPEND "${namespace}/")
  set(${variable} ${names} PARENT_SCOPE)
endfunction()

# twinbench_units(<variable> <name> <most> <sources>): units that include up to so many of the sources each: of one
# folder, or one role of a pipeline's components. What a file of this size costs is mostly fixed: the templates that a
# precompiled header leaves to each object, GoogleTest, JSON; 18 files that take 112 s by themselves take 31 s as one.
# Files that define something of one name, as unnamed namespaces may, go to different units; should the compiler still
# find one ("redefinition"), rename it. The units name their sources by paths below the checkout, so that the compiler
# cache serves other checkouts (CMake's own units hold the whole path). Not for optimized/: what is timed must not depend
# on what is compiled beside it.
function(twinbench_units variable name most)
  if(NOT TWINBENCH_UNITE)
    set(${variable} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(units 0)
  foreach(source IN LISTS ARGN)
    get_filename_component(source ${source} ABSOLUTE)
    file(RELATIVE_PATH place ${PROJECT_SOURCE_DIR} ${source})
    get_filename_component(folder ${place} DIRECTORY)
    set(group ${folder})
    set(names "")
    if(place MATCHES "^[a-z]+/([a-z0-9_]+)/([a-z0-9_]+)/([a-z0-9_]+)\\.cpp$")
      if("${CMAKE_MATCH_1}.${CMAKE_MATCH_2}" IN_LIST TWINBENCH_COMPONENT_IDS)
        set(group ${CMAKE_MATCH_1}_${CMAKE_MATCH_3})  # components have namespaces of their own
        if(CMAKE_MATCH_3 MATCHES "_test$")
          set(group component_tests)  # a component may have several, of one namespace
          twinbench_names(names ${source})
        endif()
      endif()
    endif()
    if(group STREQUAL folder)
      twinbench_names(names ${source})
    endif()
    set(unit 0)
    while(unit LESS units)
      list(LENGTH places_${unit} count)
      set(common "")
      if(group STREQUAL "${group_${unit}}" AND count LESS most)
        set(common ${names})
        list(REMOVE_ITEM common ${names_${unit}} "")
        list(LENGTH common without)
        list(LENGTH names all)
        if(without EQUAL all)
          break()
        endif()
      endif()
      math(EXPR unit "${unit} + 1")
    endwhile()
    set(group_${unit} ${group})
    list(APPEND places_${unit} ${place})
    list(APPEND names_${unit} ${names})
    if(unit EQUAL units)
      math(EXPR units "${units} + 1")
    endif()
  endforeach()
  set(files "")
  set(unit 0)
  while(unit LESS units)
    list(JOIN places_${unit} "\"\n#include \"" includes)
    list(APPEND files ${PROJECT_BINARY_DIR}/units/${name}_${unit}.cpp)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/units/${name}_${unit}.cpp
      CONTENT "// Generated by twinbench_units.\n#include \"${includes}\"\n" @ONLY)
    math(EXPR unit "${unit} + 1")
  endwhile()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()

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

# How long a test may take, in seconds: a unit test, and what runs the program many times. Instrumented, both are slow.
set(TWINBENCH_TEST_SECONDS 900)  # ends what hangs: the longest takes 330 s on two slow cores beside another one
set(TWINBENCH_LONG_TEST_SECONDS 1200)
if(TWINBENCH_SANITIZE OR TWINBENCH_SANITIZE_THREADS)
  set(TWINBENCH_TEST_SECONDS 1800)
  set(TWINBENCH_LONG_TEST_SECONDS 1800)
endif()

# What every test's environment says about waiting OpenMP threads, however ctest is called: they sleep. Two tests at once
# whose threads spin for each other take three times as long.
set(TWINBENCH_WAITING_THREADS_SLEEP "OMP_WAIT_POLICY=set:PASSIVE;GOMP_SPINCOUNT=unset:")

# twinbench_test(<target> SOURCES ... LIBRARIES ... [ALONE ...] [LABELS ...] [PARTS n]): a GoogleTest program, run in the
# project's folder. ALONE: sources, by their path below the calling folder, that have compile options of their own.
# PARTS: where its tests take minutes, so many CTest tests that share them out, so that all cores have some to the end.
include(GoogleTest)
function(twinbench_test target)
  cmake_parse_arguments(arg "TORCH" "PARTS" "SOURCES;LIBRARIES;LABELS;ALONE" ${ARGN})
  list(TRANSFORM arg_ALONE PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  list(REMOVE_ITEM arg_SOURCES ${arg_ALONE})
  twinbench_units(units ${target} 10 ${arg_SOURCES})
  # An object library first: an executable's own sources get -fPIE, which would not match the precompiled header.
  add_library(${target}_objects OBJECT ${units} ${arg_ALONE})
  target_link_libraries(${target}_objects PRIVATE ${arg_LIBRARIES} GTest::gtest)
  target_compile_options(${target}_objects PRIVATE ${TWINBENCH_CHEAP})
  if(arg_TORCH)
    target_precompile_headers(${target}_objects REUSE_FROM twinbench_precompiled)
  endif()
  add_executable(${target} $<TARGET_OBJECTS:${target}_objects>)
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES} GTest::gtest GTest::gtest_main)
  if(NOT arg_PARTS)
    set(arg_PARTS 1)
  endif()
  foreach(part RANGE 1 ${arg_PARTS})
    set(name unit.${target})
    if(arg_PARTS GREATER 1)
      string(APPEND name _${part})
    endif()
    math(EXPR index "${part} - 1")
    add_test(NAME ${name} COMMAND ${target} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES LABELS "cpu;unit;${arg_LABELS}" TIMEOUT ${TWINBENCH_TEST_SECONDS}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_PARTS};GTEST_SHARD_INDEX=${index}"
      ENVIRONMENT_MODIFICATION "${TWINBENCH_WAITING_THREADS_SLEEP}")
  endforeach()
endfunction()
find_package(GTest REQUIRED)
find_package(Boost REQUIRED COMPONENTS context)
find_package(Threads REQUIRED)
