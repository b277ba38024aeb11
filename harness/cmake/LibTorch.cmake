# LibTorch from the torch wheel (or an unpacked libtorch archive, same layout) as imported targets torch::cpu and
# torch::cuda. Not find_package(Torch): without a GPU its CUDA detection fails and it forces its flags on everyone.

set(TWINBENCH_LIBTORCH_ROOT "" CACHE PATH "Folder with LibTorch's include/ and lib/; empty: the project's venv")
set(root "${TWINBENCH_LIBTORCH_ROOT}")
if(NOT root)
  set(venv "$ENV{TWINBENCH_VENV}")
  if(NOT venv)
    set(venv "${PROJECT_SOURCE_DIR}/.venv")
  endif()
  file(GLOB candidates "${venv}/lib/python3*/site-packages/torch")
  list(LENGTH candidates found)
  if(NOT found EQUAL 1)
    message(FATAL_ERROR "LibTorch not found under ${venv}. Run ci/setup, or set TWINBENCH_LIBTORCH_ROOT.")
  endif()
  list(GET candidates 0 root)
endif()
# One spelling of the path, however it was reached: another one would recompile everything.
get_filename_component(root "${root}" REALPATH)
get_filename_component(site_packages "${root}/.." REALPATH)
set(TWINBENCH_CUDA_WHEEL "${site_packages}/nvidia/cu13")

file(STRINGS "${root}/version.py" version_line REGEX "^__version__ = ")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+[+a-z0-9]*" TWINBENCH_LIBTORCH_VERSION "${version_line}")
if(NOT TWINBENCH_LIBTORCH_VERSION MATCHES "^2\\.11\\.")
  message(FATAL_ERROR "LibTorch 2.11 is needed, ${root} holds '${TWINBENCH_LIBTORCH_VERSION}'.")
endif()
message(STATUS "LibTorch ${TWINBENCH_LIBTORCH_VERSION} at ${root}")

function(twinbench_import_library name)
  add_library(${name} SHARED IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION "${root}/lib/lib${ARGV1}.so")
endfunction()
twinbench_import_library(torch::c10 c10)
twinbench_import_library(torch::torch_cpu torch_cpu)
add_library(torch::cpu INTERFACE IMPORTED GLOBAL)
target_include_directories(torch::cpu SYSTEM INTERFACE "${root}/include" "${root}/include/torch/csrc/api/include")
# Not libtorch.so: it holds nothing and loads CUDA's thirty libraries, a fifth of the time that a process takes to start.
target_link_libraries(torch::cpu INTERFACE torch::torch_cpu torch::c10)
target_link_options(torch::cpu INTERFACE "-Wl,-rpath,${root}/lib")

# at::parallel_for is a template: without -fopenmp in OUR files it runs serially there. Its runtime must be the wheel's own;
# a second one in the process would oversubscribe the cores.
find_package(Threads REQUIRED)
file(GLOB openmp_runtime "${root}/lib/libgomp*.so*")
target_compile_options(torch::cpu INTERFACE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fopenmp>")
target_link_libraries(torch::cpu INTERFACE Threads::Threads ${openmp_runtime})

if(TWINBENCH_WITH_CUDA)
  twinbench_import_library(torch::c10_cuda c10_cuda)
  twinbench_import_library(torch::torch_cuda torch_cuda)
  add_library(torch::cuda INTERFACE IMPORTED GLOBAL)
  target_include_directories(torch::cuda SYSTEM INTERFACE "${TWINBENCH_CUDA_WHEEL}/include")
  # No symbol of torch_cuda is referenced; without this the linker drops it and CUDA silently disappears.
  target_link_options(torch::cuda INTERFACE "-Wl,--no-as-needed,${root}/lib/libtorch_cuda.so,${root}/lib/libc10_cuda.so,--as-needed")
  target_link_libraries(torch::cuda INTERFACE torch::cpu torch::torch_cuda torch::c10_cuda)
endif()
