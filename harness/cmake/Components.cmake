# components.def -> source lists, with every missing file a configure error that names it. One line there and its own
# folders, <top>/<pipeline>/<name>/ with files named by role, are all that a new component touches.

set(TWINBENCH_COMPONENT_LIST "${PROJECT_SOURCE_DIR}/src/components.def" CACHE FILEPATH "The list of components")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${TWINBENCH_COMPONENT_LIST}")
file(STRINGS "${TWINBENCH_COMPONENT_LIST}" lines REGEX "^TWINBENCH_COMPONENT\\(")

set(TWINBENCH_COMPONENT_IDS "")
set(TWINBENCH_KERNEL_IDS "")  # of those with kernels, which run on simt too
foreach(list spec_sources baseline_sources optimized_sources cuda_sources kernel_sources)
  set(TWINBENCH_${list} "")
endforeach()

macro(twinbench_need list file)
  if(NOT EXISTS "${PROJECT_SOURCE_DIR}/${file}")
    message(FATAL_ERROR "Component ${pipeline}.${name} is listed in src/components.def but ${file} is missing.")
  endif()
  if(NOT "${list}" STREQUAL "")
    list(APPEND TWINBENCH_${list} "${PROJECT_SOURCE_DIR}/${file}")
  endif()
endmacro()

foreach(line IN LISTS lines)
  if(NOT line MATCHES "^TWINBENCH_COMPONENT\\(([a-z0-9_]+), ([a-z0-9_]+), (kernel|composite|host), (library|plain)\\)$")
    message(FATAL_ERROR "src/components.def: not TWINBENCH_COMPONENT(pipeline, name, kernel|composite|host, library|plain): ${line}")
  endif()
  set(pipeline ${CMAKE_MATCH_1})
  set(name ${CMAKE_MATCH_2})
  set(kind ${CMAKE_MATCH_3})
  set(variants ${CMAKE_MATCH_4})
  list(APPEND TWINBENCH_COMPONENT_IDS ${pipeline}.${name})
  set(component ${pipeline}/${name})
  twinbench_need(spec_sources src/${component}/spec.cpp)
  twinbench_need(baseline_sources baselines/${component}/baseline.cpp)
  twinbench_need(optimized_sources optimized/${component}/cpu.cpp)
  if(variants STREQUAL library)
    twinbench_need(baseline_sources baselines/${component}/library.cpp)
  endif()
  if(kind STREQUAL kernel)
    list(APPEND TWINBENCH_KERNEL_IDS ${pipeline}.${name})
    foreach(role math.h arguments.h kernel.h kernel_test.cpp)
      twinbench_need("" kernels/${component}/${role})
    endforeach()
    twinbench_need(kernel_sources kernels/${component}/launch.cu)
  endif()
  if(NOT kind STREQUAL host)
    twinbench_need(cuda_sources optimized/${component}/cuda.cpp)
  endif()
  # More files of a role-named kind (optimized/.../streaming_loader.cpp) belong to the component and are found.
  foreach(top optimized baselines)
    file(GLOB more CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${top}/${component}/*.cpp")
    list(FILTER more EXCLUDE REGEX "/(cpu|cuda|baseline|library|[a-z0-9_]*_test)\\.cpp$")
    if(top STREQUAL optimized)
      list(APPEND TWINBENCH_optimized_sources ${more})
    else()
      list(APPEND TWINBENCH_baseline_sources ${more})
    endif()
  endforeach()
endforeach()
list(REMOVE_DUPLICATES TWINBENCH_COMPONENT_IDS)
list(REMOVE_DUPLICATES TWINBENCH_KERNEL_IDS)

# Worked examples and tables travel inside the program: the text of every goldens.json and every spec.json.
function(twinbench_embed file function header)
  set(entries "")
  foreach(id IN LISTS TWINBENCH_COMPONENT_IDS)
    string(REPLACE "." "/" component ${id})
    set(path "${PROJECT_SOURCE_DIR}/src/${component}/${file}")
    if(EXISTS "${path}")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
      file(READ "${path}" text)
      string(APPEND entries "      {\"${id}\", R\"file(${text})file\"},\n")
    endif()
  endforeach()
  file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/generated/src/${function}s.cpp" CONTENT
"// Generated from the ${file} beside the specifications.
#include <cstring>
#include \"${header}\"
namespace twinbench {
const char* ${function}(const std::string& component_id) {
  struct Entry { const char* id; const char* text; };
  static const Entry entries[] = {
${entries}      {\"\", \"\"}};
  for (const auto& entry : entries)
    if (component_id == entry.id) return entry.text;
  return \"\";
}
}  // namespace twinbench
")
endfunction()
twinbench_embed(goldens.json golden_text src/golden_file.h)
twinbench_embed(spec.json spec_text src/spec_tables.h)
set(TWINBENCH_embedded_sources ${PROJECT_BINARY_DIR}/generated/src/golden_texts.cpp
  ${PROJECT_BINARY_DIR}/generated/src/spec_texts.cpp)
