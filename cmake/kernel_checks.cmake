# SPDX-License-Identifier: Apache-2.0
# What the kernel room needs beyond the ordinary tests: tables of instruction sets this machine may lack, built on
# emulated tiles and lowered vectors; a look into the objects.
if(TARGET test_kernel)
  set(FUNGI_EMULATED avx512 pairs amx vnni avxvnni)
  list(TRANSFORM FUNGI_EMULATED REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/tests/kernel/emulated_\\1.cpp")
  target_sources(test_kernel PRIVATE ${FUNGI_EMULATED})
  set_source_files_properties(${FUNGI_EMULATED} PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS
    "-O2;-fno-trapping-math;-ffp-contract=off;-fno-exceptions;-mavx2;-mfma;-mf16c;-Wno-psabi")
endif()

if(NOT FUNGI_SANITIZE)  # sanitizers add initialisers of their own
  add_test(NAME kernel.isa_objects COMMAND ${PROJECT_SOURCE_DIR}/tools/check_isa_objects.sh
    "$<FILTER:$<TARGET_OBJECTS:fungi>,INCLUDE,(kernel/|_)(generic|avx2|avx512|avx512bf16|avx512vnni|avx512vnnibf16|avxvnni|amx|vnni)\\.cpp>" COMMAND_EXPAND_LISTS)
endif()
