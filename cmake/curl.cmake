# SPDX-License-Identifier: Apache-2.0
# 'fungi prompts --endpoint' asks servers, and 'fungi pull' fetches models, through libcurl. Included after library.cmake.
pkg_check_modules(CURL IMPORTED_TARGET libcurl>=7.85)
option(FUNGI_CURL "Ask language models on servers, fetch models" ${CURL_FOUND})
if(FUNGI_CURL)
  if(NOT CURL_FOUND)
    message(FATAL_ERROR "FUNGI_CURL is ON, but pkg-config finds no libcurl of 7.85 or later: install libcurl4-openssl-dev or configure with -DFUNGI_CURL=OFF")
  endif()
  target_link_libraries(fungi PRIVATE PkgConfig::CURL)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/fungi/prompt/http_curl.cpp ${PROJECT_SOURCE_DIR}/fungi/hub/http_get.cpp
    PROPERTIES COMPILE_DEFINITIONS FUNGI_HAVE_CURL)
endif()
