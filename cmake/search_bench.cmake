# SPDX-License-Identifier: Apache-2.0
# The program that bench/compare_search.py runs; not built by default (ninja search_bench).
add_executable(search_bench EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/search_bench.cpp)
target_link_libraries(search_bench PRIVATE fungi::fungi fmt::fmt)
