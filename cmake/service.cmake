# SPDX-License-Identifier: Apache-2.0
# 'fungi serve' listens through cpp-httplib, and speaks TLS through OpenSSL, which that needs anyway. The files of web/ and
# openapi.json are compiled in. Included after library.cmake.
pkg_check_modules(HTTPLIB IMPORTED_TARGET cpp-httplib>=0.11 openssl)
option(FUNGI_HTTPLIB "Serve stores over HTTP" ${HTTPLIB_FOUND})
if(FUNGI_HTTPLIB)
  if(NOT HTTPLIB_FOUND)
    message(FATAL_ERROR "FUNGI_HTTPLIB is ON, but pkg-config finds no cpp-httplib of 0.11 or later: install libcpp-httplib-dev or configure with -DFUNGI_HTTPLIB=OFF")
  endif()
  target_link_libraries(fungi PRIVATE PkgConfig::HTTPLIB)
  # What was said when the library was compiled has to be said again, in the one file that includes it.
  set_property(TARGET PkgConfig::HTTPLIB PROPERTY INTERFACE_COMPILE_OPTIONS)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/fungi/service/http_httplib.cpp ${PROJECT_SOURCE_DIR}/fungi/service/tls.cpp
    PROPERTIES COMPILE_DEFINITIONS FUNGI_HAVE_HTTPLIB)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/fungi/service/http_httplib.cpp PROPERTIES COMPILE_OPTIONS "${HTTPLIB_CFLAGS_OTHER}")
endif()

file(GLOB_RECURSE FUNGI_PAGE CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/web/*)
list(FILTER FUNGI_PAGE INCLUDE REGEX "\\.(html|css|js|svg|png|webmanifest|webp)$")
set(FUNGI_PAGE_SOURCE ${PROJECT_BINARY_DIR}/page_files.cpp)
add_custom_command(OUTPUT ${FUNGI_PAGE_SOURCE}
  COMMAND ${CMAKE_COMMAND} -DWEB=${PROJECT_SOURCE_DIR}/web -DAPI=${PROJECT_SOURCE_DIR}/fungi/service/openapi.json
          "-DFILES=${FUNGI_PAGE}" -DOUT=${FUNGI_PAGE_SOURCE} -P ${PROJECT_SOURCE_DIR}/cmake/page_files.cmake
  DEPENDS ${FUNGI_PAGE} ${PROJECT_SOURCE_DIR}/fungi/service/openapi.json ${PROJECT_SOURCE_DIR}/cmake/page_files.cmake
  VERBATIM)
target_sources(fungi PRIVATE ${FUNGI_PAGE_SOURCE})
