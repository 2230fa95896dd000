# SPDX-License-Identifier: Apache-2.0
# Headers that many sources share, compiled once. Files with flags of their own stay apart: their flags would not fit.
foreach(source ${FUNGI_SOURCES})
  get_source_file_property(flags ${source} COMPILE_OPTIONS)
  if(flags)
    set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  endif()
endforeach()
target_precompile_headers(fungi PRIVATE <fmt/format.h> <nlohmann/json.hpp> <algorithm> <filesystem> <functional> <map> <memory> <optional> <string> <vector>)
# At -O0, fmt's pragmas let the compiler's own header of vector intrinsics go wrong behind a precompiled one.
set_source_files_properties(${PROJECT_SOURCE_DIR}/fungi/checkpoint/sha256.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
# The parser's header alone takes longer to compile than any verb, and no verb has a hot loop.
if(TARGET fungi-cli)
  target_precompile_headers(fungi-cli PRIVATE <CLI/CLI.hpp> <fmt/format.h> <fmt/ranges.h> <nlohmann/json.hpp>)
  target_compile_options(fungi-cli PRIVATE $<$<CONFIG:Release>:-O1>)
endif()
