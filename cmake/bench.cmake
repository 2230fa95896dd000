# SPDX-License-Identifier: Apache-2.0
# Programs that measure single kernels and decoders (input_bench, kernel_bench) and what bench/compare runs beside its
# peers (search_bench, bank_bench, token_bench, segment_bench, sound_bench), and clients of `fungi serve` (serve_bench). Built with everything else, so that they cannot
# fall behind the library.
foreach(program search_bench bank_bench input_bench token_bench segment_bench sound_bench serve_bench)
  add_executable(${program} ${PROJECT_SOURCE_DIR}/bench/${program}.cpp)
  target_link_libraries(${program} PRIVATE fungi::fungi fmt::fmt nlohmann_json::nlohmann_json)
endforeach()
find_package(benchmark QUIET)
if(benchmark_FOUND)
  add_executable(kernel_bench ${PROJECT_SOURCE_DIR}/bench/kernel_bench.cpp)
  target_link_libraries(kernel_bench PRIVATE fungi::fungi benchmark::benchmark)
  find_library(FUNGI_OPENBLAS openblas)
  find_path(FUNGI_CBLAS_INCLUDE cblas.h)
  if(FUNGI_OPENBLAS AND FUNGI_CBLAS_INCLUDE)
    target_compile_definitions(kernel_bench PRIVATE FUNGI_BENCH_CBLAS)
    target_include_directories(kernel_bench PRIVATE ${FUNGI_CBLAS_INCLUDE})
    target_link_libraries(kernel_bench PRIVATE ${FUNGI_OPENBLAS})
  endif()
endif()
