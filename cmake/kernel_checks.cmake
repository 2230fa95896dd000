# SPDX-License-Identifier: Apache-2.0
# What the kernel room needs beyond the ordinary tests: tables of instruction sets this machine may lack, built on
# emulated tiles and lowered vectors; a look into the objects; the benchmark.
if(TARGET test_kernel)
  set(FUNGI_EMULATED ${PROJECT_SOURCE_DIR}/tests/kernel/emulated_avx512.cpp ${PROJECT_SOURCE_DIR}/tests/kernel/emulated_amx.cpp)
  target_sources(test_kernel PRIVATE ${FUNGI_EMULATED})
  set_source_files_properties(${FUNGI_EMULATED} PROPERTIES COMPILE_OPTIONS
    "-O2;-fno-trapping-math;-ffp-contract=off;-fno-exceptions;-mavx2;-mfma;-mf16c;-Wno-psabi")
endif()

if(NOT FUNGI_SANITIZE)  # sanitizers add initialisers of their own
  add_test(NAME kernel.isa_objects COMMAND ${PROJECT_SOURCE_DIR}/tools/check_isa_objects.sh
    "$<FILTER:$<TARGET_OBJECTS:fungi>,INCLUDE,kernel/(generic|avx2|avx512|amx)\\.cpp>" COMMAND_EXPAND_LISTS)
endif()

find_package(benchmark QUIET)
if(benchmark_FOUND)
  add_executable(kernel_bench EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/kernel_bench.cpp)
  target_link_libraries(kernel_bench PRIVATE fungi::fungi benchmark::benchmark)
  find_library(FUNGI_OPENBLAS openblas)
  find_path(FUNGI_CBLAS_INCLUDE cblas.h)
  if(FUNGI_OPENBLAS AND FUNGI_CBLAS_INCLUDE)
    target_compile_definitions(kernel_bench PRIVATE FUNGI_BENCH_CBLAS)
    target_include_directories(kernel_bench PRIVATE ${FUNGI_CBLAS_INCLUDE})
    target_link_libraries(kernel_bench PRIVATE ${FUNGI_OPENBLAS})
  endif()
endif()
