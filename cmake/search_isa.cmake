# SPDX-License-Identifier: Apache-2.0
# Flags of the files under fungi/search and fungi/feature that hold one table for one instruction set and nothing else.
# Contraction is off: their f64 sums must have the same bits in every table.
set(FUNGI_SCAN_FLAGS -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off -fno-exceptions -Wno-psabi)
set_source_files_properties(${PROJECT_SOURCE_DIR}/fungi/search/scan_generic.cpp PROPERTIES COMPILE_OPTIONS "${FUNGI_SCAN_FLAGS}")
set_source_files_properties(${PROJECT_SOURCE_DIR}/fungi/search/scan_avx2.cpp PROPERTIES COMPILE_OPTIONS "${FUNGI_SCAN_FLAGS};-mavx2")
set_source_files_properties(${PROJECT_SOURCE_DIR}/fungi/search/scan_vnni.cpp PROPERTIES COMPILE_OPTIONS
  "${FUNGI_SCAN_FLAGS};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni;-mavx2;-mfma;-mprefer-vector-width=512")

# The sums of PCA may use fused multiply-adds: only their order must be fixed, not their bits across tables.
set(FUNGI_PCA_FLAGS -O3 -fno-math-errno -fno-trapping-math -ffp-contract=fast -fno-exceptions -Wno-psabi)
foreach(FUNGI_LOOPS eigen covariance)
  set(FUNGI_LOOPS_FILE ${PROJECT_SOURCE_DIR}/fungi/feature/${FUNGI_LOOPS})
  set_source_files_properties(${FUNGI_LOOPS_FILE}_generic.cpp PROPERTIES COMPILE_OPTIONS "${FUNGI_PCA_FLAGS}")
  set_source_files_properties(${FUNGI_LOOPS_FILE}_avx2.cpp PROPERTIES COMPILE_OPTIONS "${FUNGI_PCA_FLAGS};-mavx2;-mfma")
  set_source_files_properties(${FUNGI_LOOPS_FILE}_avx512.cpp PROPERTIES COMPILE_OPTIONS
    "${FUNGI_PCA_FLAGS};-mavx512f;-mavx512dq;-mavx512vl;-mavx2;-mfma;-mprefer-vector-width=512")
endforeach()
