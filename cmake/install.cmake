# SPDX-License-Identifier: Apache-2.0
# cmake --install and find_package(fungi).
include(CMakePackageConfigHelpers)
install(TARGETS fungi EXPORT fungi-targets)
if(TARGET fungi-cli)
  install(TARGETS fungi-cli)
endif()
install(CODE "set(FUNGI_SOURCE [[${PROJECT_SOURCE_DIR}]])
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_PREFIX OUTPUT_VARIABLE FUNGI_INCLUDE)
cmake_path(APPEND FUNGI_INCLUDE [[${CMAKE_INSTALL_INCLUDEDIR}]])")
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/install_headers.cmake)
install(EXPORT fungi-targets NAMESPACE fungi:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fungi)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/fungi-config.cmake.in ${PROJECT_BINARY_DIR}/fungi-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fungi)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fungi-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fungi-config.cmake ${PROJECT_BINARY_DIR}/fungi-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fungi)
