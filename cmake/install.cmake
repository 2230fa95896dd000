# SPDX-License-Identifier: Apache-2.0
# cmake --install and find_package(fungi).
include(CMakePackageConfigHelpers)
install(TARGETS fungi EXPORT fungi-targets)
if(TARGET fungi-cli)
  install(TARGETS fungi-cli)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/fungi DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT fungi-targets NAMESPACE fungi:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fungi)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/fungi-config.cmake.in ${PROJECT_BINARY_DIR}/fungi-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fungi)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fungi-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fungi-config.cmake ${PROJECT_BINARY_DIR}/fungi-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fungi)
