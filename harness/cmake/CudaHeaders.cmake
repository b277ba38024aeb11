# Headers of the CUDA driver, CUPTI, NVTX3 and NVML as cuda::headers. No library: the observers open those at run time.
find_path(TWINBENCH_CUPTI_INCLUDE cupti.h
  HINTS "${TWINBENCH_CUDA_WHEEL}/include" /usr/local/cuda/extras/CUPTI/include /usr/local/cuda/include)
find_path(TWINBENCH_NVML_INCLUDE nvml.h HINTS "${TWINBENCH_CUDA_WHEEL}/include" /usr/local/cuda/include)
foreach(header CUPTI NVML)
  if(NOT TWINBENCH_${header}_INCLUDE)
    message(FATAL_ERROR "The ${header} header was not found. Run ci/setup (PyPI: torch, nvidia-nvml-dev), or set TWINBENCH_${header}_INCLUDE.")
  endif()
endforeach()
add_library(cuda::headers INTERFACE IMPORTED GLOBAL)
target_include_directories(cuda::headers SYSTEM INTERFACE ${TWINBENCH_CUPTI_INCLUDE} ${TWINBENCH_NVML_INCLUDE})
target_link_libraries(cuda::headers INTERFACE ${CMAKE_DL_LIBS})
