# SPDX-License-Identifier: Apache-2.0
# The files that hold tables for one instruction set and nothing else: the only ones that see flags of an instruction set.
function(fungi_isa table)  # fungi/<table>.cpp, then its flags
  set_source_files_properties(${PROJECT_SOURCE_DIR}/fungi/${table}.cpp PROPERTIES COMPILE_OPTIONS "${ARGN}")
endfunction()

set(FUNGI_LOOPS -O3 -fno-math-errno -fno-trapping-math)
set(FUNGI_AVX512 -mavx512f -mavx512bw -mavx512dq -mavx512vl)

set(flags ${FUNGI_LOOPS} -ffp-contract=off -fno-exceptions)
set(wide ${FUNGI_AVX512} -mavx2 -mfma -mf16c -mprefer-vector-width=512)
fungi_isa(kernel/generic ${flags})
fungi_isa(kernel/avx2 ${flags} -mavx2 -mfma -mf16c)
fungi_isa(kernel/avx512 ${flags} ${wide})
fungi_isa(kernel/avx512bf16 ${flags} ${wide} -mavx512bf16)
fungi_isa(kernel/avx512vnni ${flags} ${wide} -mavx512vnni)
fungi_isa(kernel/avx512vnnibf16 ${flags} ${wide} -mavx512vnni -mavx512bf16)
fungi_isa(kernel/avxvnni ${flags} -mavx2 -mfma -mf16c -mavxvnni)
fungi_isa(kernel/amx ${flags} ${wide} -mavx512bf16 -mamx-tile -mamx-bf16 -mamx-int8)

# Contraction is off: their f64 sums must have the same bits in every table.
list(APPEND flags -Wno-psabi)
fungi_isa(search/scan_generic ${flags})
fungi_isa(search/portable_codes ${flags})
fungi_isa(search/scan_avx2 ${flags} -mavx2)
fungi_isa(search/scan_vnni ${flags} ${FUNGI_AVX512} -mavx512vnni -mavx2 -mfma -mprefer-vector-width=512)

# The sums of PCA may use fused multiply-adds: only their order must be fixed, not their bits across tables.
set(flags ${FUNGI_LOOPS} -ffp-contract=fast -fno-exceptions -Wno-psabi)
foreach(loops eigen covariance)
  fungi_isa(pca/${loops}_generic ${flags})
  fungi_isa(pca/${loops}_avx2 ${flags} -mavx2 -mfma)
  fungi_isa(pca/${loops}_avx512 ${flags} -mavx512f -mavx512dq -mavx512vl -mavx2 -mfma -mprefer-vector-width=512)
endforeach()
